"""`Outcomes`: requeues, logs and reports a reconcile by how it ended."""

from __future__ import annotations

from typing import Any, Final

from navarch._base.clock import Clock
from navarch._base.deadlines import CutOffError
from navarch.api import Condition, Key, Object, Status
from navarch.controller.contract import Permanent, Result, Retry, requeue_reason
from navarch.controller.events import Recorder
from navarch.errors import Conflict, DecodeError, Forbidden, NavarchError, NotLeaderError
from navarch.observe.logs import Log
from navarch.observe.metrics import Outcome
from navarch.observe.source_lines import users_line
from navarch.queue import WorkQueue

__all__ = ["Outcomes", "clear_failed", "is_failure", "mark_failed"]


FAILED = "ReconcileFailed"
"""The condition that is true while an object's reconcile or cleanup keeps failing, and absent otherwise."""

_LONGEST_MESSAGE = 1024
_SAME_NOTE_SECONDS = 60.0


def is_failure(error: Exception) -> bool:
    """Returns whether an error is worth a report: a conflict or a lost election is over with the next attempt.

    A conflict about fields of other managers is a failure.
    """
    if isinstance(error, Conflict):
        return bool(error.managers)
    return not isinstance(error, (NotLeaderError, Retry, Permanent))


def mark_failed(primary: Any, error: Exception, clock: Clock) -> bool:
    """Sets the condition where the status has conditions; returns whether it changed."""
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
    """Removes the condition from an object whose reconcile succeeded."""
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
        """Records that a reconcile, or the cleanup of an object that is being deleted, failed again."""
        note, now = error_text(error), self._clock.monotonic()
        kind, before, since = self._last.get(key, (None, "", 0.0))
        if kind is type(error) and note != before and now - since < _SAME_NOTE_SECONDS:
            note, now = before, since
        self._last[key] = (type(error), note, now)
        deleting = primary.metadata.deletion_timestamp is not None
        reason, action = ("CleanupFailed", "Cleanup") if deleting else ("ReconcileFailed", "Reconcile")
        self._recorder.record(primary, reason, note, type="Warning", action=action)

    def forget(self, key: Key) -> None:
        """Drops an object that is deleted or has recovered."""
        self._last.pop(key, None)


def error_text(error: Exception) -> str:
    """Returns the type and the text of an error; the text of a user's error may itself raise."""
    try:
        text = str(error)
    except Exception as second:  # noqa: BLE001 - as above
        text = f"(its text cannot be had: {type(second).__name__})"
    return f"{type(error).__name__}: {text}"


_MISSING_RIGHT: Final = (
    "let a role grant it; if no declaration needs it, name it in Operator(uses=(Uses(...),)), so that it is checked at the "
    "start and roles_of(...) has it"
)
_TOO_LONG: Final = (
    "return Result(after=...) instead of waiting for something, or declare a longer timeout= with the controller"
)


