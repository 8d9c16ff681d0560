"""Differences that are known and stay, each with its reason; docs/embedded-server.md lists them for users."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from differential.steps import Difference, Step


@dataclass(frozen=True)
class Known:
    """A difference that is no fault."""

    reason: str
    matches: Callable[[Step, Difference], bool]


def _lacks_go_difference(_step: Step, difference: Difference) -> bool:
    ours, theirs = difference.embedded, difference.real
    return isinstance(ours, str) and isinstance(theirs, str) and theirs.startswith(f"{ours}\n")


def _is_description(_step: Step, difference: Difference) -> bool:
    return "columnDefinitions" in difference.where and difference.where.endswith(".description")


KNOWN: tuple[Known, ...] = (
    Known("the columns of tables have no descriptions", _is_description),
    Known("messages about immutable fields lack the difference that Go prints", _lacks_go_difference),
)


def is_known(step: Step, difference: Difference) -> bool:
    """Whether a difference is listed."""
    return any(known.matches(step, difference) for known in KNOWN)
