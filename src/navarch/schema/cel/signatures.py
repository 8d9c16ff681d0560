"""What a function takes and gives, written as text: `"list(A), int -> A"`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from navarch.schema.cel import types
from navarch.schema.cel.types import CelType, Kind

Implementation = Callable[..., object]

_NAMES = {
    "dyn": types.DYN,
    "null": types.NULL,
    "bool": types.BOOL,
    "int": types.INT,
    "uint": types.UINT,
    "double": types.DOUBLE,
    "string": types.STRING,
    "bytes": types.BYTES,
    "timestamp": types.TIMESTAMP,
    "duration": types.DURATION,
    "ip": types.IP,
    "cidr": types.CIDR,
    "url": types.URL,
    "quantity": types.QUANTITY,
    "semver": types.SEMVER,
    "format": types.NAMED_FORMAT,
    "authorizer": types.AUTHORIZER,
    "pathcheck": types.PATH_CHECK,
    "groupcheck": types.GROUP_CHECK,
    "resourcecheck": types.RESOURCE_CHECK,
    "decision": types.DECISION,
}
_GENERICS: dict[str, Callable[..., CelType]] = {
    "list": types.list_of,
    "map": types.map_of,
    "optional": types.optional_of,
    "type": types.type_of,
}
_WORDS = re.compile(r"[A-Za-z]+|[(),]|->")


@dataclass(frozen=True, slots=True)
class Overload:
    """One way to call a function; a method's target is its first parameter."""

    function: str
    method: bool
    params: tuple[CelType, ...]
    result: CelType
    call: Implementation
    type_parameters: frozenset[str]


def function(name: str, signature: str, call: Implementation) -> Overload:
    """An overload of the function `name(…)`."""
    return _overload(name, signature, call, method=False)


def method(name: str, signature: str, call: Implementation) -> Overload:
    """An overload of the method `target.name(…)`; the signature begins with the target."""
    return _overload(name, signature, call, method=True)


def _overload(name: str, signature: str, call: Implementation, *, method: bool) -> Overload:
    words = _WORDS.findall(signature)[::-1]
    params: list[CelType] = []
    while words[-1] != "->":
        params.append(_type(words))
        if words[-1] == ",":
            words.pop()
    words.pop()
    result = _type(words)
    names = frozenset(found for each in (*params, result) for found in _parameters(each))
    return Overload(name, method, tuple(params), result, call, names)


def _type(words: list[str]) -> CelType:
    word = words.pop()
    if word not in _GENERICS:
        return _NAMES[word] if word in _NAMES else types.parameter(word)
    words.pop()
    inner = [_type(words)]
    while words.pop() == ",":
        inner.append(_type(words))
    return _GENERICS[word](*inner)


def _parameters(within: CelType) -> list[str]:
    if within.kind is Kind.PARAMETER:
        return [within.name]
    return [name for param in within.params for name in _parameters(param)]
