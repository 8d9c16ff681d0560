"""`Operator`: controllers, election, events, health and metrics as one process."""

from __future__ import annotations

from navarch.client import Client
from navarch.operator.declarations import DeclaredOperator


class Operator(DeclaredOperator):
    """Declares controllers and runs them. Several runs at once are allowed, as in tests of several replicas.

    `namespaces` are names or patterns, all if none are given; `operator.namespaces.change(...)` changes them at run time.
    `crds` installs, verifies or ignores the CRDs of its kinds at the start. With `election` (the default) several replicas share
    one Lease and one of them works. `endpoints` serve health and metrics. The required permissions follow from the declarations;
    `uses` lists them exactly for a kind that needs less, or more (by `ctx.patch`, `ctx.delete` or `ctx.client`). At the end,
    reconciles under way have `drain_seconds` to finish.
    """

    async def serve(self, client: Client) -> None:
        """Runs until it is cancelled; returns when reconciles have ended and the Lease is released."""
        from navarch.operator.process import serve  # noqa: PLC0415 - it knows operators, and is not needed to declare one

        await serve(client, self)

    def run(self) -> None:
        """Runs as the whole program, on the cluster that kubectl would talk to, until SIGTERM or SIGINT."""
        from navarch.operator.program import run  # noqa: PLC0415 - as above

        run(self)
