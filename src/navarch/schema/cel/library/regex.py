"""Regular expressions in RE2's syntax, matched by RE2 itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from navarch.errors import InvalidValueError
from navarch.schema import patterns
from navarch.schema.cel.errors import CelEvaluationError
from navarch.schema.cel.signatures import Implementation, function, method

PATTERN_FUNCTIONS = frozenset({"matches", "find", "findAll"})
"""The API server compiles their pattern with the rule if it is a literal."""


_LARGER = 4
"""How many times larger than its pattern a program is whose size decides what a match costs."""
_STEPS = 40
"""How many instructions are visited for one unit of cost."""
FINDING = 10
"""The cost of each character that `findAll` scans, since each may be a match."""
_COMPILING = 500
_REFUSED = 10_000


def compile_pattern(pattern: str) -> Any:
    """Raises `CelEvaluationError` if RE2 does not take the pattern."""
    try:
        return patterns.compile_pattern(pattern)
    except InvalidValueError as error:
        raise CelEvaluationError(f"the regular expression {pattern!r} is not valid: {error}") from None


def match_cost(text: str, pattern: str, *_: object) -> int:
    """Returns the cost of a match whose pattern is no constant, with the cost of its compilation."""
    try:
        size: int = compile_pattern(pattern).programsize
    except CelEvaluationError:
        return _REFUSED * (1 + pattern.count("{"))
    return _COMPILING + size + _match_cost(len(text), pattern, size)


def _match_cost(length: int, pattern: str, size: int) -> int:
    """Kubernetes: a tenth of the text times a quarter of the pattern; here also the program, which repetitions by count
    make much larger than the pattern.
    """
    cost = (length + 10) // 10 * ((len(pattern) + 3) // 4)
    return max(cost, (length + 1) * size // _STEPS) if size > _LARGER * len(pattern) else cost


class BoundPattern(NamedTuple):
    """A call with a constant pattern: its cost for the other values, and the call itself."""

    price: Callable[..., int]
    call: Implementation


def with_pattern(name: str, pattern: str) -> BoundPattern:
    """Returns the function `name` with a pattern that was compiled with the rule."""
    compiled, call = compile_pattern(pattern), _CALLS[name]
    size, finding = compiled.programsize, FINDING if name == "findAll" else 0
    return BoundPattern(
        lambda text, *_: _match_cost(len(text), pattern, size) + finding * len(text),
        lambda text, _pattern, *rest: call(compiled, text, *rest),
    )


def _matches(compiled: Any, text: str) -> bool:
    return compiled.search(text) is not None


def _find(compiled: Any, text: str) -> str:
    match = compiled.search(text)
    return match.group() if match else ""


def _find_all(compiled: Any, text: str, limit: int = -1) -> list[str]:
    """An empty match right after another match does not count."""
    found: list[str] = []
    end = -1
    for match in compiled.finditer(text):
        if 0 <= limit <= len(found):
            break
        if match.end() > match.start() or match.start() != end:
            found.append(match.group())
        end = match.end()
    return found


_CALLS: dict[str, Callable[..., object]] = {"matches": _matches, "find": _find, "findAll": _find_all}


def _compiling(call: Callable[..., object]) -> Implementation:
    return lambda text, pattern, *rest: call(compile_pattern(pattern), text, *rest)


OVERLOADS = [
    function("matches", "string, string -> bool", _compiling(_matches)),
    method("matches", "string, string -> bool", _compiling(_matches)),
    method("find", "string, string -> string", _compiling(_find)),
    method("findAll", "string, string -> list(string)", _compiling(_find_all)),
    method("findAll", "string, string, int -> list(string)", _compiling(_find_all)),
]
