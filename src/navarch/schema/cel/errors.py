"""Errors of a rule: at compile time and at evaluation.

A compile error has two texts: Navarch's own with a remedy, for the author, and that of cel-go, which the API server
sends to its clients.
"""

from __future__ import annotations

from typing import NamedTuple

from navarch.errors import DefinitionError, NavarchError

_LONGEST_LINE = 16384
_MOST_TOLD = 100
_WIDE_DOT = "\N{FULLWIDTH FULL STOP}"
_WIDE_MARK = "\N{FULLWIDTH CIRCUMFLEX ACCENT}"


class CelError(DefinitionError):
    """A rule that does not parse, or does not type-check.

    `line` and `column` count from 1, `expected` says what would fit, `remedy` what to do. `told` is the API server's
    message about the same rule.
    """

    def __init__(
        self, problem: str, *, line: int, column: int, expected: str = "", remedy: str = "", told: str = ""
    ) -> None:
        parts = [problem, f"expected {expected}" if expected else "", remedy]
        super().__init__(f"{line}:{column}: " + "; ".join(part for part in parts if part))
        self.problem = problem
        self.line = line
        self.column = column
        self.expected = expected
        self.remedy = remedy
        self.told = told


class CelEvaluationError(NavarchError):
    """A rule without a value: a missing key, an index out of bounds, an overflow, no such overload."""


class CelCostError(CelEvaluationError):
    """An expression that exceeded the cost limit of one evaluation; see `CALL_COST_LIMIT`."""


class CelBudgetError(NavarchError):
    """An expression that exceeded the budget of several expressions.

    It is no `CelEvaluationError`: no operator absorbs it, and no further expression of the same budget is evaluated.
    """


class Said(NamedTuple):
    """One fault in cel-go's words, and the character of the source that it points to."""

    at: int
    words: str


class Faults:
    """The faults of one rule: the first one in Navarch's words, all of them in cel-go's."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._said: list[Said] = []
        self._first: tuple[int, str, str, str] | None = None

    def add(self, at: int, problem: str, said: Said, *, expected: str = "", remedy: str = "") -> None:
        """Adds a fault at the character `at`."""
        self._first = self._first or (at, problem, expected, remedy)
        self._said.append(said)

    def __bool__(self) -> bool:
        """Returns True if there is a fault: only the first has a remedy."""
        return self._first is not None

    def check(self) -> None:
        """Raises `CelError` if there is a fault."""
        if self._first is not None:
            raise self.error()

    def error(self) -> CelError:
        """Returns the error for the faults so far, of which there must be one."""
        assert self._first is not None
        at, problem, expected, remedy = self._first
        return error_at(
            self._source,
            at,
            problem,
            expected=expected,
            remedy=remedy,
            told=f"compilation failed: {_written_out(self._source, self._said)}",
        )


def error_at(source: str, offset: int, problem: str, *, expected: str = "", remedy: str = "", told: str) -> CelError:
    """Returns a `CelError` for the character at `offset` of `source`."""
    line, column = _place(source, offset)
    return CelError(problem, line=line, column=column + 1, expected=expected, remedy=remedy, told=told)


def _place(source: str, offset: int) -> tuple[int, int]:
    before = source[:offset]
    return before.count("\n") + 1, offset - before.rfind("\n") - 1


def _written_out(source: str, said: list[Said]) -> str:
    ordered = [_shown(source, each) for each in sorted(said, key=lambda each: each.at)[:_MOST_TOLD]]
    if len(said) > _MOST_TOLD:
        ordered.append(f"{len(said) - _MOST_TOLD} more errors were truncated")
    return "\n".join(ordered)


def _shown(source: str, said: Said) -> str:
    """The fault with its line, and a mark below the character; those of several bytes get wide marks."""
    line, column = _place(source, said.at)
    head = f"ERROR: <input>:{line}:{column + 1}: {said.words}"
    text = source.split("\n")[line - 1].replace("\t", " ")
    if len(text.encode()) > _LONGEST_LINE:
        return head
    dots = "".join("." if each.isascii() else _WIDE_DOT for each in text[:column])
    return f"{head}\n | {text}\n | {dots}{'^' if text[column : column + 1].isascii() else _WIDE_MARK}"
