"""Kubernetes kinds as Python types: pure data, no I/O."""

from navarch.api.codec import WireValue, decode, encode, from_builtins, to_builtins
from navarch.api.duration import Duration
from navarch.api.json_patch import apply_json_patch, create_json_patch
from navarch.api.kind import Dynamic, Key, Kind
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
    SchemaPatch,
    Selectable,
)
from navarch.api.merge_patch import apply_merge_patch, create_merge_patch
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
from navarch.api.quantity import Quantity
from navarch.api.resource import Object, Resource
from navarch.api.selectors import Fields, Labels
from navarch.api.times import MicroTime, format_time, parse_time, truncate_to_seconds
from navarch.api.unknown_fields import full_wire

__all__ = [
    "Atomic",
    "Column",
    "Condition",
    "Duration",
    "Dynamic",
    "Embedded",
    "Fields",
    "Immutable",
    "IntOrString",
    "Key",
    "Kind",
    "Labels",
    "ListMap",
    "ListMeta",
    "ListSet",
    "ManagedFields",
    "Meta",
    "MicroTime",
    "Model",
    "Object",
    "ObjectMeta",
    "OneOf",
    "OwnerReference",
    "Preserve",
    "Quantity",
    "RawSchema",
    "Resource",
    "Rule",
    "Scale",
    "SchemaPatch",
    "Selectable",
    "Spec",
    "Status",
    "WireValue",
    "apply_json_patch",
    "apply_merge_patch",
    "controller_of",
    "create_json_patch",
    "create_merge_patch",
    "decode",
    "encode",
    "field",
    "format_time",
    "from_builtins",
    "full_wire",
    "is_owned_by",
    "owner_reference",
    "parse_time",
    "set_condition",
    "set_controller",
    "to_builtins",
    "truncate_to_seconds",
]
