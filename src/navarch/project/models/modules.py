"""Classes as the text of Python modules: one for each group and version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from navarch.errors import ConfigError
from navarch.project.models.annotations import ANY_OF_INT_OR_STRING, TypeWriter, has_plain_rules
from navarch.project.models.crds import JsonSchema, KindVersion
from navarch.project.models.expressions import (
    Brackets,
    Expression,
    assignment,
    call,
    docstring,
    keyword,
    layout,
    literal,
    text,
)
from navarch.project.models.kind_keywords import KindKeywords
from navarch.project.models.names import attributes, module_of_group, wire_name
from navarch.project.models.structs import TYPE_FIELDS, StructCatalogue, StructClass, is_struct

_FROM_TYPING: Final = frozenset({"Annotated", "Any"})
_OF_USERS: Final = frozenset({"Resource", "Spec", "Status"})
"""Names that the modules of users import: a struct of that name gets a longer one."""
_FROM_API: Final = frozenset(
    {
        "Atomic",
        "Column",
        "Dynamic",
        "Embedded",
        "IntOrString",
        "ListMap",
        "ListSet",
        "Meta",
        "Model",
        "Object",
        "Preserve",
        "Quantity",
        "RawSchema",
        "Rule",
        "Scale",
        "SchemaPatch",
        "Selectable",
        "field",
    }
)


def modules(kinds: Iterable[KindVersion]) -> dict[str, str]:
    """Returns the text of each module by its path: `cert_manager_io/v1.py`. The order of the kinds does not matter.

    Raises `ConfigError` for groups that would have one package.
    """
    by_module: dict[str, list[KindVersion]] = {}
    groups: dict[str, str] = {}
    for each in sorted(kinds, key=lambda each: each.kind):
        package = module_of_group(each.group)
        other = groups.setdefault(package, each.group)
        if other != each.group:
            raise ConfigError(
                f"expected groups with packages of their own, got {other} and {each.group}, which are both {package}; "
                f"generate them into different folders with --out"
            )
        by_module.setdefault(module_path(each), []).append(each)
    texts = {path: _Module(found).text() for path, found in sorted(by_module.items())}
    for package, group in sorted(groups.items()):
        texts[f"{package}/__init__.py"] = f'"""The group {group}: import one of its versions."""\n'
    return texts


def module_path(kind: KindVersion) -> str:
    """Returns the path of the module that has the kind."""
    return f"{module_of_group(kind.group)}/{module_of_group(kind.version)}.py"


class _Module:
    def __init__(self, kinds: list[KindVersion]) -> None:
        self._kinds = kinds
        self._structs = StructCatalogue(kinds, _FROM_API | _FROM_TYPING | _OF_USERS)
        self._types = TypeWriter(self._structs.class_of)

    def text(self) -> str:
        bodies = [self._struct(struct) for struct in self._structs.in_order()]
        bodies += [self._kind(kind) for kind in self._kinds]
        names = sorted([*self._structs.kinds.values(), *(struct.name for struct in self._structs.in_order())])
        exported = "__all__ = " + layout(literal(names), 0, used=10)
        head = [f'"""{self._kinds[0].api_version}."""', "", *self._imports(), "", exported]
        if ANY_OF_INT_OR_STRING in self._types.used:
            patch = call("SchemaPatch", [literal({"anyOf": [{"type": "integer"}, {"type": "string"}]})])
            head += ["", f"{ANY_OF_INT_OR_STRING} = {layout(patch, 0, used=20)}"]
        return "\n\n\n".join(["\n".join(head), *bodies]) + "\n"

    def _imports(self) -> Iterator[str]:
        used = self._types.used
        if "datetime" in used:
            yield "from datetime import datetime"
        if used & _FROM_TYPING:
            yield f"from typing import {', '.join(sorted(used & _FROM_TYPING))}"
        if "datetime" in used or used & _FROM_TYPING:
            yield ""
        names = sorted(used & _FROM_API, key=lambda name: (name.islower(), name))
        line = f"from navarch.api import {', '.join(names)}"
        yield line if len(line) <= 120 else "\n".join(["from navarch.api import (", *(f"    {n}," for n in names), ")"])

    def _struct(self, struct: StructClass) -> str:
        self._types.used.add("Model")
        keywords = [keyword("rules", self._types.rules(struct.schema))] if has_plain_rules(struct.schema) else []
        fields = self._fields(struct.schema)
        return _class(struct.name, ["Model", *keywords], struct.description, fields)

    def _kind(self, kind: KindVersion) -> str:
        self._types.used.add("Object")
        schema = self._structs.schemas[kind.kind]
        name = self._structs.kinds[kind.kind]
        arguments = ["Object", *KindKeywords(self._types).of(kind, name)]
        fields = self._fields(schema, skip=TYPE_FIELDS, has_status=kind.has_status)
        return _class(name, arguments, str(schema.get("description", "")), fields)

    def _fields(self, schema: JsonSchema, *, skip: tuple[str, ...] = (), has_status: bool = False) -> Iterator[str]:
        properties: dict[str, JsonSchema] = schema.get("properties", {})
        wires = [wire for wire in properties if wire not in skip]
        names = attributes(wires, of_kind=bool(skip))
        for wire in wires:
            required = wire in schema.get("required", ())
            if has_status and wire == "status" and not required and _can_be_empty(properties[wire]):
                self._types.used.add("field")
                annotation = self._types.annotation(properties[wire], optional=False)
                empty = keyword("default_factory", self._structs.class_of(properties[wire]))
                yield assignment(names[wire], annotation, call("field", [empty]))
            else:
                annotation = self._types.annotation(properties[wire], optional=not required)
                yield assignment(names[wire], annotation, self._value(names[wire], wire, required=required))
            if description := str(properties[wire].get("description", "")).strip():
                yield docstring(description, 1)

    def _value(self, name: str, wire: str, *, required: bool) -> Expression | None:
        if wire_name(name) == wire:
            return None if required else "None"
        self._types.used.add("field")
        default = [] if required else [keyword("default", "None")]
        return call("field", [keyword("name", text(wire)), *default])


def _can_be_empty(status: JsonSchema) -> bool:
    """Returns True for a status that an object can have from the beginning, so that it is never None."""
    return is_struct(status) and not ({"required", "default", "nullable"} & status.keys())


def _class(name: str, arguments: list[Expression], description: str, statements: Iterable[str]) -> str:
    head = f"class {name}"
    lines = [head + layout(Brackets("(", tuple(arguments), "):", one_line=True), 0, used=len(head))]
    body = list(statements)
    if description.strip():
        lines.append(docstring(description, 1))
        lines += [""] if body else []
    elif not body:
        lines.append("    pass")
    return "\n".join([*lines, *body])
