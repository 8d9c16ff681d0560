"""A failed reconcile, as the object itself shows it: a condition, and an Event that `kubectl describe` prints."""

from __future__ import annotations

from typing import Any

from navarch._base.clock import Clock
from navarch.api import Condition, Key, Object, Status
from navarch.controller.contract import Permanent, Retry
from navarch.controller.events import Recorder
from navarch.errors import Conflict, NotLeaderError

__all__ = ["FAILED", "FailureEvents", "clear_failed", "error_text", "is_failure", "mark_failed"]

FAILED = "ReconcileFailed"
"""The condition that is true while an object's reconcile or cleanup keeps failing, and absent otherwise."""

_LONGEST_MESSAGE = 1024
_SAME_NOTE_SECONDS = 60.0


def is_failure(error: Exception) -> bool:
    """Whether somebody should hear of it: a conflict or a lost election is over with the next try.

    A conflict about fields that other managers own is a failure.
    """
    if isinstance(error, Conflict):
        return bool(error.managers)
    return not isinstance(error, (NotLeaderError, Retry, Permanent))


def mark_failed(primary: Any, error: Exception, clock: Clock) -> bool:
    """Puts the condition on the object, where its status has conditions; returns whether it was not there like this."""
    status = getattr(primary, "status", None)
    if not isinstance(status, Status):
        return False
    condition = Condition(
        type=FAILED,
        status="True",
        reason=type(error).__name__.strip("_") or "Error",
        message=error_text(error)[:_LONGEST_MESSAGE],
        last_transition_time=clock.now(),
        observed_generation=primary.metadata.generation,
    )
    return status.set_condition(condition)


def clear_failed(primary: Any) -> None:
    """Takes the condition off an object whose reconcile ended well."""
    status = getattr(primary, "status", None)
    if isinstance(status, Status) and status.condition(FAILED) is not None:
        status.conditions = [known for known in status.conditions if known.type != FAILED]


class FailureEvents:
    """Records failures as Events. A failure whose text changes with every attempt makes one Event a minute."""

    def __init__(self, recorder: Recorder, clock: Clock) -> None:
        self._recorder = recorder
        self._clock = clock
        self._last: dict[Key, tuple[type[Exception], str, float]] = {}

    def record(self, key: Key, primary: Object, error: Exception) -> None:
        """A reconcile, or the cleanup of an object that is being deleted, failed again."""
        note, now = error_text(error), self._clock.monotonic()
        kind, before, since = self._last.get(key, (None, "", 0.0))
        if kind is type(error) and note != before and now - since < _SAME_NOTE_SECONDS:
            note, now = before, since
        self._last[key] = (type(error), note, now)
        deleting = primary.metadata.deletion_timestamp is not None
        reason, action = ("CleanupFailed", "Cleanup") if deleting else ("ReconcileFailed", "Reconcile")
        self._recorder.record(primary, reason, note, type="Warning", action=action)

    def forget(self, key: Key) -> None:
        """The object is gone, or well again."""
        self._last.pop(key, None)


def error_text(error: Exception) -> str:
    """The type and the text of an error; a user's error may fail even to say what it is."""
    try:
        text = str(error)
    except Exception as second:  # noqa: BLE001 - as above
        text = f"(its text cannot be had: {type(second).__name__})"
    return f"{type(error).__name__}: {text}"
