"""The class keywords of a kind: its names, versions, columns, subresources, and what its root cannot say otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from navarch.api.merge_patch import create_merge_patch
from navarch.project.models.annotations import RULES, TypeWriter, has_plain_rules, undescribed
from navarch.project.models.crds import JsonSchema, KindVersion
from navarch.project.models.expressions import Expression, call, keyword, literal, text, tuple_of
from navarch.project.models.structs import TYPE_FIELDS

_SCALE: Final = {
    "specReplicasPath": "spec_replicas",
    "statusReplicasPath": "status_replicas",
    "labelSelectorPath": "selector",
}
_SCALE_DEFAULTS: Final = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
_AGE: Final = ("Age", ".metadata.creationTimestamp")


@dataclass(frozen=True, slots=True)
class KindKeywords:
    """Writes class keywords; `types` gets the names that the module must import for them."""

    types: TypeWriter

    def of(self, kind: KindVersion, class_name: str) -> Iterator[Expression]:
        """Yields the keywords that differ from their defaults."""
        yield keyword("group", text(kind.group))
        yield keyword("version", text(kind.version))
        for name, value, usual in _plain(kind, class_name):
            if value and value != usual:
                yield keyword(name, text(value))
        for name, values in (("short_names", kind.short_names), ("categories", kind.categories)):
            if values:
                yield keyword(name, tuple_of(map(text, values)))
        for name in ("namespaced", "has_status", "served", "storage"):
            if not getattr(kind, name):
                yield keyword(name, "False")
        yield from self._columns(kind)
        yield from self._scale(kind)
        patch = _root_patch(kind.schema)
        given = {"deprecated": kind.deprecated, "labels": kind.labels, "annotations": kind.annotations}
        for name, content in {**given, "schema_patch": patch}.items():
            if content:
                yield keyword(name, literal(content))
        if has_plain_rules(kind.schema):
            yield keyword("rules", self.types.rules(kind.schema))

    def _columns(self, kind: KindVersion) -> Iterator[Expression]:
        if not kind.columns:
            return
        self.types.used.add("Column")
        yield keyword("columns", tuple_of(map(_column, kind.columns)))
        if not any(_AGE[0] == each.get("name") or _AGE[1] == each.get("jsonPath") for each in kind.columns):
            yield keyword("age_column", "False")

    def _scale(self, kind: KindVersion) -> Iterator[Expression]:
        if kind.scale is None:
            return
        self.types.used.add("Scale")
        given = {key: kind.scale.get(key) or _SCALE_DEFAULTS.get(key) for key in _SCALE}
        paths = ((name, given[key]) for key, name in _SCALE.items() if given[key] != _SCALE_DEFAULTS.get(key))
        yield keyword("scale", call("Scale", [keyword(name, text(path or "")) for name, path in paths]))


def _plain(kind: KindVersion, class_name: str) -> Iterator[tuple[str, str, str]]:
    """Yields the names of the kind, each with the one that it has without a keyword."""
    yield "kind", kind.kind, class_name
    yield "plural", kind.plural, ""
    yield "singular", kind.singular, kind.kind.lower()
    yield "list_kind", kind.list_kind, f"{kind.kind}List"


def _column(column: Mapping[str, Any]) -> Expression:
    arguments = [text(column["name"]), keyword("path", text(column["jsonPath"])), keyword("type", text(column["type"]))]
    further = (key for key in ("format", "description", "priority") if column.get(key))
    return call("Column", [*arguments, *(keyword(key, literal(column[key])) for key in further)])


def _root_patch(schema: JsonSchema) -> JsonSchema:
    """Returns what the class of a kind cannot say of its root otherwise."""
    properties = schema["properties"]
    required = [wire for wire in properties if wire in schema.get("required", ()) and wire not in TYPE_FIELDS]
    derived: JsonSchema = {"type": "object"} | ({"required": required} if required else {})
    derived["properties"] = {wire: {"type": "string"} for wire in TYPE_FIELDS[:2]} | {"metadata": {"type": "object"}}
    said = {"properties", RULES} if has_plain_rules(schema) else {"properties"}
    wanted = undescribed({key: value for key, value in schema.items() if key not in said})
    if required and set(required) == set(wanted["required"]):
        wanted["required"] = required
    wanted["properties"] = {wire: undescribed(properties[wire]) for wire in TYPE_FIELDS if wire in properties}
    patch: JsonSchema = create_merge_patch(derived, wanted)
    return patch
