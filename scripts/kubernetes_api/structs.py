"""Schemas as classes: which fields they have, which of those must be given, and what stands in for the others."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kubernetes_api.annotations import TIMES, WELL_KNOWN, Annotation, annotate, reference
from kubernetes_api.kinds import ServedKind, served_kinds
from kubernetes_api.naming import attribute, camel, class_name, module_of
from navarch.k8s.published import META, Published, references_in

Json = dict[str, Any]
_OBJECT_META = f"{META}.ObjectMeta"
_ZEROS = {"int": "0", "float": "0.0", "bool": "False", "str": '""'}
_SENSITIVE = {
    "io.k8s.api.core.v1.Secret": ("data", "string_data"),
    "io.k8s.api.authentication.v1.TokenRequestStatus": ("token",),
    "io.k8s.api.authentication.v1.TokenReviewSpec": ("token",),
}
"""Fields that hold secrets: the published schemas do not say it."""


@dataclass(frozen=True)
class Field:
    """One field: its names, its type, and its default as an argument of `field` (empty: it must be given)."""

    wire: str
    annotation: Annotation
    default: str = ""

    @property
    def name(self) -> str:
        """The Python name."""
        return attribute(self.wire)

    @property
    def renamed(self) -> bool:
        """Whether msgspec would give it another wire name."""
        return camel(self.name) != self.wire


@dataclass(frozen=True)
class StructClass:
    """One class; `kind` says how its objects are served, if they are objects."""

    schema: str
    fields: tuple[Field, ...]
    kind: ServedKind | None = None

    @property
    def name(self) -> str:
        """The name of the class."""
        return class_name(self.schema)

    @property
    def sensitive(self) -> tuple[str, ...]:
        """Its fields that must not be shown."""
        return _SENSITIVE.get(self.schema, ())

    @property
    def structs(self) -> frozenset[str]:
        """The structs that its fields name."""
        return frozenset().union(*(field.annotation.structs for field in self.fields))


class Catalogue:
    """The classes for every kind that is served, and for every struct they reach."""

    def __init__(self, published: Published) -> None:
        self._published = published
        self._kinds = served_kinds(published)
        self._states = {
            target
            for schema in self._kinds
            if (target := reference(published.schema(schema)["properties"].get("status", {})))
        }

    @cached_property
    def classes(self) -> dict[str, StructClass]:
        """The classes by schema, sorted."""
        found: set[str] = set()
        open_ends = sorted(self._kinds)
        while open_ends:
            name = open_ends.pop()
            if name not in found and name not in WELL_KNOWN:
                found.add(name)
                open_ends.extend(references_in(self._published.schema(name)))
        return {name: self._class(name) for name in sorted(found)}

    @property
    def modules(self) -> dict[tuple[str, str], list[StructClass]]:
        """The classes by group and version."""
        modules: dict[tuple[str, str], list[StructClass]] = {}
        for name, struct in self.classes.items():
            modules.setdefault(module_of(name), []).append(struct)
        return modules

    def _class(self, name: str) -> StructClass:
        schema = self._published.schema(name)
        if schema.get("type") != "object":
            raise ValueError(f"{name} is no struct: give it a type in WELL_KNOWN")
        fields = [
            self._field(name, wire, inner, required=wire in schema.get("required", ()))
            for wire, inner in sorted(schema.get("properties", {}).items())
            if not (name in self._kinds and wire in {"apiVersion", "kind", "metadata"})
        ]
        fields.sort(key=lambda field: bool(field.default))
        return StructClass(name, tuple(fields), self._kinds.get(name))

    def _field(self, owner: str, wire: str, schema: Json, *, required: bool) -> Field:
        try:
            annotation = annotate(schema)
        except ValueError as error:
            raise ValueError(f"{owner}, field {wire}: {error}") from error
        target = reference(schema)
        if target and self._is_part(owner, wire):
            must_be_given = self._published.schema(target).get("required") and target not in self._states
            return Field(wire, annotation, "" if must_be_given else f"default_factory={annotation.text}")
        if not required or target in TIMES:
            return Field(wire, annotation.or_none(), "default=None")
        return Field(wire, annotation, _zero(annotation) if owner in self._states else "")

    def _is_part(self, owner: str, wire: str) -> bool:
        """Whether a field is the metadata, spec or status of an object or of a template: these are never None."""
        if wire not in {"metadata", "spec", "status"}:
            return False
        metadata = self._published.schema(owner)["properties"].get("metadata", {})
        return reference(metadata) == _OBJECT_META


def _zero(annotation: Annotation) -> str:
    """Go's zero value: a new object has no status yet, and a server sends the zeros of what it requires."""
    if annotation.text in _ZEROS:
        return f"default={_ZEROS[annotation.text]}"
    if annotation.text.startswith(("list[", "Annotated[list[")):
        return "default_factory=list"
    raise ValueError(f"no zero value for a required {annotation.text} in a status")
