"""Plug-ins that read classes: Priority, RuntimeClass, DefaultStorageClass, PersistentVolumeClaimResize."""

from __future__ import annotations

from typing import Final

from navarch.api import Quantity
from navarch.cluster.server.pipeline.admission.attributes import Attributes
from navarch.cluster.server.pipeline.admission.plugins.plugin import PODS, ObjectReadingPlugin, forbid
from navarch.cluster.server.wire.request import Json
from navarch.errors import InvalidValueError

_PRIORITY_CLASSES: Final = ("scheduling.k8s.io", "v1", "priorityclasses")
_PREEMPTS: Final = "PreemptLowerPriority"


class PriorityPlugin(ObjectReadingPlugin):
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
        resource = self._objects.resource(*_PRIORITY_CLASSES)
        name = spec.get("priorityClassName")
        if name:
            found = await self._objects.get(resource, "", name)
            if found is None:
                raise forbid(attributes, f"no PriorityClass with name {name} was found")
            return found
        default = _default_priority(await self._objects.list(resource))
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


def _default_priority(classes: list[Json]) -> Json | None:
    """The least of those that are marked as default, should there be several."""
    marked = [each for each in classes if each.get("globalDefault")]
    return min(marked, key=lambda each: int(each.get("value", 0)), default=None)


class OneDefaultPriority(ObjectReadingPlugin):
    """Refuses a second default class."""

    resources = frozenset({("scheduling.k8s.io", "priorityclasses")})

    async def check(self, attributes: Attributes) -> None:
        """See `Validating.check`."""
        value = attributes.value or {}
        if not value.get("globalDefault"):
            return
        default = _default_priority(await self._objects.list(self._objects.resource(*_PRIORITY_CLASSES)))
        if default is not None and default["metadata"]["name"] != attributes.name:
            name = default["metadata"]["name"]
            raise forbid(attributes, f"PriorityClass {name} is already marked as default. Only one default can exist")


_RUNTIME_CLASSES: Final = ("node.k8s.io", "v1", "runtimeclasses")
_OTHER: Final = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
_UNFOUNDED: Final = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


class RuntimeClassPlugin(ObjectReadingPlugin):
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
        found = await self._objects.get(self._objects.resource(*_RUNTIME_CLASSES), "", name)
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
    """Merges the node selector of the class into the pod's; refuses a contradiction."""
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


_CLAIMS: Final = frozenset({("", "persistentvolumeclaims")})
_STORAGE_CLASSES: Final = ("storage.k8s.io", "v1", "storageclasses")
_DEFAULT_STORAGE: Final = "storageclass.kubernetes.io/is-default-class"
_DEFAULT_STORAGE_BETA: Final = "storageclass.beta.kubernetes.io/is-default-class"
_CLASS_BETA: Final = "volume.beta.kubernetes.io/storage-class"


class DefaultStorageClass(ObjectReadingPlugin):
    """Gives a new claim that names no class the default one: of several, the youngest."""

    resources = _CLAIMS

    async def change(self, attributes: Attributes, value: Json) -> None:
        """See `Mutating.change`."""
        if attributes.operation != "CREATE" or _class_of(value) is not None:
            return
        classes = await self._objects.list(self._objects.resource(*_STORAGE_CLASSES))
        marked = sorted(
            (each for each in classes if _is_default_storage(each)), key=lambda each: str(each["metadata"]["name"])
        )
        youngest = max(marked, key=lambda each: str(each["metadata"].get("creationTimestamp", "")), default=None)
        if youngest is not None:
            value["spec"]["storageClassName"] = youngest["metadata"]["name"]


def _class_of(claim: Json) -> str | None:
    annotations = claim["metadata"].get("annotations") or {}
    found: str | None = annotations.get(_CLASS_BETA, claim["spec"].get("storageClassName"))
    return found


def _is_default_storage(storage_class: Json) -> bool:
    annotations = storage_class["metadata"].get("annotations") or {}
    return "true" in {annotations.get(_DEFAULT_STORAGE), annotations.get(_DEFAULT_STORAGE_BETA)}


class ClaimResizing(ObjectReadingPlugin):
    """Lets a claim grow only if its class says that its volumes can."""

    resources = _CLAIMS

    async def check(self, attributes: Attributes) -> None:
        """See `Validating.check`."""
        if attributes.operation != "UPDATE" or not _grows(attributes.value or {}, attributes.old or {}):
            return
        name = _class_of(attributes.old or {})
        found = await self._objects.get(self._objects.resource(*_STORAGE_CLASSES), "", name) if name else None
        if found is None or not found.get("allowVolumeExpansion"):
            why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc"
            raise forbid(attributes, f"{why} must support resize")


def _grows(value: Json, old: Json) -> bool:
    try:
        return _size(value) > _size(old)
    except InvalidValueError:
        return False


def _size(claim: Json) -> Quantity:
    requests = ((claim["spec"].get("resources") or {}).get("requests")) or {}
    return Quantity(str(requests.get("storage", "0")))
