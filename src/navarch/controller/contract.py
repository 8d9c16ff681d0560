"""The contract between a reconciler and its controller.

A reconciler is `async def reconcile(object, ctx)`, or a plain function of the same form. It gets the object as it is now,
never an event, and brings the cluster to the state that the object asks for. It returns (None, or a `Result`) or raises
(`Retry`, `Permanent`; anything else is retried with growing delays).
"""

from __future__ import annotations

from dataclasses import dataclass

from navarch.errors import InvalidValueError

__all__ = ["Permanent", "Result", "Retry", "requeue_reason"]


@dataclass(frozen=True, slots=True)
class Result:
    """Success; the object is reconciled again after so many seconds, even if nothing changes.

    With `after=0` it is reconciled again at once, for work in steps; an object that keeps requesting this is slowed down to ten
    reconciles a second.
    """

    after: float

    def __post_init__(self) -> None:
        _refuse_negative(self.after)


class Retry(Exception):  # noqa: N818 - it is no error: the world is not ready yet
    """The object cannot be reconciled yet; it is reconciled again after so many seconds, or with growing delays.

    The reason is logged without a traceback.
    """

    def __init__(self, reason: str, *, after: float | None = None) -> None:
        super().__init__(reason)
        if after is not None:
            _refuse_negative(after)
        self.after = after


class Permanent(Exception):  # noqa: N818 - as above
    """A retry is pointless until the object changes; the reason becomes an event."""


def requeue_reason(after: float) -> str:
    """Returns the reason of a reconcile that the one before requested."""
    return f"{after:g} s have passed"


def _refuse_negative(after: float) -> None:
    if not after >= 0:  # what is no number at all is neither less nor more
        raise InvalidValueError(f"expected a delay of 0 seconds or more, got {after}")
