"""What can go wrong with a rule: when it is compiled, and when it is evaluated."""

from __future__ import annotations

from navarch.errors import DefinitionError, NavarchError


class CelError(DefinitionError):
    """A rule that does not parse, or does not fit the types it is compiled against.

    `line` and `column` count from 1, `expected` says what would have fitted, `remedy` what to do about it.
    """

    def __init__(self, problem: str, *, line: int, column: int, expected: str = "", remedy: str = "") -> None:
        parts = [problem, f"expected {expected}" if expected else "", remedy]
        super().__init__(f"{line}:{column}: " + "; ".join(part for part in parts if part))
        self.problem = problem
        self.line = line
        self.column = column
        self.expected = expected
        self.remedy = remedy


class CelEvaluationError(NavarchError):
    """A rule that gave no value: a missing key, an index out of bounds, an overflow, no such overload."""


def error_at(source: str, offset: int, problem: str, *, expected: str = "", remedy: str = "") -> CelError:
    """A `CelError` for the character at `offset` of `source`."""
    before = source[:offset]
    line_start = before.rfind("\n") + 1
    return CelError(
        problem, line=before.count("\n") + 1, column=offset - line_start + 1, expected=expected, remedy=remedy
    )
