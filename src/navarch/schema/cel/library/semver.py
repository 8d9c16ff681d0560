"""Semantic versions 2.0.0; build metadata does not count when versions are compared."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import ClassVar

from navarch.schema.cel import types
from navarch.schema.cel.errors import CelEvaluationError
from navarch.schema.cel.signatures import function, method
from navarch.schema.cel.types import CelType
from navarch.schema.cel.values import UINT_MAX

_NUMBER = r"(0|[1-9][0-9]*)"
_VERSION = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?\Z"
)
_LEADING_ZEROS = re.compile(r"0+(?=[0-9])")


@dataclass(frozen=True, slots=True)
class Semver:
    cel_type: ClassVar[CelType] = types.SEMVER
    numbers: tuple[int, int, int]
    prerelease: tuple[int | str, ...]
    build: str = field(compare=False)

    def rank(self) -> tuple[object, ...]:
        """Numbers come before words, and every prerelease before the release."""
        words = tuple((isinstance(part, str), part) for part in self.prerelease)
        return self.numbers, not words, words


def _parse(text: str) -> Semver:
    """Raises `ValueError`."""
    match = _VERSION.match(text)
    numbers = tuple(int(match[group]) for group in (1, 2, 3)) if match else ()
    if match is None or max(numbers) > UINT_MAX:
        raise ValueError(text)
    parts = tuple(_prerelease_part(part) for part in match[4].split(".")) if match[4] else ()
    return Semver((numbers[0], numbers[1], numbers[2]), parts, match[5] or "")


def _prerelease_part(part: str) -> int | str:
    if not part.isdigit():
        return part
    if len(part) > 1 and part.startswith("0"):
        raise ValueError(part)
    return int(part)


def _normalized(text: str) -> str:
    """Without a leading v and leading zeros, and with three numbers. Raises `ValueError`."""
    parts = [_LEADING_ZEROS.sub("", part, count=1) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3 and re.search(r"[+-]", parts[-1]):
        raise ValueError(text)
    return ".".join([*parts, "0", "0"][: max(3, len(parts))])


def _semver(text: str, normalize: bool = False) -> Semver:
    try:
        return _parse(_normalized(text) if normalize else text)
    except ValueError:
        raise CelEvaluationError(f"{text!r} is no semantic version; expected one such as 1.2.3-rc.1") from None


def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        _parse(_normalized(text) if normalize else text)
    except ValueError:
        return False
    return True


def _compare(left: Semver, right: Semver) -> int:
    first, second = left.rank(), right.rank()
    return (first > second) - (first < second)


def _as_int(number: int) -> int:
    """The API server lets an unsigned number run over into the negative ones."""
    return number - (1 << 64) if number >= 1 << 63 else number


OVERLOADS = [
    function("semver", "string -> semver", _semver),
    function("semver", "string, bool -> semver", _semver),
    function("isSemver", "string -> bool", _is_semver),
    function("isSemver", "string, bool -> bool", _is_semver),
    method("isGreaterThan", "semver, semver -> bool", lambda left, right: _compare(left, right) > 0),
    method("isLessThan", "semver, semver -> bool", lambda left, right: _compare(left, right) < 0),
    method("compareTo", "semver, semver -> int", _compare),
    method("major", "semver -> int", lambda version: _as_int(version.numbers[0])),
    method("minor", "semver -> int", lambda version: _as_int(version.numbers[1])),
    method("patch", "semver -> int", lambda version: _as_int(version.numbers[2])),
]
