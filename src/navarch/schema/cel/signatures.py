"""The signatures of overloads, and the remedies for calls that match none."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from navarch.schema.cel import types
from navarch.schema.cel.lexer import escape
from navarch.schema.cel.types import CelKind, CelType, unwrap_optional

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
    """One signature of a function; a method's target is its first parameter."""

    function: str
    method: bool
    params: tuple[CelType, ...]
    result: CelType
    call: Implementation
    type_parameters: frozenset[str]


def function(name: str, signature: str, call: Implementation) -> Overload:
    """Returns an overload of the function `name(…)`."""
    return _overload(name, signature, call, method=False)


def method(name: str, signature: str, call: Implementation) -> Overload:
    """Returns an overload of the method `target.name(…)`; the signature begins with the target."""
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
    if within.kind is CelKind.PARAMETER:
        return [within.name]
    return [name for param in within.params for name in _parameters(param)]


_NUMBERS = frozenset({CelKind.INT, CelKind.UINT, CelKind.DOUBLE})
_COMPARISONS = frozenset({"_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"})
_LISTED = 8
_OPERATORS = {"@in": "in", "_?_:_": "?:", "_[_]": "[]", "_[?_]": "[?]"}


def display(function: str) -> str:
    """Returns the function or operator as the author wrote it."""
    return _OPERATORS.get(function, function.strip("_"))


def is_operator(function: str) -> bool:
    return not function[0].isalpha()


def closest(name: str, known: Iterable[str]) -> str:
    """Returns a did-you-mean for `name`, or nothing."""
    found = get_close_matches(name, [each for each in known if each[0].isalpha()], 1)
    return f"did you mean {found[0]!r}?" if found else ""


def for_field(name: str, fields: Sequence[str]) -> str:
    """Returns the remedy for an unknown field."""
    cut_off = [field for field in fields if field.startswith((f"{name}__dash__", f"{name}__dot__", f"{name}__slash__"))]
    escaped = next((field for field in [escape(name), *cut_off] if field != name and field in fields), None)
    if escaped is not None:
        return f"write {escaped!r}, which is how rules spell the name of that field"
    if suggestion := closest(name, fields):
        return suggestion
    listed = ", ".join(sorted(fields)[:_LISTED]) + (", …" if len(fields) > _LISTED else "")
    return f"it has {listed}" if fields else "no field of it is known to its schema"


def for_name(name: str, scope: Iterable[str], self_type: CelType | None) -> str:
    """Returns the remedy for an unknown name."""
    if self_type is not None and name in (self_type.fields or {}):
        return f"write self.{name}"
    known = list(scope)
    return closest(name, known) or (
        f"the rule knows {', '.join(sorted(known))}" if known else "no variable is declared"
    )


def signature(overload: Overload) -> str:
    """Returns an overload as its caller writes it."""
    params = [str(param) for param in overload.params]
    if overload.method:
        return f"{params[0]}.{overload.function}({', '.join(params[1:])})"
    return f"{overload.function}({', '.join(params)})"


def for_call(function: str, given: Sequence[CelType], style: Sequence[Overload], method: bool) -> str:
    """Returns the remedy for arguments that no overload accepts; `style` has the overloads of the same call form."""
    if not style:
        return "it is a function: pass the value as its argument" if method else "it is a method: write value.name(…)"
    if any(unwrap_optional(each)[1] for each in given):
        return "take the value out of the optional first, with orValue(…)"
    if CelKind.NULL in {each.kind for each in given} and function in {"_==_", "_!=_"}:
        return "a value of that type is never null: test it with has(…)"
    if function in _COMPARISONS or (is_operator(function) and {each.kind for each in given} <= _NUMBERS):
        return f"convert one side, for instance {_conversion(given)}"
    return ""


def _conversion(given: Sequence[CelType]) -> str:
    kinds = {each.kind for each in given}
    if CelKind.DOUBLE in kinds and kinds <= _NUMBERS:
        return "double(…)"
    if kinds <= _NUMBERS:
        return "int(…)"
    return "string(…)" if CelKind.STRING in kinds else "dyn(…)"


def expected_by(overloads: Sequence[Overload]) -> str:
    """Returns the signatures that would fit, few enough to read."""
    if any(is_operator(overload.function) for overload in overloads):
        return ""
    unique = dict.fromkeys(signature(overload) for overload in overloads)
    return " or ".join(unique) if len(unique) <= _LISTED // 2 else ""
