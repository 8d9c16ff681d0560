"""Regular expressions in RE2's syntax, matched by RE2 itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from navarch.errors import ConfigError
from navarch.schema.cel.errors import CelEvaluationError
from navarch.schema.cel.signatures import Implementation, function, method

PATTERN_FUNCTIONS = frozenset({"matches", "find", "findAll"})
"""The API server compiles their pattern with the rule if it is a literal."""


_MOST_MEMORY = 1 << 20
"""What RE2 may take for one pattern. Go's limit is larger; a pattern that needs it repeats large classes hundreds of times."""
_COUNTED = 16
"""How often patterns may repeat a part by count, as in `a{16}`, before that makes matching cost more."""
FINDING = 10
"""The cost of each character that `findAll` scans, since each may be a match."""
_COMPILING = 500
_REFUSED = 10_000


@lru_cache(maxsize=512)
def compile_pattern(pattern: str) -> Any:
    """Raises `CelEvaluationError` if RE2 does not take the pattern."""
    try:
        import re2  # noqa: PLC0415 - an optional extra, needed only by rules that match
    except ImportError:
        raise ConfigError("this rule needs RE2, which is not installed; pip install navarch[schema]") from None
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True  # groups are not asked for, and following thousands of them takes long
    options.max_mem = _MOST_MEMORY
    try:
        return re2.compile(pattern, options)
    except UnicodeEncodeError:
        raise CelEvaluationError("the regular expression is not valid: it has a surrogate") from None
    except re2.error as error:
        text = error.args[0].decode() if isinstance(error.args[0], bytes) else error
        raise CelEvaluationError(f"the regular expression {pattern!r} is not valid: {text}") from None


def match_cost(text: str, pattern: str, *_: object) -> int:
    """Returns the cost of a match whose pattern is no constant, with the cost of its compilation."""
    try:
        size: int = compile_pattern(pattern).programsize
    except CelEvaluationError:
        return _REFUSED * (1 + pattern.count("{"))
    return _COMPILING + size + _match_cost(len(text), pattern, _states(pattern, size))


def _match_cost(length: int, pattern: str, states: int) -> int:
    """Kubernetes: a tenth of the text times a quarter of the pattern, or one if it is no method."""
    return max((length + 10) // 10 * ((len(pattern) + 3) // 4), (length + 1) * states // _COUNTED)


def _states(pattern: str, size: int) -> int:
    """How many places of a pattern RE2 may have to follow for each character: its size, if it repeats by count."""
    counts = (part.partition("}")[0].rpartition(",")[2] for part in pattern.split("{")[1:])
    return size if sum(int(count) for count in counts if count.isdecimal() and len(count) <= 4) > _COUNTED else 0


class BoundPattern(NamedTuple):
    """A call with a constant pattern: its cost for the other values, and the call itself."""

    price: Callable[..., int]
    call: Implementation


def with_pattern(name: str, pattern: str) -> BoundPattern:
    """Returns the function `name` with a pattern that was compiled with the rule."""
    compiled, call = compile_pattern(pattern), _CALLS[name]
    states, finding = _states(pattern, compiled.programsize), FINDING if name == "findAll" else 0
    return BoundPattern(
        lambda text, *_: _match_cost(len(text), pattern, states) + finding * len(text),
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
