"""`Operator`: controllers, election, events, health and metrics as one process."""

from __future__ import annotations

from navarch.client import Client
from navarch.operator.declarations import DeclaredOperator


class Operator(DeclaredOperator):
    """Declares controllers, and runs them. It can be run several times at once, as in tests of several replicas.

    `namespaces` are names or patterns, all if none are given; `operator.namespaces.change(...)` changes them at run time.
    `crds` says what happens to the definitions of the kinds it reconciles when it starts: they are installed, verified or
    ignored. With `election` (on by default) several replicas share one Lease and one of them works. `endpoints` are
    served if given. The permissions it needs follow from what its controllers declare; for a kind of which it needs less,
    or more (by `ctx.patch`, `ctx.delete` or `ctx.client`), `uses` lists them exactly. When it is told to stop, what is under
    way has `drain_seconds` to finish.
    """

    async def serve(self, client: Client) -> None:
        """Runs until it is cancelled; returns when everything has been finished and given back."""
        from navarch.operator.process import serve  # noqa: PLC0415 - it knows operators, and is not needed to declare one

        await serve(client, self)

    def run(self) -> None:
        """Runs as the whole program, on the cluster that kubectl would talk to, until SIGTERM or SIGINT."""
        from navarch.operator.program import run  # noqa: PLC0415 - as above

        run(self)
