"""Builds the structural schema of a class."""

from __future__ import annotations

import copy
import datetime as dt
import decimal
import types
import typing
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec

from navarch.api.codec import to_builtins
from navarch.api.kind import Dynamic
from navarch.api.markers import (
    NOT_GIVEN,
    Column,
    Immutable,
    IntOrStringMarker,
    Meta,
    OneOf,
    Preserve,
    RawSchema,
    SchemaPatch,
    Selectable,
)
from navarch.api.model import Default, fields_of
from navarch.api.resource import Object
from navarch.errors import DefinitionError
from navarch.schema.generation.annotations import (
    Annotation,
    SchemaLocation,
    enum_schema,
    literal_values,
    merge_tagged,
    scalar_schema,
    take_apart,
    union_members,
)
from navarch.schema.generation.docstrings import class_description, field_descriptions, shortened
from navarch.schema.generation.field_markers import (
    UNREADABLE_BYTES,
    apply_markers,
    apply_schema_patch,
    one_of_rule,
    removal_guard,
    rule_schema,
    well_formed_schema,
)
from navarch.schema.inspection.structural import broken_rules
from navarch.schema.json_schema import JsonSchema

_LISTS = {list, tuple, set, frozenset, Sequence, AbstractSet}
_SETS = {set, frozenset, AbstractSet}
_MAPS = {dict, Mapping, MutableMapping}
_REMEDIES = {dt.timedelta: "use Duration", decimal.Decimal: "use Quantity, or str"}
_BUILT_IN = "navarch.k8s."
_KEY_DEFAULTS = {"protocol": "TCP"}
_TYPE_FIELDS = ("api_version", "kind", "metadata")


@dataclass(slots=True)
class Draft:
    """The schema of a kind, with the columns and selectable fields of its markers.

    `places` maps each path in the schema to the author's name of it.
    """

    schema: JsonSchema = field(default_factory=dict)
    columns: list[tuple[str, Column]] = field(default_factory=list)
    selectable: list[str] = field(default_factory=list)
    places: dict[str, str] = field(default_factory=dict)


def draft(kind: type[Object], *, description_limit: int | None = None) -> Draft:
    """Returns the unchecked schema of a kind. Raises `DefinitionError` with every field that no schema can describe."""
    builder = _SchemaBuilder(Draft(), description_limit)
    with builder.gathering():
        builder.draft.schema = builder.described_root(kind)
    if builder.faults:
        raise DefinitionError("\n".join(dict.fromkeys(builder.faults)))
    return builder.draft


