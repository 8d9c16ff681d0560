"""navarch as it is run by its users; without election and a check of permissions, as the others."""

import uvloop

from navarch import Context, Operator, connect
from navarch.client import Request, Response, Transport
from runtimes.job import Job
from widgets import Widget

job = Job()
operator = Operator("bench", crds="ignore", election=False, check_permissions=False)


@operator.controller(Widget, concurrency=job.workers)
async def reconcile(widget: Widget, _: Context) -> None:
    if job.name == "write":
        widget.status.phase = job.phase
        return
    if job.name == "soak":
        widget.status.phase = widget.spec.note
    job.reconciled(widget.name, widget.spec.note)


class Confirmed:
    """A transport that tells the job which statuses were written: that happens after the reconciler has returned."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.origin = transport.origin
        self.host = transport.host
        self.connect = transport.connect
        self.close = transport.close

    async def send(self, request: Request) -> Response:
        response = await self._transport.send(request)
        if request.path.endswith("/status") and response.status == 200:
            job.reconciled(request.path, "")
        return response


async def main() -> None:
    async with connect() as client:
        await operator.serve(client.through(Confirmed))


if job.name == "write":
    uvloop.run(main())
else:
    operator.run()
