"""The checks of `metadata` that all kinds share, custom ones included."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

from navarch.api.names import DNS_LABEL, DNS_SUBDOMAIN, LABEL_KEY, LABEL_VALUE
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_causes import forbidden, invalid, required, too_long
from navarch.cluster.server.wire.status_errors import MOST_CAUSES
from navarch.errors import Cause

FIELD_IS_IMMUTABLE = "field is immutable"
_ANNOTATIONS_LIMIT_BYTES = 256 * 1024
_IMMUTABLE = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
_OWNER = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
_FIELDS_TYPES = frozenset({"", "FieldsV1"})
_MANAGERS = frozenset({"Apply", "Update"})
_MANAGER_LIMIT_BYTES = 128

key_faults = lru_cache(4096)(LABEL_KEY.faults)
value_faults = lru_cache(4096)(LABEL_VALUE.faults)
"""Both are asked about the same few texts all the time."""


def metadata_faults(
    value: Json,
    *,
    namespaced: bool,
    name_faults: Callable[[str], Sequence[str]] = DNS_SUBDOMAIN.faults,
    path: str = "metadata",
) -> list[Cause]:
    """What is wrong with the metadata of a new object, after its name was generated.

    `name_faults` gives the sentences about a name: kinds differ.
    """
    metadata = value.get("metadata") or {}
    return [
        *_name_faults(metadata, name_faults, path),
        *_namespace_faults(metadata, f"{path}.namespace", namespaced=namespaced),
        *_generation_faults(metadata, path),
        *_shared_faults(metadata, path),
        *_finalizer_faults(metadata.get("finalizers") or (), f"{path}.finalizers"),
        *_managed_fields_faults(metadata, path),
    ]


def metadata_update_faults(value: Json, old: Json, path: str = "metadata") -> list[Cause]:
    """What is wrong with the metadata of an object that takes the place of `old`."""
    metadata, before = value.get("metadata") or {}, old.get("metadata") or {}
    return [
        *_new_finalizer_faults(metadata, before, f"{path}.finalizers"),
        *_decrement_faults(metadata, before, path),
        *(fault for name in _IMMUTABLE for fault in _immutable_metadata(metadata, before, name, path)),
        *_shared_faults(metadata, path),
        *_managed_fields_faults(metadata, path),
        *_finalizer_faults(metadata.get("finalizers") or (), f"{path}.finalizers"),
    ]


def version_faults(value: Json) -> list[Cause]:
    """For kinds that are only replaced by whoever says which version of the object is replaced."""
    version = value.get("metadata", {}).get("resourceVersion", "")
    return [] if version else [invalid("metadata.resourceVersion", 0, "must be specified for an update")]


def label_faults(labels: Mapping[str, str] | None, path: str) -> list[Cause]:
    """What is wrong with labels, or with the labels of a selector; of very many faults the first."""
    return list(islice(_label_faults(labels or {}, path), MOST_CAUSES))


def _label_faults(labels: Mapping[str, str], path: str) -> Iterator[Cause]:
    for key, value in labels.items():
        yield from (invalid(path, key, said) for said in key_faults(key))
        yield from (invalid(path, value, said) for said in value_faults(value))


def annotation_faults(annotations: Mapping[str, str] | None, path: str) -> list[Cause]:
    """What is wrong with annotations: their keys, and their size together."""
    if not annotations:
        return []
    found = (invalid(path, key, said) for key in annotations for said in key_faults(key.lower()))
    faults = list(islice(found, MOST_CAUSES))
    if _size(annotations) > _ANNOTATIONS_LIMIT_BYTES:
        faults.append(too_long(path, _ANNOTATIONS_LIMIT_BYTES))
    return faults


def selector_faults(selector: Json | None, path: str) -> list[Cause]:
    """What is wrong with a LabelSelector."""
    if not selector:
        return []
    faults = label_faults(selector.get("matchLabels"), f"{path}.matchLabels")
    for index, requirement in enumerate(selector.get("matchExpressions") or ()):
        faults.extend(_requirement_faults(requirement, f"{path}.matchExpressions[{index}]"))
    return faults


def immutable_faults(new: Any, old: Any, field: str, detail: str = FIELD_IS_IMMUTABLE) -> list[Cause]:
    """A field that may not change: missing and empty are the same."""
    return [] if (new or None) == (old or None) else [invalid(field, new, detail)]


def _requirement_faults(requirement: Json, path: str) -> list[Cause]:
    operator, values = requirement.get("operator", ""), requirement.get("values") or ()
    faults: list[Cause] = []
    if operator in {"In", "NotIn"}:
        if not values:
            faults.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in {"Exists", "DoesNotExist"}:
        if values:
            said = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            faults.append(forbidden(f"{path}.values", said))
    else:
        faults.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    key = requirement.get("key", "")
    faults.extend(invalid(f"{path}.key", key, said) for said in key_faults(key))
    for index, value in enumerate(values):
        faults.extend(invalid(f"{path}.values[{index}]", value, said) for said in value_faults(value))
    return faults


def _name_faults(metadata: Json, name_faults: Callable[[str], Sequence[str]], path: str) -> list[Cause]:
    prefix, name = metadata.get("generateName", ""), metadata.get("name", "")
    faults = [
        invalid(f"{path}.generateName", prefix, said) for said in (name_faults(_masked(prefix)) if prefix else ())
    ]
    if not name:
        return [*faults, required(f"{path}.name", "name or generateName is required")]
    return [*faults, *(invalid(f"{path}.name", name, said) for said in name_faults(name))]


def _masked(prefix: str) -> str:
    """Something is appended to a prefix, so a dash may end it."""
    return f"{prefix[:-2]}a" if len(prefix) > 1 and prefix.endswith("-") else prefix


def _namespace_faults(metadata: Json, field: str, *, namespaced: bool) -> list[Cause]:
    namespace = metadata.get("namespace", "")
    if not namespaced:
        return [forbidden(field, "not allowed on this type")] if namespace else []
    if not namespace:
        return [required(field)]
    return [invalid(field, namespace, said) for said in DNS_LABEL.faults(namespace)]


def _generation_faults(metadata: Json, path: str) -> list[Cause]:
    generation = metadata.get("generation", 0)
    field = f"{path}.generation"
    return [invalid(field, generation, "must be greater than or equal to 0")] if generation < 0 else []


def _decrement_faults(metadata: Json, before: Json, path: str) -> list[Cause]:
    generation = metadata.get("generation", 0)
    smaller = generation < before.get("generation", 0)
    return [invalid(f"{path}.generation", generation, "must not be decremented")] if smaller else []


def _immutable_metadata(metadata: Json, before: Json, name: str, path: str) -> list[Cause]:
    return immutable_faults(metadata.get(name), before.get(name), f"{path}.{name}")


def _shared_faults(metadata: Json, path: str) -> list[Cause]:
    return [
        *label_faults(metadata.get("labels"), f"{path}.labels"),
        *annotation_faults(metadata.get("annotations"), f"{path}.annotations"),
        *_owner_faults(metadata.get("ownerReferences") or (), f"{path}.ownerReferences"),
    ]


def _size(annotations: Mapping[str, str]) -> int:
    characters = sum(len(key) + len(value) for key, value in annotations.items())
    if characters * 4 <= _ANNOTATIONS_LIMIT_BYTES:
        return characters
    return sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())


def _owner_faults(owners: Sequence[Json], path: str) -> list[Cause]:
    faults: list[Cause] = []
    controller = ""
    for owner in owners:
        faults.extend(_one_owner_faults(owner, path))
        if owner.get("controller"):
            current = f"{owner.get('kind', '')}/{owner.get('name', '')}"
            if controller:
                said = "Only one reference can have Controller set to true. Found"
                shown = [_in_go_order(each) for each in owners]
                faults.append(invalid(path, shown, f'{said} "true" in references for {controller} and {current}'))
            controller = controller or current
    return faults


def _in_go_order(owner: Json) -> Json:
    return {name: owner[name] for name in _OWNER if name in owner}


def _one_owner_faults(owner: Json, path: str) -> list[Cause]:
    version = owner.get("apiVersion", "")
    faults = []
    if not version.rpartition("/")[2]:
        faults.append(invalid(f"{path}.apiVersion", version, "version must not be empty"))
    faults += [
        invalid(f"{path}.{name}", "", "must not be empty") for name in ("kind", "name", "uid") if not owner.get(name)
    ]
    if (version, owner.get("kind")) == ("v1", "Event"):
        faults.append(invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner"))
    return faults


def _finalizer_faults(finalizers: Sequence[str], path: str) -> list[Cause]:
    faults = [invalid(path, each, said) for each in finalizers for said in key_faults(each)]
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        said = "finalizer orphan and foregroundDeletion cannot be both set"
        faults.append(invalid(path, finalizers, said))
    return faults


def _new_finalizer_faults(metadata: Json, before: Json, path: str) -> list[Cause]:
    """Nothing may keep an object longer once its deletion was asked for."""
    if not before.get("deletionTimestamp"):
        return []
    extra = sorted({*(metadata.get("finalizers") or ())} - {*(before.get("finalizers") or ())})
    if not extra:
        return []
    shown = ", ".join(f'"{each}"' for each in extra)
    said = "no new finalizers can be added if the object is being deleted, found new finalizers"
    return [forbidden(path, f"{said} []string{{{shown}}}")]


def _managed_fields_faults(metadata: Json, path: str) -> list[Cause]:
    faults: list[Cause] = []
    for index, entry in enumerate(metadata.get("managedFields") or ()):
        field = f"{path}.managedFields[{index}]"
        if entry.get("operation") not in _MANAGERS:
            faults.append(invalid(f"{field}.operation", entry.get("operation", ""), "must be `Apply` or `Update`"))
        if entry.get("fieldsType", "") not in _FIELDS_TYPES:
            faults.append(invalid(f"{field}.fieldsType", entry["fieldsType"], "must be `FieldsV1`"))
        if len(entry.get("manager", "").encode()) > _MANAGER_LIMIT_BYTES:
            faults.append(too_long(f"{field}.manager", _MANAGER_LIMIT_BYTES))
    return faults
