"""RuntimeClass: a pod gets the overhead and the places of its class, which must be there."""

from __future__ import annotations

from typing import Final

from navarch.api import Quantity
from navarch.cluster.server.pipeline.admission.attributes import Attributes
from navarch.cluster.server.pipeline.admission.plugins.pods import PODS, forbid
from navarch.cluster.server.pipeline.admission.plugins.table import Informed
from navarch.cluster.server.wire.request import Json
from navarch.errors import InvalidValueError

__all__ = ["RuntimeClasses"]

_CLASSES: Final = ("node.k8s.io", "v1", "runtimeclasses")
_OTHER: Final = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
_UNFOUNDED: Final = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


class RuntimeClasses(Informed):
    """Looks at new pods."""

    resources = PODS

    async def change(self, attributes: Attributes, value: Json) -> None:
        """See `Mutating.change`."""
        if attributes.operation != "CREATE":
            return
        found, spec = await self._class_of(attributes, value["spec"]), value["spec"]
        overhead = (found.get("overhead") or {}).get("podFixed")
        if found.get("overhead") is not None:
            if spec.get("overhead") and not _is_same(spec["overhead"], overhead or {}):
                raise forbid(attributes, _OTHER)
            if overhead:
                spec["overhead"] = dict(overhead)
        if scheduling := found.get("scheduling"):
            spec |= _placed(attributes, spec, scheduling)

    async def check(self, attributes: Attributes) -> None:
        """See `Validating.check`: nobody has an overhead of their own making."""
        if attributes.operation != "CREATE":
            return
        spec = (attributes.value or {})["spec"]
        found = await self._class_of(attributes, spec)
        if found.get("overhead") is None and spec.get("overhead"):
            raise forbid(attributes, _UNFOUNDED)

    async def _class_of(self, attributes: Attributes, spec: Json) -> Json:
        """The class that the pod names; nothing if it names none."""
        name = spec.get("runtimeClassName")
        if not name:
            return {}
        found = await self._objects.get(self._objects.resource(*_CLASSES), "", name)
        if found is None:
            raise forbid(attributes, f'pod rejected: RuntimeClass "{name}" not found')
        return found


def _is_same(one: Json, other: Json) -> bool:
    try:
        return _amounts(one) == _amounts(other)
    except InvalidValueError:
        return one == other


def _amounts(given: Json) -> dict[str, Quantity]:
    return {name: Quantity.from_wire(amount) for name, amount in given.items()}


def _placed(attributes: Attributes, spec: Json, scheduling: Json) -> Json:
    """Where the pod may go: it must not ask for something else than its class does."""
    selector = dict(spec.get("nodeSelector") or {})
    for key, wanted in (scheduling.get("nodeSelector") or {}).items():
        if (own := selector.get(key, wanted)) != wanted:
            said = f"runtimeClass.scheduling.nodeSelector[{key}] = {wanted}; pod.spec.nodeSelector[{key}] = {own}"
            raise forbid(attributes, f"conflict: {said}")
        selector[key] = wanted
    tolerations = list(spec.get("tolerations") or ())
    tolerations += [each for each in scheduling.get("tolerations") or () if each not in tolerations]
    placed: Json = {"nodeSelector": selector} if selector else {}
    return {**placed, "tolerations": tolerations} if tolerations else placed
