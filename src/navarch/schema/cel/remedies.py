"""What to tell the author of a rule that does not type-check."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from navarch.schema.cel.escaping import escape
from navarch.schema.cel.signatures import Overload
from navarch.schema.cel.types import CelType, Kind, unwrap_optional

_NUMBERS = frozenset({Kind.INT, Kind.UINT, Kind.DOUBLE})
_COMPARISONS = frozenset({"_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"})
_LISTED = 8
_OPERATORS = {"@in": "in", "_?_:_": "?:", "_[_]": "[]", "_[?_]": "[?]"}


def display(function: str) -> str:
    """How the author wrote the function or operator."""
    return _OPERATORS.get(function, function.strip("_"))


def is_operator(function: str) -> bool:
    return not function[0].isalpha()


def closest(name: str, known: Iterable[str]) -> str:
    """A did-you-mean for `name`, or nothing."""
    found = get_close_matches(name, [each for each in known if each[0].isalpha()], 1)
    return f"did you mean {found[0]!r}?" if found else ""


def for_field(name: str, fields: Sequence[str]) -> str:
    """The remedy for a field that is not there."""
    cut_off = [field for field in fields if field.startswith((f"{name}__dash__", f"{name}__dot__", f"{name}__slash__"))]
    escaped = next((field for field in [escape(name), *cut_off] if field != name and field in fields), None)
    if escaped is not None:
        return f"write {escaped!r}, which is how rules spell the name of that field"
    if suggestion := closest(name, fields):
        return suggestion
    listed = ", ".join(sorted(fields)[:_LISTED]) + (", …" if len(fields) > _LISTED else "")
    return f"it has {listed}" if fields else "no field of it is known to its schema"


def for_name(name: str, scope: Iterable[str], self_type: CelType | None) -> str:
    """The remedy for a name that nothing is called."""
    if self_type is not None and name in (self_type.fields or {}):
        return f"write self.{name}"
    known = list(scope)
    return closest(name, known) or (
        f"the rule knows {', '.join(sorted(known))}" if known else "no variable is declared"
    )


def signature(overload: Overload) -> str:
    """An overload as its caller would write it."""
    params = [str(param) for param in overload.params]
    if overload.method:
        return f"{params[0]}.{overload.function}({', '.join(params[1:])})"
    return f"{overload.function}({', '.join(params)})"


def for_call(function: str, given: Sequence[CelType], style: Sequence[Overload], method: bool) -> str:
    """The remedy for arguments that no overload takes; `style` is the overloads called the way this call is."""
    if not style:
        return "it is a function: pass the value as its argument" if method else "it is a method: write value.name(…)"
    if any(unwrap_optional(each)[1] for each in given):
        return "take the value out of the optional first, with orValue(…)"
    if Kind.NULL in {each.kind for each in given} and function in {"_==_", "_!=_"}:
        return "a value of that type is never null: test it with has(…)"
    if function in _COMPARISONS or (is_operator(function) and {each.kind for each in given} <= _NUMBERS):
        return f"convert one side, for instance {_conversion(given)}"
    return ""


def _conversion(given: Sequence[CelType]) -> str:
    kinds = {each.kind for each in given}
    if Kind.DOUBLE in kinds and kinds <= _NUMBERS:
        return "double(…)"
    if kinds <= _NUMBERS:
        return "int(…)"
    return "string(…)" if Kind.STRING in kinds else "dyn(…)"


def expected_by(overloads: Sequence[Overload]) -> str:
    """The signatures that would have fitted, few enough to read."""
    if any(is_operator(overload.function) for overload in overloads):
        return ""
    unique = dict.fromkeys(signature(overload) for overload in overloads)
    return " or ".join(unique) if len(unique) <= _LISTED // 2 else ""
