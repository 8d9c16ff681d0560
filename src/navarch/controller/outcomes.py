"""What follows a reconcile: when the key comes again, and what is said about it."""

from __future__ import annotations

from typing import Final

from navarch._base.deadlines import CutOffError
from navarch.api import Key, Object
from navarch.controller.contract import Permanent, Result, Retry
from navarch.controller.events import Recorder
from navarch.errors import Conflict, DecodeError, Forbidden, NavarchError, NotLeaderError
from navarch.observe.logs import Log
from navarch.observe.metrics import Outcome
from navarch.observe.places import users_line
from navarch.queue import WorkQueue

__all__ = ["Outcomes"]


_MISSING_RIGHT: Final = (
    "let a role grant it; if no declaration needs it, name it in Operator(uses=(Uses(...),)), so that it is checked at the "
    "start and roles_of(...) has it"
)
_TOO_LONG: Final = (
    "return Result(after=...) instead of waiting for something, or declare a longer timeout= with the controller"
)


class Outcomes:
    """Deals with how reconciles end. The same failure of the same object is told once, with its cause."""

    def __init__(self, queue: WorkQueue[Key], recorder: Recorder) -> None:
        self._queue = queue
        self._recorder = recorder
        self._told: dict[Key, str] = {}

    def returned(self, key: Key, result: Result | None) -> Outcome:
        """All is well; it comes again when it asked for it."""
        self._told.pop(key, None)
        self._queue.forget(key)
        if result is None:
            return "success"
        self._queue.add_after(key, result.after, reason=f"{result.after:g} s have passed")
        return "requeue_after"

    def raised(self, key: Key, error: Exception, primary: Object | None, log: Log) -> Outcome:
        """It comes again after the delay it asked for, when it changes (`Permanent`), or with growing delays."""
        if isinstance(error, Retry):
            return self._put_off(key, error, log)
        if isinstance(error, Permanent):
            return self._gave_up(key, error, primary, log)
        delay = self._queue.retry(key, reason=f"{type(error).__name__} before")
        self._tell(key, error, log, delay)
        if isinstance(error, CutOffError):
            return "timeout"
        return "error" if isinstance(error, (NavarchError, OSError)) else "crash"

    def does_not_fit(self, key: Key, error: DecodeError, log: Log) -> Outcome:
        """The object cannot be read: it comes again when it changes."""
        self._queue.forget(key)
        if self._is_new(key, error):
            log.error("an object does not fit its model", object=str(key), why=str(error))
        return "terminal"

    def forget(self, key: Key) -> None:
        """The object is gone."""
        self._told.pop(key, None)
        self._queue.forget(key)

    def _put_off(self, key: Key, retry: Retry, log: Log) -> Outcome:
        why = _text(retry)
        (log.info if self._is_new(key, retry) else log.debug)("not yet", why=why, after=retry.after)
        if retry.after is None:
            self._queue.retry(key, reason=why)
            return "requeue"
        self._queue.add_after(key, retry.after, reason=why)
        return "requeue_after"

    def _gave_up(self, key: Key, error: Permanent, primary: Object | None, log: Log) -> Outcome:
        self._queue.forget(key)
        if self._is_new(key, error):
            log.error("gave up until the object changes", why=_text(error))
            if primary is not None:
                self._recorder.record(primary, "GaveUp", _text(error), type="Warning")
        return "terminal"

    def _tell(self, key: Key, error: Exception, log: Log, delay: float) -> None:
        if _is_everyday(error) or not self._is_new(key, error):
            log.debug("failed", why=f"{type(error).__name__}: {_text(error)}", again_in=round(delay, 3))
        elif isinstance(error, NavarchError):
            log.warning("failed", why=_text(error), **_help(error), again_in=round(delay, 3))
        else:
            log.exception("failed", **_help(error), again_in=round(delay, 3))  # noqa: LOG004 - called while it is being handled

    def _is_new(self, key: Key, error: Exception) -> bool:
        said = f"{type(error).__name__}: {_text(error)}"
        is_new = self._told.get(key) != said
        self._told[key] = said
        return is_new


def _help(error: Exception) -> dict[str, str]:
    """What else is told of an error: where in the user's code it came from, and what to do, as far as that is known."""
    place = users_line(error) or (users_line(error.__cause__) if error.__cause__ is not None else "")
    return {name: text for name, text in (("place", place), ("remedy", _remedy(error))) if text}


def _remedy(error: Exception) -> str:
    if isinstance(error, CutOffError):
        return _TOO_LONG
    return _MISSING_RIGHT if isinstance(error, Forbidden) and '" cannot ' in error.message else ""


def _is_everyday(error: Exception) -> bool:
    """Part of every controller's life, and over with the next try. Fields that others manage stay theirs: no such thing."""
    return isinstance(error, NotLeaderError) or (isinstance(error, Conflict) and not error.managers)


def _text(error: Exception) -> str:
    """A user's error may fail even to say what it is."""
    try:
        return str(error)
    except Exception as second:  # noqa: BLE001 - as above
        return f"(its text cannot be had: {type(second).__name__})"
