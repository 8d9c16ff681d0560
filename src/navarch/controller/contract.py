"""What a reconciler and its controller owe each other.

A reconciler is `async def reconcile(object, ctx)`, or a plain function of the same form. It gets the object as it is now,
never an event, and brings the world to what the object asks for. It leaves in one of two ways: it returns (None, or a
`Result`), or it raises (`Retry`, `Permanent`; anything else is tried again with growing delays).
"""

from __future__ import annotations

from dataclasses import dataclass

from navarch.errors import InvalidValueError

__all__ = ["Permanent", "Result", "Retry", "requeue_reason"]


@dataclass(frozen=True, slots=True)
class Result:
    """All is well; reconcile again after so many seconds, even if nothing changes.

    With `after=0` it is called again at once, for work that is done a step at a time; an object that goes on asking for
    this is slowed down to ten times a second.
    """

    after: float

    def __post_init__(self) -> None:
        _refuse_negative(self.after)


class Retry(Exception):  # noqa: N818 - it is no error: the world is not ready yet
    """Not yet; reconcile again after so many seconds, or with growing delays if none are given.

    The reason is logged without a traceback.
    """

    def __init__(self, reason: str, *, after: float | None = None) -> None:
        super().__init__(reason)
        if after is not None:
            _refuse_negative(after)
        self.after = after


class Permanent(Exception):  # noqa: N818 - as above
    """Trying again is pointless until the object changes; the reason becomes an event."""


def requeue_reason(after: float) -> str:
    """The reason of a reconcile that the one before asked for."""
    return f"{after:g} s have passed"


def _refuse_negative(after: float) -> None:
    if not after >= 0:  # what is no number at all is neither less nor more
        raise InvalidValueError(f"expected a delay of 0 seconds or more, got {after}")
