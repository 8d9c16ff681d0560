"""Kubernetes' names as Python names."""

from __future__ import annotations

import builtins
import keyword
import re
from functools import cache

import msgspec

_WORD = re.compile(r"[A-Z]+(?=V\d)|V\d+|[A-Z]{2,}s(?![a-z])|[A-Z]+\d*(?![a-z])|[A-Z]?[a-z]+\d*|\d+")
_TAKEN = frozenset(
    {"datetime", "field"} | {name for name in vars(builtins) if isinstance(getattr(builtins, name), type)}
)
"""Names that annotations and defaults need: a field of that name would hide them from the fields below it."""
_HARMLESS = frozenset({"filter", "map", "object", "property", "range", "set", "type"})
"""Built-in types that no annotation uses."""


def attribute(wire: str) -> str:
    """The Python name of a field.

    >>> attribute("clusterIP"), attribute("podCIDRs"), attribute("openAPIV3Schema"), attribute("from")
    ('cluster_ip', 'pod_cidrs', 'open_api_v3_schema', 'from_')
    """
    name = "_".join(_WORD.findall(wire)).lower()
    return f"{name}_" if keyword.iskeyword(name) or name in _TAKEN - _HARMLESS else name


@cache
def camel(name: str) -> str:
    """The wire name that msgspec itself gives a field of this name.

    >>> camel("cluster_ip")
    'clusterIp'
    """
    struct = msgspec.defstruct("Probe", [name], rename="camel")
    return struct.__struct_encode_fields__[0]


def module_of(schema: str) -> tuple[str, str]:
    """The group and version whose module a schema belongs to.

    >>> module_of("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON")
    ('apiextensions', 'v1')
    """
    _, group, version, _ = schema.rsplit(".", 3)
    return group, version


def class_name(schema: str) -> str:
    """The class of a schema: the last part of its name."""
    return schema.rpartition(".")[2]
