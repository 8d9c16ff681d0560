"""navarch as it is run by its users: an operator that converts two versions, with a certificate from files.

It leaves the CRD alone: the benchmark writes the same one for all.
"""

import os
from pathlib import Path

from navarch import Operator, WebhookServer
from webhooks.versions import NextWidget, NextWidgetSpec
from widgets import Widget, WidgetSpec

certificates = Path(os.environ["BENCH_CERTIFICATES"])
operator = Operator(
    "bench",
    crds="ignore",
    webhooks="ignore",
    election=False,
    check_permissions=False,
    webhook_server=WebhookServer(
        listen=f"127.0.0.1:{os.environ['BENCH_PORT']}",
        certificate=certificates / "tls.crt",
        key=certificates / "tls.key",
        authority=certificates / "ca.crt",
    ),
)


@operator.convert(Widget, NextWidget)
def to_next(old: Widget) -> NextWidget:
    spec = old.spec
    return NextWidget(
        spec=NextWidgetSpec(
            size=spec.replicas, image=spec.image, args=spec.args, env=spec.env, ports=spec.ports, note=spec.note
        ),
        status=old.status,
    )


@to_next.reverse
def from_next(new: NextWidget) -> Widget:
    spec = new.spec
    return Widget(
        spec=WidgetSpec(
            replicas=spec.size, image=spec.image, args=spec.args, env=spec.env, ports=spec.ports, note=spec.note
        ),
        status=new.status,
    )


operator.run()
