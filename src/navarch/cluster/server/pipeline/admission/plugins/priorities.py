"""Priority: the number that a PriorityClass stands for, and one default class at most."""

from __future__ import annotations

from typing import Final

from navarch.cluster.server.pipeline.admission.attributes import Attributes
from navarch.cluster.server.pipeline.admission.plugins.pods import PODS, forbid
from navarch.cluster.server.pipeline.admission.plugins.table import Informed
from navarch.cluster.server.wire.request import Json

__all__ = ["OneDefaultPriority", "Priorities"]

_CLASSES: Final = ("scheduling.k8s.io", "v1", "priorityclasses")
_PREEMPTS: Final = "PreemptLowerPriority"


class Priorities(Informed):
    """Gives a new pod the priority and preemption policy of its class; nobody may set them otherwise."""

    resources = PODS

    async def change(self, attributes: Attributes, value: Json) -> None:
        """See `Mutating.change`."""
        spec = value["spec"]
        if attributes.operation == "UPDATE":
            _keep(spec, (attributes.old or {}).get("spec") or {})
            return
        if attributes.operation != "CREATE":
            return
        found = await self._class_of(attributes, spec)
        priority, policy = found.get("value", 0), found.get("preemptionPolicy") or _PREEMPTS
        if spec.get("priority") not in {None, priority}:
            raise forbid(attributes, _computed(f"integer value of priority ({spec['priority']})", priority))
        if spec.get("preemptionPolicy") not in {None, policy}:
            raise forbid(
                attributes, _computed(f"string value of PreemptionPolicy ({spec['preemptionPolicy']})", policy)
            )
        spec["priority"], spec["preemptionPolicy"] = priority, policy

    async def _class_of(self, attributes: Attributes, spec: Json) -> Json:
        resource = self._objects.resource(*_CLASSES)
        name = spec.get("priorityClassName")
        if name:
            found = await self._objects.get(resource, "", name)
            if found is None:
                raise forbid(attributes, f"no PriorityClass with name {name} was found")
            return found
        default = _default(await self._objects.list(resource))
        if default is None:
            return {}
        spec["priorityClassName"] = default["metadata"]["name"]
        return default


def _computed(what: str, value: object) -> str:
    computed = f"priority admission controller computed {value} from the given PriorityClass name"
    return f"the {what} must not be provided in pod spec; {computed}"


def _keep(spec: Json, old: Json) -> None:
    """An update that says nothing about them leaves them as they are."""
    for field in ("priority", "preemptionPolicy"):
        if spec.get(field) is None and old.get(field) is not None:
            spec[field] = old[field]


def _default(classes: list[Json]) -> Json | None:
    """The least of those that are marked as default, should there be several."""
    marked = [each for each in classes if each.get("globalDefault")]
    return min(marked, key=lambda each: int(each.get("value", 0)), default=None)


class OneDefaultPriority(Informed):
    """Refuses a second default class."""

    resources = frozenset({("scheduling.k8s.io", "priorityclasses")})

    async def check(self, attributes: Attributes) -> None:
        """See `Validating.check`."""
        value = attributes.value or {}
        if not value.get("globalDefault"):
            return
        default = _default(await self._objects.list(self._objects.resource(*_CLASSES)))
        if default is not None and default["metadata"]["name"] != attributes.name:
            name = default["metadata"]["name"]
            raise forbid(attributes, f"PriorityClass {name} is already marked as default. Only one default can exist")
