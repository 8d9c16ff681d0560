"""A key that is wanted, and what a worker gets of it."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

if TYPE_CHECKING:
    from navarch.queue.lanes import Lane

__all__ = ["Wanted", "Work", "with_reason"]

K = TypeVar("K", bound=Hashable)

# More reasons than anybody reads in a log line say nothing new.
_REASONS_KEPT = 8


def with_reason(reasons: tuple[str, ...], reason: str) -> tuple[str, ...]:
    """The reasons and one more; each is there once, and only the first few are kept."""
    if reason in reasons or len(reasons) >= _REASONS_KEPT:
        return reasons
    return (*reasons, reason)


@lru_cache(maxsize=64)
def _alone(reason: str) -> tuple[str, ...]:
    """One tuple for all keys that have but this reason: when a controller starts, that is every key there is."""
    return (reason,)


class Work(msgspec.Struct, Generic[K], frozen=True):
    """A key that was handed out.

    `reasons` says why, `waited` for how many seconds it waited, `attempt` how often it failed before, `priority` the
    highest with which it was added. `tokens` are those of the reasons that could still have been taken back.
    """

    key: K
    reasons: tuple[str, ...]
    waited: float
    attempt: int
    priority: int
    tokens: tuple[Hashable, ...] = ()


class Wanted(msgspec.Struct, Generic[K], eq=False):
    """A key from when it is first asked for until the work on it is done."""

    key: K
    priority: int
    # When it began to wait, and from its hand-out on, when the work on it began.
    since: float
    # Where it waits; None while it is held back, worked on, or gone.
    lane: Lane[K] | None = None
    # The reasons that hold whatever comes; the empty one counts, but is not shown.
    lasting: tuple[str, ...] = ()
    # The reasons that can be taken back.
    tokens: dict[Hashable, str] | None = None

    def add_reason(self, reason: str, token: Hashable | None) -> None:
        """One more reason. Beyond a handful, one that could be taken back holds for good: rather once too often."""
        if token is None:
            self.lasting = with_reason(self.lasting, reason) if self.lasting else _alone(reason)
        elif self.tokens is None:
            self.tokens = {token: reason}
        elif token in self.tokens or len(self.tokens) < _REASONS_KEPT:
            self.tokens[token] = reason
        else:
            self.lasting = with_reason(self.lasting, reason)

    def retract(self, token: Hashable) -> bool:
        """Takes a reason back; whether one is left."""
        if self.tokens is not None:
            self.tokens.pop(token, None)
        return bool(self.lasting or self.tokens)

    def reasons(self) -> tuple[str, ...]:
        """Each reason once, those that hold for good first."""
        found = self.lasting
        for reason in (self.tokens or {}).values():
            found = with_reason(found, reason)
        return tuple(filter(None, found)) if "" in found else found
