"""CEL's types, as the checker uses them.

The name identifies an object type: two objects at different places of a schema have different types even if they have
the same fields, as on the API server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto


class CelKind(Enum):
    DYN = auto()
    NULL = auto()
    BOOL = auto()
    INT = auto()
    UINT = auto()
    DOUBLE = auto()
    STRING = auto()
    BYTES = auto()
    TIMESTAMP = auto()
    DURATION = auto()
    LIST = auto()
    MAP = auto()
    TYPE = auto()
    OBJECT = auto()
    OPAQUE = auto()
    PARAMETER = auto()
    ERROR = auto()

    # Enum's own is a function in Python, and the check of a long rule asks for tens of thousands of hashes.
    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class CelType:
    """One type. `params` are those of a list, map, optional or type; `fields` those of an object."""

    kind: CelKind
    name: str
    params: tuple[CelType, ...] = ()
    fields: Mapping[str, CelType] | None = field(default=None, hash=False, repr=False)
    max_elements: int = field(default=0, compare=False, repr=False)
    """The longest value that a schema permits: characters of a string, items of a list, entries of a map; else 0."""
    min_size: int = field(default=1, compare=False, repr=False)
    """The fewest bytes of a value as JSON."""

    def __str__(self) -> str:
        if self.kind is CelKind.OBJECT and self.fields:
            return "object"
        if not self.params:
            return self.name
        return f"{self.name}({', '.join(map(str, self.params))})"


DYN = CelType(CelKind.DYN, "dyn")
NULL = CelType(CelKind.NULL, "null_type", min_size=4)
BOOL = CelType(CelKind.BOOL, "bool", min_size=4)
INT = CelType(CelKind.INT, "int")
UINT = CelType(CelKind.UINT, "uint")
DOUBLE = CelType(CelKind.DOUBLE, "double")
STRING = CelType(CelKind.STRING, "string", min_size=2)
BYTES = CelType(CelKind.BYTES, "bytes", min_size=2)
TIMESTAMP = CelType(CelKind.TIMESTAMP, "google.protobuf.Timestamp", min_size=12)
DURATION = CelType(CelKind.DURATION, "google.protobuf.Duration", min_size=3)
TYPE = CelType(CelKind.TYPE, "type")
ERROR = CelType(CelKind.ERROR, "!error!")
"""The type of an expression with an error; it fits everything, so that one error is reported once."""


_TOLD = {CelKind.TIMESTAMP: "timestamp", CelKind.DURATION: "duration", CelKind.NULL: "null"}


def told(shown: CelType) -> str:
    """Returns a type as cel-go writes it."""
    name = _TOLD.get(shown.kind, shown.name)
    return f"{name}({', '.join(map(told, shown.params))})" if shown.params else name


def list_of(element: CelType) -> CelType:
    return CelType(CelKind.LIST, "list", (element,), min_size=2)


def map_of(key: CelType, value: CelType) -> CelType:
    return CelType(CelKind.MAP, "map", (key, value), min_size=2)


def optional_of(value: CelType) -> CelType:
    return CelType(CelKind.OPAQUE, "optional_type", (value,))


def type_of(named: CelType) -> CelType:
    return CelType(CelKind.TYPE, "type", (named,))


def opaque(name: str) -> CelType:
    return CelType(CelKind.OPAQUE, name)


def object_of(name: str, fields: Mapping[str, CelType]) -> CelType:
    return CelType(CelKind.OBJECT, name, fields=fields)


def parameter(name: str) -> CelType:
    return CelType(CelKind.PARAMETER, name)


def unwrap_optional(wrapped: CelType) -> tuple[CelType, bool]:
    """Returns the type inside an optional, and whether there was one."""
    if wrapped.kind is CelKind.OPAQUE and wrapped.name == "optional_type":
        return wrapped.params[0], True
    return wrapped, False


IP = opaque("net.IP")
CIDR = opaque("net.CIDR")
URL = object_of("kubernetes.URL", {})
QUANTITY = object_of("kubernetes.Quantity", {})
SEMVER = object_of("kubernetes.Semver", {})
NAMED_FORMAT = object_of("kubernetes.NamedFormat", {})
PATH_CHECK = object_of("kubernetes.authorization.PathCheck", {})
GROUP_CHECK = object_of("kubernetes.authorization.GroupCheck", {})
RESOURCE_CHECK = object_of("kubernetes.authorization.ResourceCheck", {})
DECISION = object_of("kubernetes.authorization.Decision", {})
AUTHORIZER = object_of("kubernetes.authorization.Authorizer", {"requestResource": RESOURCE_CHECK})

NAMED_TYPES: Mapping[str, CelType] = {
    named.name: named
    for named in (
        BOOL,
        BYTES,
        DOUBLE,
        DURATION,
        INT,
        NULL,
        STRING,
        TIMESTAMP,
        UINT,
        TYPE,
        IP,
        CIDR,
        list_of(parameter("A")),
        map_of(parameter("A"), parameter("B")),
        opaque("optional_type"),
    )
}
"""Types that a rule can name: `type(self.port) == int`."""
