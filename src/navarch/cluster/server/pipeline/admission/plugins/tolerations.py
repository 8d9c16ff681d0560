"""DefaultTolerationSeconds: pods stay for five minutes on nodes that are not ready or not reached."""

from __future__ import annotations

from typing import Final

from navarch.cluster.server.pipeline.admission.attributes import Attributes
from navarch.cluster.server.pipeline.admission.plugins.pods import PODS
from navarch.cluster.server.wire.request import Json

__all__ = ["DefaultTolerations"]

_TAINTS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_SECONDS: Final = 300


class DefaultTolerations:
    """Adds a toleration for each of the two taints, unless the pod has said something about it."""

    resources = PODS

    async def change(self, attributes: Attributes, value: Json) -> None:
        """See `Mutating.change`."""
        if attributes.operation == "DELETE":
            return
        known = value["spec"].get("tolerations") or []
        missing = [taint for taint in _TAINTS if not any(_is_about(each, taint) for each in known)]
        if missing:
            value["spec"]["tolerations"] = [*known, *map(_toleration, missing)]


def _is_about(toleration: Json, taint: str) -> bool:
    return toleration.get("key", "") in {"", taint} and toleration.get("effect", "") in {"", "NoExecute"}


def _toleration(taint: str) -> Json:
    return {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _SECONDS}