@dataclass(slots=True)
class _SchemaBuilder:
    draft: Draft
    description_limit: int | None
    under_way: list[Any] = field(default_factory=list)
    """The structs around the place being described; one that appears twice would never end."""
    faults: list[str] = field(default_factory=list)

    @contextmanager
    def gathering(self) -> Iterator[None]:
        """What one field cannot be is kept, so that the next one is looked at too."""
        depth = len(self.under_way)
        try:
            yield
        except DefinitionError as error:
            self.faults.append(str(error))
            del self.under_way[depth:]

    def described_root(self, kind: type[Object]) -> JsonSchema:
        """The schema of the kind itself."""
        where = SchemaLocation(kind.__name__)
        schema = self._described(self.whole_object(kind, where), Meta(), "")
        if kind.__declaration__.schema_patch is not None:
            apply_schema_patch(schema, SchemaPatch(kind.__declaration__.schema_patch), where)
        return schema

    def whole_object(self, kind: Any, where: SchemaLocation) -> JsonSchema:
        """A kind at the root, or embedded in another one: its type and metadata are the API server's business."""
        schema = self._struct(kind, where, skip=_TYPE_FIELDS)
        fixed: JsonSchema = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
        metadata = take_apart(next(info.type for info in fields_of(kind) if info.name == "metadata"))
        own = metadata.every(RawSchema)
        fixed["metadata"] = _written(own[-1], where) if own else {"type": "object"}
        schema["properties"] = fixed | schema.get("properties", {})
        return schema

    def value(self, annotation: Any, where: SchemaLocation, *, description: str = "") -> JsonSchema:
        """The schema of one value, with its markers and description."""
        apart = take_apart(annotation)
        self.draft.places[where.path] = where.place
        schema = self._described(self._core(apart, where), apart.meta(), description)
        apply_markers(schema, apart, where)
        _complete_keys(schema, apart.core)
        self._collect(apart, where)
        return schema

    def _described(self, schema: JsonSchema, meta: Meta, description: str) -> JsonSchema:
        """What is said of the field stands before what its class says of itself."""
        of_class = schema.pop("description", "")
        text = meta.description if meta.description is not None else description or of_class
        text = shortened(text, self.description_limit if meta.description_limit is None else meta.description_limit)
        return {"description": text, **schema} if text else schema

    def _collect(self, apart: Annotation, where: SchemaLocation) -> None:
        for marker in (*apart.every(Column), *apart.every(Selectable)):
            if where.json_path is None:
                raise DefinitionError(
                    f"{where.place}: expected {type(marker).__name__} on a field with one place in the object, got one "
                    f"inside a list or map; remove it, or give columns=(Column(..., path=..., type=...),) on the class"
                )
        self.draft.columns += [(where.json_path or "", column) for column in apart.every(Column)]
        if apart.has(Selectable):
            self.draft.selectable.append(where.json_path or "")

    def _core(self, apart: Annotation, where: SchemaLocation) -> JsonSchema:
        raw = apart.every(RawSchema)
        if raw:
            return _written(raw[-1], where)
        if apart.has(IntOrStringMarker):
            return {"x-kubernetes-int-or-string": True}
        known = scalar_schema(apart.core)
        if known is not None:
            return known
        values = enum_schema(apart.core)
        if values is not None:
            return values or _refuse(
                where,
                "an enum whose values are all strings, integers, numbers or booleans",
                apart.core,
                "use one type of value",
            )
        return self._compound(apart, where)

    def _compound(self, apart: Annotation, where: SchemaLocation) -> JsonSchema:
        core = apart.core
        origin = typing.get_origin(core) or core
        if _is_struct(core):
            return self._nested(apart, where)
        if origin in _LISTS:
            return self._list(core, origin, where)
        if origin in _MAPS or origin is Dynamic:
            return self._map(core, origin, where)
        if len(union_members(core)) > 1:
            return self._union(core, where)
        if core is types.NoneType:
            return _refuse(where, "a type with values", "None", "remove the field")
        remedy = _REMEDIES.get(core, "use a Model, or say what it is with RawSchema({...})")
        return _refuse(where, "a type that JSON can hold", core, remedy)

    def _nested(self, apart: Annotation, where: SchemaLocation) -> JsonSchema:
        core = apart.core
        if core in self.under_way:
            if apart.has(Preserve):
                return {"type": "object"}
            return _refuse(
                where, "a schema that ends", f"{_name(core)} inside itself", "mark this field with Preserve()"
            )
        if isinstance(core, type) and issubclass(core, Object):
            return self.whole_object(core, where) | {"x-kubernetes-embedded-resource": True}
        return self._struct(core, where)

    def _list(self, core: Any, origin: Any, where: SchemaLocation) -> JsonSchema:
        arguments = typing.get_args(core)
        if origin is tuple and (len(arguments) != 2 or arguments[1] is not ...):
            return _refuse(where, "items of one type", core, "use list[...], or a Model with a field for each")
        schema: JsonSchema = {"type": "array", "items": self._element(arguments[0] if arguments else Any, where.item())}
        return schema | ({"x-kubernetes-list-type": "set"} if origin in _SETS else {})

    def _map(self, core: Any, origin: Any, where: SchemaLocation) -> JsonSchema:
        if origin is Dynamic:
            return {
                "type": "object",
                "x-kubernetes-embedded-resource": True,
                "x-kubernetes-preserve-unknown-fields": True,
            }
        keys, values = typing.get_args(core) or (str, Any)
        key = take_apart(keys).core
        if (scalar_schema(key) or enum_schema(key) or {}).get("type") != "string":
            return _refuse(where, "a map with string keys", core, "use dict[str, ...]")
        if take_apart(values).core in {Any, object} and take_apart(values).markers == ():
            return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        return {"type": "object", "additionalProperties": self._element(values, where.value())}

    def _element(self, annotation: Any, where: SchemaLocation) -> JsonSchema:
        """An item of a list or a value of a map: it cannot be unset, so None is null there."""
        schema = self.value(annotation, where)
        return schema | ({"nullable": True} if take_apart(annotation).optional else {})

    def _union(self, core: Any, where: SchemaLocation) -> JsonSchema:
        members = union_members(core)
        if not all(_is_struct(member) for member in members):
            return _refuse(where, "one type", core, "use IntOrString, a Model, or say what it is with RawSchema({...})")
        if not all(_class_of(member).__struct_config__.tag is not None for member in members):
            remedy = f"use one Model with a field for each and one_of=(OneOf({', '.join(repr(_name(m).lower()) for m in members)}),)"
            return _refuse(where, "one type", core, remedy)
        found = [(_class_of(member), self._struct(member, where, defaults=False)) for member in members]
        return merge_tagged(found, where)

    def _struct(
        self, struct: Any, where: SchemaLocation, *, skip: tuple[str, ...] = (), defaults: bool = True
    ) -> JsonSchema:
        self.draft.places[where.path] = where.place
        if _class_of(struct).__struct_config__.array_like:
            _refuse(where, "a struct that is an object", f"{_name(struct)}, an array", "remove array_like=True")
        self.under_way.append(struct)
        description = class_description(_class_of(struct))
        schema: JsonSchema = {"description": description, "type": "object"} if description else {"type": "object"}
        properties, required = self._fields(struct, where, skip, defaults=defaults)
        self.under_way.pop()
        if properties:
            schema["properties"] = properties
        if required:
            schema["required"] = required
        with self.gathering():
            rules = self._rules(struct, where)
            schema |= {"x-kubernetes-validations": rules} if rules else {}
        return schema

    def _fields(
        self, struct: Any, where: SchemaLocation, skip: tuple[str, ...], *, defaults: bool
    ) -> tuple[JsonSchema, list[str]]:
        descriptions = field_descriptions(_class_of(struct))
        properties: JsonSchema = {}
        required: list[str] = []
        for info in fields_of(struct):
            apart = take_apart(info.type)
            if info.name in skip or apart.core is types.NoneType:
                continue
            inner = where.field(info.name, info.encode_name)
            with self.gathering():
                schema = self.value(info.type, inner, description=descriptions.get(info.name, ""))
                properties[info.encode_name] = schema
                if (info.required and not apart.optional) or (defaults and not _add_default(schema, info, inner)):
                    required.append(info.encode_name)
        return properties, required

    def _rules(self, struct: Any, where: SchemaLocation) -> list[JsonSchema]:
        cls = _class_of(struct)
        rules = [rule_schema(rule) for rule in getattr(cls, "__rules__", ())]
        rules += [one_of_rule(group, self._group(struct, group, where)) for group in getattr(cls, "__one_of__", ())]
        for info in fields_of(struct):
            apart = take_apart(info.type)
            removable = apart.optional or apart.meta().nullable or not (info.required or _has_default(info))
            if removable:
                rules += [removal_guard(info.encode_name, marker.message) for marker in apart.every(Immutable)]
        return rules

    def _group(self, struct: Any, group: OneOf, where: SchemaLocation) -> list[str]:
        infos = fields_of(struct)
        known = {info.encode_name: info for info in infos} | {info.name: info for info in infos}
        for name in group.fields:
            if name not in known:
                _refuse(
                    where,
                    f"one_of to name fields of {_name(struct)}",
                    repr(name),
                    f"use some of {', '.join(i.name for i in infos)}",
                )
            if not take_apart(known[name].type).optional:
                _refuse(
                    where.field(name, name),
                    "a field of one_of that can be unset",
                    known[name].type,
                    "write `| None = None`",
                )
            if take_apart(known[name].type).core is bytes:
                _refuse(where.field(name, name), "a field of one_of that rules can read", "bytes", UNREADABLE_BYTES)
        return [known[name].encode_name for name in group.fields]


