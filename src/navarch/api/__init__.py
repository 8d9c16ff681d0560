"""Kinds as Python types: pure data, no input or output."""

from navarch.api.codec import WireValue, decode, encode, from_builtins, to_builtins
from navarch.api.dynamic import Dynamic
from navarch.api.kind import Kind
from navarch.api.markers import (
    Atomic,
    Column,
    Embedded,
    Immutable,
    IntOrString,
    ListMap,
    ListSet,
    Meta,
    OneOf,
    Preserve,
    RawSchema,
    Rule,
    Scale,
    Selectable,
)
from navarch.api.meta import (
    Condition,
    ListMeta,
    ManagedFields,
    ObjectMeta,
    OwnerReference,
    Spec,
    Status,
    set_condition,
)
from navarch.api.model import Model, field
from navarch.api.owners import controller_of, is_owned_by, owner_reference, set_controller
from navarch.api.resource import Object, Resource
from navarch.api.unknown import full_wire

__all__ = [
    "Atomic",
    "Column",
    "Condition",
    "Dynamic",
    "Embedded",
    "Immutable",
    "IntOrString",
    "Kind",
    "ListMap",
    "ListMeta",
    "ListSet",
    "ManagedFields",
    "Meta",
    "Model",
    "Object",
    "ObjectMeta",
    "OneOf",
    "OwnerReference",
    "Preserve",
    "RawSchema",
    "Resource",
    "Rule",
    "Scale",
    "Selectable",
    "Spec",
    "Status",
    "WireValue",
    "controller_of",
    "decode",
    "encode",
    "field",
    "from_builtins",
    "full_wire",
    "is_owned_by",
    "owner_reference",
    "set_condition",
    "set_controller",
    "to_builtins",
]
