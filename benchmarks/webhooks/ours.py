"""navarch as it is run by its users: an operator with two webhooks and a certificate from files.

It leaves its configurations alone, as the others do: the load generator calls the webhooks, not the API server.
"""

import os
from pathlib import Path

from navarch import Operator, Review, WebhookServer
from widgets import Widget

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


@operator.validate(Widget)
async def check(widget: Widget, review: Review[Widget]) -> None:
    if widget.spec.replicas > 100:
        review.deny("spec.replicas", "must be at most 100")
    if not widget.spec.ports:
        review.deny("spec.ports", "must not be empty")


@operator.mutate(Widget)
async def default(widget: Widget, _: Review[Widget]) -> None:
    widget.labels["mutated"] = "yes"
    if not widget.spec.image:
        widget.spec.image = "registry.example.com/team/default:1.0.0"


operator.run()