def _written(raw: RawSchema, where: SchemaLocation) -> JsonSchema:
    """A schema written by hand, as a copy."""
    return well_formed_schema(copy.deepcopy(raw.schema), "RawSchema", where)


def _complete_keys(schema: JsonSchema, core: Any) -> None:
    """Keys of a map list that built-in kinds leave open get the default that Kubernetes itself gives them."""
    keys = schema.get("x-kubernetes-list-map-keys", ())
    item = _class_of(take_apart(typing.get_args(core)[0]).core) if keys and typing.get_args(core) else None
    if not getattr(item, "__module__", "").startswith(_BUILT_IN):
        return
    properties = schema["items"]["properties"]
    for key in keys:
        if key in properties and key not in schema["items"].get("required", ()):
            properties[key]["default"] = _KEY_DEFAULTS.get(key, "")


def _add_default(schema: JsonSchema, info: msgspec.structs.FieldInfo, where: SchemaLocation) -> bool:
    """A default of the class becomes one of the schema. A status has none: a new object has no status.

    Whether the field can be left out: not if it is a spec whose own rules (exactly one of ...) refuse an empty one.
    """
    given = info.default_factory() if _has_default(info) else msgspec.UNSET
    if _has_default(info) and take_apart(info.type).meta().default is not NOT_GIVEN:
        _refuse(where, "one default", f"{given!r} of the class and one in Meta", "remove one of them")
    if given is None or given is msgspec.UNSET or where.json_path == ".status":
        return True
    default = to_builtins(given)
    if default is None:
        _refuse(where, "a default that JSON can hold", repr(given), "use None for no limit, or a number")
    if where.json_path == ".spec":
        if broken_rules(schema, default):
            return False
        default = default if "x-kubernetes-validations" in schema else {}
    schema["default"] = default
    return True


def _has_default(info: msgspec.structs.FieldInfo) -> bool:
    """Plain defaults are those of models that leave out what is empty; they are not values."""
    return isinstance(info.default_factory, Default)


def _is_struct(core: Any) -> bool:
    struct = typing.get_origin(core) or core
    return isinstance(struct, type) and issubclass(struct, msgspec.Struct)


def _class_of(struct: Any) -> Any:
    return typing.get_origin(struct) or struct


def _name(core: Any) -> str:
    members = union_members(core)
    if len(members) > 1:
        return " | ".join(map(_name, members))
    plain = "..." if core is ... else getattr(core, "__name__", None) or str(core).replace("typing.", "")
    arguments = () if literal_values(core) else typing.get_args(core)
    return f"{plain}[{', '.join(map(_name, arguments))}]" if arguments else plain


def _refuse(where: SchemaLocation, expected: str, got: Any, remedy: str) -> JsonSchema:
    shown = got if isinstance(got, str) else _name(got)
    raise DefinitionError(f"{where.place}: expected {expected}, got {shown}; {remedy}")
