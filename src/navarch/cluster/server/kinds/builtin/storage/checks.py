"""Checks of PersistentVolumes, PersistentVolumeClaims and StorageClasses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from navarch.api.quantity import Quantity
from navarch.api.strconv import go_quoted
from navarch.cluster.server.kinds.builtin.generic.checks import choice, exactly_one, label_name, named, unique
from navarch.cluster.server.objects.metadata import immutable_faults, selector_faults
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_causes import duplicate, forbidden, invalid, required, unsupported
from navarch.errors import Cause

_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES: Final = ("Block", "Filesystem")
_CLAIM_UPDATES: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)
_VOLUME_FIELDS: Final = frozenset(
    {
        "capacity",
        "accessModes",
        "claimRef",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "mountOptions",
        "volumeMode",
        "nodeAffinity",
        "volumeAttributesClassName",
    }
)


def check_claim(value: Json) -> Iterator[Cause]:
    """A PersistentVolumeClaim."""
    spec = value["spec"]
    if not spec.get("accessModes"):
        yield required("spec.accessModes", "at least 1 access mode is required")
    yield from selector_faults(spec.get("selector"), "spec.selector")
    yield from _check_modes(spec)
    storage = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if storage is None:
        yield required("spec.resources[storage]")
    elif Quantity(storage) <= 0:
        yield invalid("spec.resources[storage]", storage, "must be greater than zero")
    yield from _check_class_and_mode(spec)
    for name in ("dataSource", "dataSourceRef"):
        if (source := spec.get(name)) is not None:
            yield from _check_source(source, f"spec.{name}")
    yield from _check_same_source(spec)


def _check_source(source: Json, path: str) -> Iterator[Cause]:
    """Checks the data source of a claim."""
    for name in ("name", "kind"):
        if not source.get(name):
            yield required(f"{path}.{name}")
    kind = source.get("kind", "")
    if not source.get("apiGroup") and kind != "PersistentVolumeClaim":
        yield invalid(path, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup")
    if source.get("apiGroup"):
        yield from named(source["apiGroup"], f"{path}.apiGroup")


def _check_same_source(spec: Json) -> Iterator[Cause]:
    """Both ways to name it say the same."""
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is None or reference is None:
        return
    if any((source.get(name) or "") != (reference.get(name) or "") for name in ("apiGroup", "kind", "name")):
        yield invalid("spec", {}, "must match dataSourceRef")


def claim_warnings(value: Json, _: Json | None) -> list[str]:
    """Storage comes in whole bytes."""
    said = "fractional byte value {} is invalid, must be an integer"
    resources = value["spec"].get("resources") or {}
    return [
        f"spec.resources.{kind}[storage]: {said.format(go_quoted(amount))}"
        for kind in ("requests", "limits")
        if (amount := (resources.get(kind) or {}).get("storage")) is not None and Quantity(amount).milli_value % 1000
    ]


def check_claim_status(value: Json, _old: Json) -> Iterator[Cause]:
    """Checks the capacity in the status of a claim."""
    for name, amount in ((value.get("status") or {}).get("capacity") or {}).items():
        if (found := Quantity(amount).value) < 0:
            yield invalid(f"status.capacity[{name}]", found, "must be a valid resource quantity")


def _check_modes(spec: Json) -> Iterator[Cause]:
    modes = spec.get("accessModes") or ()
    for mode in modes:
        yield from choice(mode, "spec.accessModes", _MODES)
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        yield forbidden("spec.accessModes", "may not use ReadWriteOncePod with other access modes")


def _check_class_and_mode(spec: Json) -> Iterator[Cause]:
    if spec.get("storageClassName"):
        yield from named(spec["storageClassName"], "spec.storageClassName")
    yield from choice(spec.get("volumeMode"), "spec.volumeMode", _VOLUME_MODES)


def check_claim_update(value: Json, old: Json) -> Iterator[Cause]:
    """A claim changes only while it is bound, and then only in size; before, it may be given a volume or a class."""
    spec, before = {**value["spec"]}, {**old["spec"]}
    if not before.get("volumeName"):
        before["volumeName"] = spec.get("volumeName")
    if before.get("storageClassName") is None:
        before["storageClassName"] = spec.get("storageClassName")
    if (value.get("status") or {}).get("phase") == "Bound":
        spec["resources"] = _with_storage_of(spec.get("resources") or {}, before.get("resources") or {})
        spec["volumeAttributesClassName"] = before.get("volumeAttributesClassName")
    if any(spec.get(name) != before.get(name) for name in spec.keys() | before.keys()):
        yield forbidden("spec", _CLAIM_UPDATES)
    yield from _check_shrinking(value, old)
    yield from immutable_faults(spec.get("volumeMode"), before.get("volumeMode"), "volumeMode")


def _with_storage_of(resources: Json, before: Json) -> Json:
    if resources.get("requests") is None:
        return resources
    return {**resources, "requests": {**resources["requests"], "storage": _storage(before)}}


def _storage(resources: Json) -> str:
    found: str = (resources.get("requests") or {}).get("storage", "0")
    return found


def _check_shrinking(value: Json, old: Json) -> Iterator[Cause]:
    """Not below what there is; a size that was never reached may be taken back."""
    now, then = (Quantity(_storage(each["spec"].get("resources") or {})) for each in (value, old))
    there = Quantity(((old.get("status") or {}).get("capacity") or {}).get("storage", "0"))
    if now < then and now <= there:
        yield forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")


def check_volume(value: Json) -> Iterator[Cause]:
    """A PersistentVolume."""
    spec = value["spec"]
    capacity = spec.get("capacity")
    if not spec.get("accessModes"):
        yield required("spec.accessModes")
    yield from _check_modes(spec)
    if not capacity:
        yield required("spec.capacity")
    if set(capacity or ()) != {"storage"}:
        yield unsupported("spec.capacity", None if capacity is None else dict(sorted(capacity.items())), ("storage",))
    for name, amount in (capacity or {}).items():
        if Quantity(amount) <= 0:
            yield invalid(f"spec.capacity[{name}]", amount, "must be greater than zero")
    yield from choice(
        spec.get("persistentVolumeReclaimPolicy"),
        "spec.persistentVolumeReclaimPolicy",
        ("Delete", "Recycle", "Retain"),
    )
    yield from _check_volume_source(spec)
    yield from _check_class_and_mode(spec)


def _check_volume_source(spec: Json) -> Iterator[Cause]:
    sources = [name for name in spec if name not in _VOLUME_FIELDS]
    yield from exactly_one(sorted(sources, key=lambda each: each == "csi"), "spec", "volume type")
    if (host := spec.get("hostPath")) is not None:
        if not host.get("path"):
            yield required("spec.hostPath.path")
        elif ".." in host["path"].split("/"):
            yield invalid("spec.hostPath.path", host["path"], "must not contain '..'")
    if (local := spec.get("local")) is not None:
        if not local.get("path"):
            yield required("spec.local.path")
        elif ".." in local["path"].split("/"):
            yield invalid("spec.local.path", local["path"], "must not contain '..'")
    if (driver := spec.get("csi")) is not None and sources == ["csi"]:
        for field in ("driver", "volumeHandle"):
            if not driver.get(field):
                yield required(f"spec.csi.{field}")


def check_volume_update(value: Json, old: Json) -> Iterator[Cause]:
    """Refuses a changed volume source."""
    spec, before = value["spec"], old["spec"]
    sources = (spec.keys() | before.keys()) - _VOLUME_FIELDS
    if any(spec.get(name) != before.get(name) for name in sources):
        said = "spec.persistentvolumesource is immutable after creation"
        yield forbidden("spec.persistentvolumesource", said)
    yield from immutable_faults(spec.get("volumeMode"), before.get("volumeMode"), "volumeMode")


def check_storage_class(value: Json) -> Iterator[Cause]:
    """A StorageClass."""
    provisioner = value.get("provisioner", "")
    if not provisioner:
        yield required("provisioner")
    else:
        yield from label_name(provisioner.lower(), "provisioner")
    yield from choice(value.get("reclaimPolicy"), "reclaimPolicy", ("Delete", "Retain"))
    if "" in (value.get("parameters") or ()):
        yield invalid("parameters", "", "field can not be empty.")
    yield from choice(value.get("volumeBindingMode"), "volumeBindingMode", ("Immediate", "WaitForFirstConsumer"))
    yield from _check_topologies(value.get("allowedTopologies") or [])


def _check_topologies(terms: list[Json]) -> Iterator[Cause]:
    """Terms that differ, and choose something."""
    known: list[Json] = [{}]
    for index, term in enumerate(terms):
        place, chosen = f"allowedTopologies[{index}].matchLabelExpressions", {}
        for number, each in enumerate(term.get("matchLabelExpressions") or ()):
            key, values = each.get("key", ""), each.get("values") or []
            if not values:
                yield required(f"{place}[{number}].values")
            yield from unique((text, f"{place}[{number}].values[{at}]") for at, text in enumerate(values))
            yield from label_name(key, f"{place}[{number}].key")
            if key in chosen:
                yield duplicate(f"{place}[{number}].key", key)
            chosen[key] = {*values}
        if chosen in known:
            yield duplicate(place, "")
        known.append(chosen)


def check_storage_class_update(value: Json, old: Json) -> Iterator[Cause]:
    """Refuses changes of a StorageClass' immutable fields."""
    for name in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
        yield from immutable_faults(value.get(name), old.get(name), name)
