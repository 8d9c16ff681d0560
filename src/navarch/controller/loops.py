"""Finds objects that are reconciled over and over because of what their own reconciler writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

import msgspec

from navarch._base.clock import Clock
from navarch.api import Key
from navarch.api.differences import differing_paths
from navarch.cache import Entry
from navarch.controller.reach import Version, Writer
from navarch.errors import InvalidValueError
from navarch.observe.logs import logger

__all__ = ["LoopDetector", "LoopReport", "OwnChange", "log_loop"]

_log = logger("navarch.controller.loops")

_MINUTE = 60.0
_PATHS_KEPT = 5
_CHANGES_KEPT = 5
# Moved by the server with every write.
_SERVER_FIELDS = frozenset({"metadata.resourceVersion", "metadata.generation"})


@dataclass(frozen=True, slots=True)
class OwnChange:
    """An object that the reconciler itself changed, and where. The fields' values are never kept: they may be secrets.

    No paths, and `created`: it was not there before.
    """

    kind: str
    key: Key
    paths: tuple[str, ...]
    created: bool = False

    def __str__(self) -> str:
        where = "it was created" if self.created else ", ".join(self.paths) or "nothing that can be told"
        return f"{self.kind} {self.key} ({where})"


@dataclass(frozen=True, slots=True)
class LoopReport:
    """`count` reconciles of one key within `seconds`; it changed something in `changing` of the last `observed`.

    `changes` are those of one of these reconciles, `reasons` why it ran.
    """

    controller: str
    key: Key
    count: int
    seconds: float
    changing: int
    observed: int
    changes: tuple[OwnChange, ...]
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"{self.controller} reconciled {self.key} {self.count} times within {self.seconds:.0f} s; in {self.changing} of "
            f"the last {self.observed} times it changed something itself: {'; '.join(map(str, self.changes))}; "
            f"let what is written depend on the spec alone"
        )


def log_loop(report: LoopReport) -> None:
    """Logs it as a warning."""
    _log.warning(str(report), controller=report.controller, object=str(report.key), reason=", ".join(report.reasons))


class _Suspect:
    """A key that is reconciled often: from here on it is looked at what it writes.

    `changes` is None until it is clear that it loops; then those of one whole reconcile are collected.
    """

    __slots__ = ("changed", "changes", "changing", "observed", "reasons")

    def __init__(self) -> None:
        self.observed = 0
        self.changing = 0
        self.changed = False
        self.changes: dict[tuple[str, Key], OwnChange] | None = None
        self.reasons: tuple[str, ...] = ()

    def begin(self) -> None:
        """The reconcile before this one is over."""
        self.observed += 1
        self.changing += self.changed
        self.changed = False

    @property
    def is_cause(self) -> bool:
        """Whether most of its reconciles changed something."""
        return self.changing * 2 > self.observed


class LoopDetector:
    """Is told of every reconcile and of every write, and reports keys that keep themselves busy.

    A key loops if it is reconciled more than `limit` times within a minute of the clock (minutes are counted from one
    common start) and changed something in most of the reconciles of the second half. It is reported at most once a
    minute. What the key changed is only looked at in the one reconcile that is reported.

    A reconcile costs one addition, and memory one number for each key that was reconciled within the minute.
    """

    def __init__(self, clock: Clock, limit: int = 60, report: Callable[[LoopReport], None] = log_loop) -> None:
        if limit < 2:
            raise InvalidValueError(f"expected a limit of at least 2 reconciles a minute, got {limit}")
        self._clock = clock
        self._limit = limit
        self._report = report
        self._suspicious = limit // 2
        self._since = clock.monotonic()
        self._counts: dict[str, dict[Key, int]] = {}
        self._suspects: dict[Writer, _Suspect] = {}
        self._reported: dict[Writer, float] = {}

    def reconciled(self, controller: str, key: Key, reasons: tuple[str, ...] = ()) -> None:
        """A reconcile of that key begins."""
        now = self._clock.monotonic()
        if now - self._since >= _MINUTE:
            self._begin_minute(now)
        counts = self._counts.get(controller)
        if counts is None:
            counts = self._counts[controller] = {}
        counts[key] = count = counts.get(key, 0) + 1
        if count > self._suspicious:
            self._look_at(Writer(controller, key), count, reasons, now)

    def wrote(self, writer: Writer, version: Version, old: Entry | None, new: Entry) -> None:
        """A write of that key made `new` of `old` (None: it was not there); writes that changed nothing are not told."""
        suspect = self._suspects.get(writer)
        if suspect is None:
            return
        suspect.changed = True
        if suspect.changes is not None and len(suspect.changes) < _CHANGES_KEPT:
            change = _change(version, old, new)
            suspect.changes.setdefault((change.kind, change.key), change)

    def _begin_minute(self, now: float) -> None:
        """Forgets every key, so that those that are idle cost nothing."""
        self._since = now
        self._counts.clear()
        self._suspects.clear()
        self._reported = {writer: when for writer, when in self._reported.items() if now - when < _MINUTE}

    def _look_at(self, writer: Writer, count: int, reasons: tuple[str, ...], now: float) -> None:
        suspect = self._suspects.get(writer)
        if suspect is None:
            self._suspects[writer] = _Suspect()
            return
        suspect.begin()
        if suspect.changes:
            self._tell(writer, count, suspect, now)
        elif count > self._limit and suspect.is_cause and now - self._reported.get(writer, -_MINUTE) >= _MINUTE:
            suspect.changes, suspect.reasons = {}, reasons

    def _tell(self, writer: Writer, count: int, suspect: _Suspect, now: float) -> None:
        changes, suspect.changes = tuple((suspect.changes or {}).values()), None
        self._reported[writer] = now
        self._report(
            LoopReport(
                controller=writer.controller,
                key=writer.key,
                count=count,
                seconds=now - self._since,
                changing=suspect.changing,
                observed=suspect.observed,
                changes=changes,
                reasons=suspect.reasons,
            )
        )


def _change(version: Version, old: Entry | None, new: Entry) -> OwnChange:
    if old is None:
        return OwnChange(version.kind.kind, version.key, (), created=True)
    paths = differing_paths(msgspec.json.decode(old.data), msgspec.json.decode(new.data))
    own = (path for path in paths if path not in _SERVER_FIELDS)
    return OwnChange(version.kind.kind, version.key, tuple(islice(own, _PATHS_KEPT)))
