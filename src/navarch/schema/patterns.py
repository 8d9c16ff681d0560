"""Regular expressions that users write, in RE2's syntax: compiled by RE2 itself, and charged for what they can cost.

RE2 never takes exponential time, but a short pattern can become a large program (`(a?){999}`), and a match can visit every
instruction of the program for each byte of the text. Therefore compilations and matches are charged in steps, each the
visit of one instruction for one byte (at most 9 ns, measured), to the meter of the present task (`set_meter`). Code that
serves no request has no meter, and is not charged.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, Token
from functools import lru_cache
from typing import Any, Final, TypeAlias

from navarch.errors import ConfigError, InvalidValueError

PatternMeter: TypeAlias = Callable[[int], None]
"""Takes steps before they are made; raises if they are too many."""

LONGEST_PATTERN: Final = 4096
"""In characters. RE2 takes quadratic time to compile some long patterns, and Kubernetes has no limit."""
_MOST_MEMORY: Final = 1 << 20
"""What RE2 may take for one pattern. Go's limit is larger; a pattern that needs it repeats large classes hundreds of times."""
_STEPS_PER_CHARACTER: Final = 100
_STEPS_PER_CLASS: Final = 12_000
"""A class such as \\pL is hundreds of ranges."""
_STEPS_PER_INSTRUCTION: Final = 200
_STEPS_UNTIL_TOO_LARGE: Final = 1_250_000
"""A program that becomes too large is known to be so after 10 ms."""
_TOO_LARGE: Final = "pattern too large"
_LONGEST_CHARACTER: Final = 4

_meter: ContextVar[PatternMeter] = ContextVar("pattern_meter")


def set_meter(meter: PatternMeter) -> Token[PatternMeter]:
    """Makes it the meter of the present task, until `reset_meter`."""
    return _meter.set(meter)


def reset_meter(before: Token[PatternMeter]) -> None:
    """Ends what `set_meter` began."""
    _meter.reset(before)


def _charge(steps: int) -> None:
    meter = _meter.get(None)
    if meter is not None:
        meter(steps)


@lru_cache(maxsize=512)
def compile_pattern(pattern: str) -> Any:
    """Returns RE2's object. Raises `InvalidValueError` if RE2 refuses the pattern, and whatever the meter raises."""
    try:
        import re2  # noqa: PLC0415 - an optional extra, needed only where there are patterns
    except ImportError:
        raise ConfigError(
            "expected google-re2 to be installed, since Kubernetes reads patterns as RE2; pip install navarch[schema]"
        ) from None
    if len(pattern) > LONGEST_PATTERN:
        raise InvalidValueError(f"expected at most {LONGEST_PATTERN} characters, got {len(pattern)}")
    classes = pattern.count("\\p") + pattern.count("\\P")
    _charge(_STEPS_PER_CHARACTER * len(pattern) + _STEPS_PER_CLASS * classes)
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True  # groups are not asked for, and following thousands of them takes long
    options.max_mem = _MOST_MEMORY
    try:
        compiled = re2.compile(pattern, options)
    except UnicodeEncodeError:
        raise InvalidValueError("it has a surrogate") from None
    except re2.error as error:
        reason = error.args[0]
        told = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        if told.startswith(_TOO_LARGE):
            _charge(_STEPS_UNTIL_TOO_LARGE)
        raise InvalidValueError(told) from None
    _charge(_STEPS_PER_INSTRUCTION * compiled.programsize)
    return compiled


def pattern_error(pattern: str) -> str | None:
    """Returns the reason why RE2 refuses the pattern; None if it accepts it.

    >>> pattern_error("^a+$") is None, pattern_error("(?=a)") is None
    (True, False)
    """
    try:
        compile_pattern(pattern)
    except InvalidValueError as error:
        return str(error)
    return None


def pattern_check(pattern: str) -> Callable[[str], bool]:
    """Returns a function that tells whether the pattern is somewhere in a text, at the meter's expense.

    Raises `InvalidValueError` if RE2 refuses the pattern.
    """
    compiled = compile_pattern(pattern)
    search, size = compiled.search, compiled.programsize

    def check(text: str) -> bool:
        _charge((len(text) + 1) * size * (1 if text.isascii() else _LONGEST_CHARACTER))
        return search(text) is not None

    return check
