"""Finds the structs of kinds: objects with properties, each of which becomes a class. Equal ones become one class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from navarch.project.models.crds import JsonSchema, KindVersion
from navarch.project.models.names import class_names, class_part, classes_of_kinds, endings_of

TYPE_FIELDS: Final = ("apiVersion", "kind", "metadata")
_PARTS: Final = ("spec", "status")
SELECTABLE: Final = "navarch/selectable"
"""Marks a field in a schema as selectable, so that structs with and without it are different."""
_OWNER: Final = "navarch/owner"
"""Names the kind of a spec or status in its schema, so that each kind has its own."""
MARKS: Final = frozenset({SELECTABLE, _OWNER})


def is_struct(schema: Mapping[str, Any]) -> bool:
    """Returns True for a schema that becomes a class: an object whose fields are known, even if there are none."""
    if schema.get("type") != "object" or "additionalProperties" in schema:
        return False
    return "properties" in schema or not schema.get("x-kubernetes-preserve-unknown-fields")


def struct_key(schema: JsonSchema) -> bytes:
    """Returns what tells the class of a struct from others: its fields with their descriptions, and its rules.

    The other keywords, such as a default, belong to the field that has the struct.
    """
    content = {key: schema.get(key) for key in ("properties", "required", "x-kubernetes-validations", _OWNER)}
    return msgspec.json.encode(content, order="sorted")


@dataclass(slots=True)
class StructClass:
    """The class of all structs with one key."""

    schema: JsonSchema
    description: str
    """Of the items or values that have the class; other structs are described by their field."""
    paths: list[tuple[str, ...]] = field(default_factory=list)
    """The parts of its name at each place: the kind, then the fields down to it."""
    name: str = ""


class StructCatalogue:
    """The structs of the kinds of one module, with the names of their classes."""

    def __init__(self, kinds: Sequence[KindVersion], reserved: Iterable[str]) -> None:
        """`reserved` are names that the module needs otherwise."""
        self._structs: dict[bytes, StructClass] = {}
        self._by_place: dict[int, StructClass] = {}
        """By the identity of their schema in `schemas`: a key has all that is below."""
        self.kinds = classes_of_kinds([each.kind for each in kinds], reserved)
        """The classes of the kinds."""
        self.schemas = {each.kind: _marked(each) for each in kinds}
        """The schemas of the kinds, with marks."""
        for kind, schema in self.schemas.items():
            for wire, child in schema["properties"].items():
                if wire not in TYPE_FIELDS:
                    self._collect(child, (class_part(kind), class_part(wire)))
        self._name({*reserved, *self.kinds.values()})

    def class_of(self, schema: JsonSchema) -> str:
        """Returns the name of the class of a struct in `schemas`."""
        return self._by_place[id(schema)].name

    def in_order(self) -> Iterator[StructClass]:
        """Yields each class after those that it names."""
        yield from self._structs.values()

    def _collect(self, schema: JsonSchema, path: tuple[str, ...], description: str = "") -> None:
        """Adds the structs in a schema, the inner ones first."""
        if not is_struct(schema):
            for keyword in ("items", "additionalProperties"):
                inner = schema.get(keyword)
                if isinstance(inner, dict):
                    one = (*path[:-1], class_part(path[-1], item=True))
                    self._collect(inner, one, str(inner.get("description", "")))
            return
        for wire, child in schema.get("properties", {}).items():
            self._collect(child, (*path, class_part(wire)))
        struct = self._structs.setdefault(struct_key(schema), StructClass(schema, description))
        struct.description = struct.description or description
        struct.paths.append(path)
        self._by_place[id(schema)] = struct

    def _name(self, taken: set[str]) -> None:
        """Names the classes: those of specs and statuses after their kind, the others as briefly as possible."""
        for struct in self._structs.values():
            name = "".join(struct.paths[0])
            if _OWNER in struct.schema and name not in taken:
                struct.name = name
        others = [struct for struct in self._structs.values() if not struct.name]
        given = {struct.name for struct in self._structs.values()}
        names = class_names([_naming_path(struct) for struct in others], taken | given)
        for struct, name in zip(others, names, strict=True):
            struct.name = name


def _naming_path(struct: StructClass) -> tuple[str, ...]:
    """Returns the path whose parts make the name: the shortest one that ends with the last part of most of them.

    Where there is no such part, what most of them have in common: a struct of `passwordSecretRef`, `tokenSecretRef` and
    `keySecretRef` is a `SecretRef`. The spec is left out: most structs are in it.
    """
    parts = Counter(path[-1] for path in struct.paths)
    common = min(parts, key=lambda part: (-parts[part], part))
    if parts[common] * 2 < len(struct.paths):
        endings = Counter(ending for path in struct.paths for ending in endings_of(path[-1]))
        common = min(endings, key=lambda ending: (-endings[ending], -len(ending), ending))
    path = min((path for path in struct.paths if path[-1].endswith(common)), key=lambda path: (len(path), path))
    before = (path[0], *path[2:-1]) if len(path) > 2 and path[1] == "Spec" else path[:-1]
    return (*before, common)


def _marked(kind: KindVersion) -> JsonSchema:
    """Returns the schema with marks at its spec, its status and each selectable field."""
    schema = kind.schema
    for part in _PARTS:
        schema = _with_mark(schema, [part], _OWNER, kind.kind)
    for path in kind.selectable:
        schema = _with_mark(schema, path.strip(".").split("."), SELECTABLE, True)
    return schema


def _with_mark(schema: JsonSchema, path: list[str], mark: str, value: Any) -> JsonSchema:
    if not path:
        return {**schema, mark: value}
    properties = schema.get("properties", {})
    if path[0] not in properties:
        return schema
    return {**schema, "properties": {**properties, path[0]: _with_mark(properties[path[0]], path[1:], mark, value)}}
