"""Compares two CustomResourceDefinitions and reports the effect of a change on stored objects and clients.

A pure function of two manifests. An operator calls it before it replaces a CRD; a deployment or a rollback may call it
too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any, Final, Literal

from navarch.schema.json_schema import TYPE_FIELDS, JsonSchema

Verdict = Literal["loses", "refuses", "behaves", "allows"]
"""`loses`: fields of objects are dropped. `refuses`: objects or requests that were accepted are refused.
`behaves`: everything is accepted as before, but means something else. `allows`: more is accepted than before."""


@dataclass(frozen=True, slots=True)
class CrdChange:
    """One difference: `path` is the field as users write it, `rule` the keyword of the schema that changed."""

    path: str
    rule: str
    verdict: Verdict
    detail: str

    @property
    def is_breaking(self) -> bool:
        """True if objects lose fields, or are refused although they were accepted."""
        return self.verdict in {"loses", "refuses"}

    def __str__(self) -> str:
        return f"{self.path}: {self.detail}"


def compare_crds(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[CrdChange]:
    """Returns every difference between two definitions of one kind, in the order of their fields.

    `old` is as the cluster has it, so its `status.storedVersions` count. Descriptions, printer columns, labels and
    managed fields make no difference.

    >>> def size(**schema):
    ...     schema = {"type": "object", "properties": {"size": {"type": "integer", **schema}}}
    ...     version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    ...     return {"spec": {"scope": "Namespaced", "versions": [version]}}
    >>> [str(change) for change in compare_crds(size(maximum=9), size(maximum=5))]
    ['v1 size: maximum was 9, becomes 5']
    """
    return [*_definition(old, new), *_versions(old, new)]


def compare_versions(crd: Mapping[str, Any]) -> list[CrdChange]:
    """Returns the fields that are lost between the versions of one definition because nothing converts them.

    Without a conversion webhook the server only changes the apiVersion of an object: a client that writes the object in
    a version that lacks a field removes that field. Unserved versions do not count.
    """
    if (crd["spec"].get("conversion") or {}).get("strategy") == "Webhook":
        return []
    served = [version for version in crd["spec"]["versions"] if version.get("served")]
    return [
        CrdChange(change.path, change.rule, change.verdict, f"a write as {target['name']} removes it")
        for source, target in permutations(served, 2)
        for change in _schemas(_schema(source), _schema(target), source["name"])
        if change.verdict == "loses"
    ]


def newer_versions(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Returns the versions of `old` that are newer than all of `new`: `old` is then of a later release.

    v1beta1 is newer than v1alpha1, v1 than v1beta1, v2alpha1 than v1. Names of another form count as the oldest.

    >>> def of(*names):
    ...     return {"spec": {"versions": [{"name": name} for name in names]}}
    >>> newer_versions(of("v1alpha1", "v1", "v2beta1"), of("v1beta1", "v1"))
    ['v2beta1']
    """
    newest = max((_age(version["name"]) for version in new["spec"]["versions"]), default=_OLDEST)
    return [version["name"] for version in old["spec"]["versions"] if _age(version["name"]) > newest]


