"""Regular expressions in RE2's syntax, matched by RE2 itself."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from navarch.errors import ConfigError
from navarch.schema.cel.errors import CelEvaluationError
from navarch.schema.cel.signatures import function, method

PATTERN_FUNCTIONS = frozenset({"matches", "find", "findAll"})
"""The API server compiles their pattern with the rule, if it is a literal."""


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> Any:
    """Raises `CelEvaluationError` if RE2 does not take the pattern."""
    try:
        import re2  # noqa: PLC0415 - an optional extra, needed only by rules that match
    except ImportError:
        raise ConfigError("this rule needs RE2, which is not installed; pip install navarch[schema]") from None
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        text = error.args[0].decode() if isinstance(error.args[0], bytes) else error
        raise CelEvaluationError(f"the regular expression {pattern!r} is not valid: {text}") from None


def _matches(text: str, pattern: str) -> bool:
    return compile_pattern(pattern).search(text) is not None


def _find(text: str, pattern: str) -> str:
    match = compile_pattern(pattern).search(text)
    return match.group() if match else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """An empty match right after another match does not count."""
    found: list[str] = []
    end = -1
    for match in compile_pattern(pattern).finditer(text):
        if 0 <= limit <= len(found):
            break
        if match.end() > match.start() or match.start() != end:
            found.append(match.group())
        end = match.end()
    return found


OVERLOADS = [
    function("matches", "string, string -> bool", _matches),
    method("matches", "string, string -> bool", _matches),
    method("find", "string, string -> string", _find),
    method("findAll", "string, string -> list(string)", _find_all),
    method("findAll", "string, string, int -> list(string)", _find_all),
]
