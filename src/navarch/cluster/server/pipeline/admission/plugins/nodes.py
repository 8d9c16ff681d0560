"""TaintNodesByCondition."""

from __future__ import annotations

from typing import Final

from navarch.cluster.server.pipeline.admission.attributes import Attributes
from navarch.cluster.server.wire.request import Json

__all__ = ["NodeTaint"]

_NOT_READY: Final = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


class NodeTaint:
    """Lets no pod go to a new node before a controller says that it is ready."""

    resources = frozenset({("", "nodes")})

    async def change(self, attributes: Attributes, value: Json) -> None:
        """See `Mutating.change`."""
        if attributes.operation != "CREATE":
            return
        taints = value["spec"].get("taints") or []
        if not any({**taint, **_NOT_READY} == taint for taint in taints):
            value["spec"]["taints"] = [*taints, dict(_NOT_READY)]