_VERSION: Final = re.compile(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?")
_OLDEST: Final = (0, "", 0)


def _age(version: str) -> tuple[int, str, int]:
    """Returns what orders versions by the time at which a kind usually gets them."""
    found = _VERSION.fullmatch(version)
    return (int(found[1]), found[2] or "stable", int(found[3] or 0)) if found else _OLDEST


# The definition as a whole


def _definition(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[CrdChange]:
    before, after = old["spec"], new["spec"]
    if before["scope"] != after["scope"]:
        yield CrdChange(
            "scope", "scope", "loses", f"was {before['scope']}, becomes {after['scope']}: objects must be made anew"
        )
    if before.get("preserveUnknownFields") and not after.get("preserveUnknownFields"):
        yield CrdChange("*", "preserveUnknownFields", "loses", "fields that the schema lacks are pruned")
    theirs, ours = _by_name(before["versions"]), _by_name(after["versions"])
    stored = set((old.get("status") or {}).get("storedVersions") or ())
    for name, version in theirs.items():
        served = name in ours and ours[name].get("served")
        if name not in ours and name in stored:
            yield CrdChange(name, "versions", "loses", "the version is removed, and objects may be stored in it")
        elif version.get("served") and not served:
            yield CrdChange(name, "versions", "refuses", "the version is no longer served")
    for name in ours.keys() - theirs.keys():
        yield CrdChange(name, "versions", "allows", "the version is new")


def _versions(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[CrdChange]:
    theirs, ours = _by_name(old["spec"]["versions"]), _by_name(new["spec"]["versions"])
    for name in theirs:
        if name in ours:
            yield from _schemas(_schema(theirs[name]), _schema(ours[name]), name)
            yield from _subresources(theirs[name], ours[name], name)


def _subresources(old: Mapping[str, Any], new: Mapping[str, Any], name: str) -> Iterator[CrdChange]:
    before, after = old.get("subresources") or {}, new.get("subresources") or {}
    for part in sorted(before.keys() - after.keys()):
        yield CrdChange(f"{name} /{part}", "subresources", "refuses", "the subresource is removed")
    for part in sorted(after.keys() - before.keys()):
        verdict: Verdict = "behaves" if part == "status" else "allows"
        yield CrdChange(f"{name} /{part}", "subresources", verdict, "the subresource is new")
    selectable = {field["jsonPath"] for field in new.get("selectableFields") or ()}
    for field in old.get("selectableFields") or ():
        if field["jsonPath"] not in selectable:
            path = f"{name} {field['jsonPath'].removeprefix('.')}"
            yield CrdChange(path, "selectableFields", "refuses", "field selectors can no longer use it")


def _by_name(versions: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    return {version["name"]: version for version in versions}


def _schema(version: Mapping[str, Any]) -> JsonSchema:
    schema: JsonSchema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    known = {name: value for name, value in schema.get("properties", {}).items() if name not in TYPE_FIELDS}
    return {**schema, "properties": known, "required": [name for name in schema.get("required", ()) if name in known]}


# One schema


def _schemas(old: JsonSchema, new: JsonSchema, version: str) -> Iterator[CrdChange]:
    """Paths begin with the version: `v1 spec.size`."""
    for change in _node(old, new, ""):
        yield CrdChange(f"{version} {change.path}".rstrip(), change.rule, change.verdict, change.detail)


def _node(old: JsonSchema, new: JsonSchema, path: str) -> Iterator[CrdChange]:
    if _type(old) != _type(new) and not _holds_every(_type(old), _type(new)):
        yield CrdChange(path, "type", "refuses", f"type was {_type(old)}, becomes {_type(new)}")
        return
    if _type(old) != _type(new):
        yield CrdChange(path, "type", "allows", f"type was {_type(old)}, becomes {_type(new)}")
    for check in _CHECKS:
        yield from check(old, new, path)
    yield from _fields(old, new, path)
    if isinstance(old.get("items"), dict) and isinstance(new.get("items"), dict):
        yield from _node(old["items"], new["items"], f"{path}[]")


def _type(schema: JsonSchema) -> str:
    return "int-or-string" if schema.get("x-kubernetes-int-or-string") else str(schema.get("type") or "any")


def _holds_every(old: str, new: str) -> bool:
    """Whether each value of the old type is one of the new type."""
    return new == "any" or (old, new) in {
        ("integer", "number"),
        ("integer", "int-or-string"),
        ("string", "int-or-string"),
    }


Unlisted = JsonSchema | Literal[True] | None
"""The schema of properties that are not listed: True if it permits any value, None if they are pruned."""


def _fields(old: JsonSchema, new: JsonSchema, path: str) -> Iterator[CrdChange]:
    before, after = old.get("properties") or {}, new.get("properties") or {}
    others_before, others_after = _others(old), _others(new)
    for name, schema in before.items():
        yield from _kept_field(schema, after.get(name, others_after), _below(path, name))
    for name, schema in after.items():
        if name not in before:
            yield from _new_field(others_before, schema, _below(path, name))
    if others_before is not None and others_after is None:
        yield CrdChange(f"{path}[*]", "additionalProperties", "loses", "fields that the schema lacks are pruned")
    elif others_before is True and isinstance(others_after, dict):
        yield CrdChange(f"{path}[*]", "additionalProperties", "refuses", "values held anything, and now have a schema")
    elif isinstance(others_before, dict) and isinstance(others_after, dict):
        yield from _node(others_before, others_after, f"{path}[*]")


def _kept_field(old: JsonSchema, new: Unlisted, path: str) -> Iterator[CrdChange]:
    """`new` is the schema that replaces that of the property, be it that of unlisted ones."""
    if new is None:
        yield CrdChange(path, "properties", "loses", "the property is removed")
    elif new is not True:
        yield from _node(old, new, path)


def _new_field(old: Unlisted, new: JsonSchema, path: str) -> Iterator[CrdChange]:
    """`old` is the schema that unlisted properties had."""
    if old is None:
        yield CrdChange(path, "properties", "allows", "the property is new")
    elif old is True:
        yield CrdChange(path, "properties", "refuses", "the property held any value, and now has a schema")
    else:
        yield from _node(old, new, path)


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _others(schema: JsonSchema) -> Unlisted:
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return True
    additional = schema.get("additionalProperties")
    return None if additional is False else additional


# Keywords


def _required(old: JsonSchema, new: JsonSchema, path: str) -> Iterator[CrdChange]:
    for name in sorted(set(new.get("required") or ()) - set(old.get("required") or ())):
        below = _below(path, name)
        if "default" in new.get("properties", {}).get(name, {}):
            yield CrdChange(below, "required", "allows", "becomes required, with a default")
        else:
            yield CrdChange(below, "required", "refuses", "becomes required")


_UPPER: Final = ("maximum", "maxLength", "maxItems", "maxProperties")
_LOWER: Final = ("minimum", "minLength", "minItems", "minProperties")


def _bounds(old: JsonSchema, new: JsonSchema, path: str) -> Iterator[CrdChange]:
    for word in (*_UPPER, *_LOWER):
        before, after = old.get(word), new.get(word)
        if before == after:
            continue
        sign = 1 if word in _UPPER else -1
        tighter = after is not None and (before is None or sign * after < sign * before)
        yield _changed(path, word, before, after, "refuses" if tighter else "allows")
    for word in ("exclusiveMaximum", "exclusiveMinimum", "uniqueItems"):
        if bool(old.get(word)) != bool(new.get(word)):
            yield _changed(path, word, old.get(word), new.get(word), "refuses" if new.get(word) else "allows")


def _enum(old: JsonSchema, new: JsonSchema, path: str) -> Iterator[CrdChange]:
    before, after = old.get("enum"), new.get("enum")
    if before == after:
        return
    if after is None:
        yield CrdChange(path, "enum", "allows", "any value is allowed")
    elif before is None:
        yield CrdChange(path, "enum", "refuses", f"becomes one of {_listed(after)}")
    elif gone := [value for value in before if value not in after]:
        yield CrdChange(path, "enum", "refuses", f"no longer allows {_listed(gone)}")
    elif more := [value for value in after if value not in before]:
        yield CrdChange(path, "enum", "allows", f"also allows {_listed(more)}")


def _opaque(old: JsonSchema, new: JsonSchema, path: str) -> Iterator[CrdChange]:
    """Keywords of which nothing tells whether the new value is stricter than the old one: it counts as stricter."""
    for word in ("pattern", "format", "multipleOf", "allOf", "anyOf", "oneOf", "not"):
        before, after = old.get(word), new.get(word)
        if before != after:
            yield _changed(path, word, before, after, "allows" if after is None else "refuses")


def _rules(old: JsonSchema, new: JsonSchema, path: str) -> Iterator[CrdChange]:
    before = [rule["rule"] for rule in old.get("x-kubernetes-validations") or ()]
    after = [rule["rule"] for rule in new.get("x-kubernetes-validations") or ()]
    for rule in after:
        if rule not in before:
            yield CrdChange(path, "x-kubernetes-validations", "refuses", f"has a new rule: {rule}")
    for rule in before:
        if rule not in after:
            yield CrdChange(path, "x-kubernetes-validations", "allows", f"loses the rule: {rule}")


def _nullable(old: JsonSchema, new: JsonSchema, path: str) -> Iterator[CrdChange]:
    if old.get("nullable") and not new.get("nullable"):
        yield CrdChange(path, "nullable", "refuses", "null is no longer allowed")
    elif new.get("nullable") and not old.get("nullable"):
        yield CrdChange(path, "nullable", "allows", "null is allowed")


def _default(old: JsonSchema, new: JsonSchema, path: str) -> Iterator[CrdChange]:
    if old.get("default") != new.get("default") or ("default" in old) != ("default" in new):
        yield _changed(path, "default", old.get("default"), new.get("default"), "behaves")


def _merging(old: JsonSchema, new: JsonSchema, path: str) -> Iterator[CrdChange]:
    """How server-side apply merges a list or map. Sets and lists of maps also refuse duplicates."""
    for word, atomic in (("x-kubernetes-list-type", "atomic"), ("x-kubernetes-map-type", "granular")):
        before, after = old.get(word, atomic), new.get(word, atomic)
        if before != after:
            yield _changed(path, word, before, after, "refuses" if after in {"set", "map"} else "behaves")
    keys = "x-kubernetes-list-map-keys"
    if old.get(keys) != new.get(keys) and old.get(keys) and new.get(keys):
        yield _changed(path, keys, old[keys], new[keys], "refuses")
    embedded = "x-kubernetes-embedded-resource"
    if bool(old.get(embedded)) != bool(new.get(embedded)):
        yield _changed(
            path, embedded, old.get(embedded), new.get(embedded), "refuses" if new.get(embedded) else "allows"
        )


_CHECKS: Final[Sequence[Callable[[JsonSchema, JsonSchema, str], Iterator[CrdChange]]]] = (
    _required,
    _bounds,
    _enum,
    _opaque,
    _rules,
    _nullable,
    _default,
    _merging,
)


def _changed(path: str, word: str, before: object, after: object, verdict: Verdict) -> CrdChange:
    if after is None:
        return CrdChange(path, word, verdict, f"{word} was {_shown(before)}, is removed")
    was = "is new" if before is None else f"was {_shown(before)}"
    return CrdChange(path, word, verdict, f"{word} {was}, becomes {_shown(after)}")


_SHOWN: Final = 60


def _shown(value: object) -> str:
    text = str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _listed(values: Iterable[object]) -> str:
    return ", ".join(_shown(value) for value in values)