class Outcomes:
    """Decides what follows a reconcile. The same failure of the same object is logged once, with its cause.

    A failure that repeats is shown on the object by an Event.
    """

    def __init__(self, queue: WorkQueue[Key], recorder: Recorder, clock: Clock) -> None:
        self._queue = queue
        self._recorder = recorder
        self._events = FailureEvents(recorder, clock)
        self._requeues = _RequeueLimit(clock)
        self._logged: dict[Key, str] = {}
        self._failing: dict[Key, int] = {}

    def returned(self, key: Key, result: Result | None, log: Log) -> Outcome:
        """Handles success; requeues the key if the reconciler requested it."""
        self._logged.pop(key, None)
        self._queue.forget(key)
        if failures := self._failing.pop(key, 0):
            self._events.forget(key)
            log.info("recovered", failures=failures)
        if result is None:
            return "success"
        delay = max(result.after, self._requeues.delay(key, result.after))
        self._queue.add_after(key, delay, reason=requeue_reason(result.after))
        return "requeue_after"

    def raised(self, key: Key, error: Exception, primary: Object | None, log: Log) -> Outcome:
        """Handles an error: requeues after the requested delay or with backoff; `Permanent` waits for a change."""
        if isinstance(error, Retry):
            return self._put_off(key, error, log)
        if isinstance(error, Permanent):
            return self._gave_up(key, error, primary, log)
        delay = self._queue.retry(key, reason=f"{type(error).__name__} before")
        self._log_failure(key, error, log, delay)
        if is_failure(error):
            self._failing[key] = failures = self._failing.get(key, 0) + 1
            if failures > 1 and primary is not None:
                self._events.record(key, primary, error)
        if isinstance(error, CutOffError):
            return "timeout"
        return "error" if isinstance(error, (NavarchError, OSError)) else "crash"

    def does_not_fit(self, key: Key, error: DecodeError, log: Log) -> Outcome:
        """Handles an object that does not fit its model: it waits for a change."""
        self._queue.forget(key)
        if self._is_new(key, error):
            log.error(
                "an object does not fit its model; change the object, or the class", object=str(key), why=str(error)
            )
        return "terminal"

    def forget(self, key: Key) -> None:
        """Drops an object that is deleted."""
        self._logged.pop(key, None)
        self._failing.pop(key, None)
        self._events.forget(key)
        self._requeues.forget(key)
        self._queue.forget(key)

    def _put_off(self, key: Key, retry: Retry, log: Log) -> Outcome:
        why = _text(retry)
        (log.info if self._is_new(key, retry) else log.debug)("not yet", why=why, after=retry.after)
        if retry.after is None:
            self._queue.retry(key, reason=why)
            return "requeue"
        self._queue.add_after(key, max(retry.after, self._requeues.delay(key, retry.after)), reason=why)
        return "requeue_after"

    def _gave_up(self, key: Key, error: Permanent, primary: Object | None, log: Log) -> Outcome:
        self._queue.forget(key)
        if self._is_new(key, error):
            log.error("gave up until the object changes", why=_text(error))
            if primary is not None:
                self._recorder.record(primary, "GaveUp", _text(error), type="Warning")
        return "terminal"

    def _log_failure(self, key: Key, error: Exception, log: Log, delay: float) -> None:
        if not is_failure(error) or not self._is_new(key, error):
            log.debug("failed", why=error_text(error), again_in=round(delay, 3))
        elif isinstance(error, NavarchError):
            log.warning("failed", why=_text(error), **_help(error), again_in=round(delay, 3))
        else:
            log.exception("failed", why=error_text(error), **_help(error), again_in=round(delay, 3))  # noqa: LOG004 - called while it is being handled

    def _is_new(self, key: Key, error: Exception) -> bool:
        said = error_text(error)
        is_new = self._logged.get(key) != said
        self._logged[key] = said
        return is_new


def _help(error: Exception) -> dict[str, str]:
    """Returns the line of the user's code that raised the error, and a remedy, as far as they are known."""
    place = users_line(error) or (users_line(error.__cause__) if error.__cause__ is not None else "")
    return {name: text for name, text in (("place", place), ("remedy", _remedy(error))) if text}


def _remedy(error: Exception) -> str:
    if isinstance(error, CutOffError):
        return _TOO_LONG
    return _MISSING_RIGHT if isinstance(error, Forbidden) and '" cannot ' in error.message else ""


class _RequeueLimit:
    """Slows down an object that keeps requesting the next reconcile at once.

    The first `_BURST` requests are granted at once, the following ones at most every `_INTERVAL` seconds.
    """

    _BURST: Final = 200
    _INTERVAL: Final = 0.1

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # When each key's requeues so far would have been done, one every interval.
        self._done_at: dict[Key, float] = {}

    def delay(self, key: Key, after: float) -> float:
        """Counts one request and returns the seconds that it has to wait at least."""
        if after >= self._INTERVAL:
            self._done_at.pop(key, None)
            return 0.0
        now = self._clock.monotonic()
        done_at = self._done_at[key] = max(self._done_at.get(key, now), now) + self._INTERVAL
        return max(done_at - now - self._BURST * self._INTERVAL, 0.0)

    def forget(self, key: Key) -> None:
        """Drops an object that is deleted."""
        self._done_at.pop(key, None)


def _text(error: Exception) -> str:
    return error_text(error).partition(": ")[2]
