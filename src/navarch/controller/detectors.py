"""Detects reconcilers that trigger themselves, and reconcilers that change objects whose changes are lost."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec

from navarch._base.clock import Clock
from navarch.api import Key, Kind, encode
from navarch.api.merge_patch import differing_paths
from navarch.cache import Collection, Entry
from navarch.controller.contract import requeue_reason
from navarch.controller.triggers import Version, Writer
from navarch.errors import InvalidValueError
from navarch.observe.logs import logger
from navarch.queue import Work

__all__ = ["LoopDetector", "LoopReport", "MisuseDetector", "OwnChange", "log_loop"]


_misuse_log = logger("navarch.controller.detectors")

_FIRST = 100
_THEN_EVERY = 32
_VIEWS_CHECKED = 16
_PATHS_SHOWN = 5


class MisuseDetector:
    """Checks the first hundred reconciles of a controller and every 32nd after that; warns once of each mistake.

    A check costs about two encodings of the spec and one of each object that was read from the cache.
    """

    def __init__(self, controller: str, collections: Iterable[Collection[Any]]) -> None:
        self._controller = controller
        self._collections = tuple(collections)
        self._count = 0
        self._warned_of_spec = False

    def begin(self, primary: Any) -> bytes | None:
        """Returns the spec before the reconcile; None if this reconcile is not checked."""
        self._count += 1
        if self._count > _FIRST and self._count % _THEN_EVERY:
            return None
        return encode(getattr(primary, "spec", None))

    def end(self, before: bytes | None, primary: Any, key: Key) -> None:
        """Warns of the spec and the cached objects that the reconcile changed."""
        if before is None:
            return
        after = encode(getattr(primary, "spec", None))
        if after != before and not self._warned_of_spec:
            self._warned_of_spec = True
            paths = differing_paths(msgspec.json.decode(before), msgspec.json.decode(after), "spec")
            _misuse_log.warning(
                "the reconciler changed the spec of its object, which is a private copy: nothing of it is written; "
                "use ctx.patch(...) to change the object, or a variable of your own",
                controller=self._controller,
                object=str(key),
                changed=_shown(paths),
            )
        for collection in self._collections:
            for changed, paths in collection.take_changed_views(_VIEWS_CHECKED):
                _misuse_log.warning(
                    "an object from the cache was changed by its reader, and other reconciles could see that; it is read "
                    "anew from now on. Change a copy: found.copy()",
                    controller=self._controller,
                    object=f"{collection.kind.kind} {changed}",
                    changed=_shown(paths),
                )


def _shown(paths: Iterable[str]) -> str:
    first = list(islice(paths, _PATHS_SHOWN + 1))
    return ", ".join(first[:_PATHS_SHOWN]) + (", ..." if len(first) > _PATHS_SHOWN else "")


_log = logger("navarch.controller.detectors")

_MINUTE = 60.0
_PATHS_KEPT = 5
_CHANGES_KEPT = 5
_TIMER_FACTOR = 5  # a step at a time with Result(after=0) is a way to work, and ends
_NEVER = sys.maxsize  # no object has such a version
# Moved by the server with every write.
_SERVER_FIELDS = frozenset({"metadata.resourceVersion", "metadata.generation"})


@dataclass(frozen=True, slots=True)
class OwnChange:
    """An object that the reconciler itself changed, with the paths of the fields. Values are never kept: they may be secrets.

    Without paths, `created` says that it did not exist before, `by_client` that it was written through `ctx.client`.
    """

    kind: str
    key: Key
    paths: tuple[str, ...]
    created: bool = False
    by_client: bool = False

    def __str__(self) -> str:
        if self.by_client:
            return (
                f"{self.kind} {self.key} (by ctx.client, whose writes call the reconciler as anybody's do; use ctx.apply, "
                f"ctx.create or ctx.patch)"
            )
        where = "it was created" if self.created else ", ".join(self.paths) or "nothing that can be told"
        return f"{self.kind} {self.key} ({where})"


@dataclass(frozen=True, slots=True)
class LoopReport:
    """`count` reconciles of one key within `seconds`; `own` of the last `observed` followed from the one before.

    `changes` are the writes of one reconcile that triggered the next, `reasons` why that one ran. Without changes, the
    reconciler requested the next reconcile itself, after `after` seconds.
    """

    controller: str
    key: Key
    count: int
    seconds: float
    own: int
    observed: int
    changes: tuple[OwnChange, ...]
    reasons: tuple[str, ...]
    after: float | None = None

    def __str__(self) -> str:
        often = (
            f"{self.controller} reconciled {self.key} {self.count} times within {self.seconds:.0f} s, {self.own} of "
            f"the last {self.observed} times because "
        )
        if self.after is not None:
            return (
                f"{often}it asked for it with Result(after={self.after:g}); return a longer delay, or None: a change of what "
                f"it reads triggers it anyway"
            )
        return (
            f"{often}of what it had changed itself: {'; '.join(map(str, self.changes))}; "
            f"let what is written depend on the spec alone"
        )


def log_loop(report: LoopReport) -> None:
    """Logs the report as a warning."""
    _log.warning(str(report), controller=report.controller, object=str(report.key), reason=", ".join(report.reasons))


class _Suspect:
    """A key that is reconciled often, with what it writes and whether that triggers it.

    `written` has the versions that the last reconcile wrote, `asked` the paths that it wrote to through `ctx.client`. `changes`
    is None until the key is known to loop; then it collects the changes of one whole reconcile. `after` is the delay that the
    last reconcile requested, `timed` counts the reconciles that followed such a request.
    """

    __slots__ = ("after", "asked", "changes", "observed", "own", "timed", "written")

    def __init__(self) -> None:
        self.observed = 0
        self.own = 0
        self.timed = 0
        self.after: float | None = None
        self.written: dict[tuple[Kind, Key], int] = {}
        self.asked: set[str] = set()
        self.changes: dict[tuple[Kind, Key], OwnChange] | None = None

    def begin(self, causes: Iterable[Version], reasons: tuple[str, ...]) -> dict[tuple[Kind, Key], OwnChange]:
        """Begins the next reconcile; returns the objects that the last one wrote and that triggered this one."""
        after, self.after = self.after, None
        self.timed += after is not None and requeue_reason(after) in reasons
        written, self.written = self.written, {}
        asked, self.asked = self.asked, set()
        collected = self.changes or {}
        own: dict[tuple[Kind, Key], OwnChange] = {}
        for cause in causes:
            if abs(cause.version) >= written.get(cause.object, _NEVER):
                own[cause.object] = collected.get(cause.object) or OwnChange(cause.kind.kind, cause.key, ())
            elif _is_among(cause, asked):
                own[cause.object] = OwnChange(cause.kind.kind, cause.key, (), by_client=True)
        self.observed += 1
        self.own += bool(own)
        return own

    @property
    def is_cause(self) -> bool:
        """Returns whether most of its reconciles followed from its own writes."""
        return self.own * 2 > self.observed

    @property
    def is_timed(self) -> bool:
        """Returns whether most of its reconciles followed from a request of the one before."""
        return self.timed * 2 > self.observed


class LoopDetector:
    """Follows every reconcile and every write, and reports keys that keep triggering themselves.

    A key loops if it is reconciled more than `limit` times within a minute of the clock (minutes are counted from one common
    start) and, in the second half, mostly because an object changed that the reconcile before wrote; or more than five times as
    often, mostly because it requested it (`Result(after=0)`). Each key is reported at most once a minute. What the key changed
    is compared only in the one reconcile that is reported.

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

    def reconciled(self, controller: str, work: Work[Key]) -> None:
        """Counts a reconcile that begins."""
        now = self._clock.monotonic()
        if now - self._since >= _MINUTE:
            self._begin_minute(now)
        counts = self._counts.get(controller)
        if counts is None:
            counts = self._counts[controller] = {}
        counts[work.key] = count = counts.get(work.key, 0) + 1
        if count > self._suspicious:
            self._look_at(Writer(controller, work.key), work, count, now)

    def wrote(self, writer: Writer, version: Version, old: Entry | None, new: Entry) -> None:
        """Records that a write of that key changed `old` (None: a new object) to `new`."""
        suspect = self._suspects.get(writer)
        if suspect is None:
            return
        suspect.written[version.object] = version.version
        if suspect.changes is not None and len(suspect.changes) < _CHANGES_KEPT:
            suspect.changes.setdefault(version.object, _change(version, old, new))

    def requeued(self, writer: Writer, after: float) -> None:
        """Records that a reconcile of that key ended and requested the next one."""
        suspect = self._suspects.get(writer)
        if suspect is not None:
            suspect.after = after

    def note_of(self, writer: Writer) -> Callable[[str], None] | None:
        """Returns the function that records the paths the key writes to by `ctx.client`; None unless the key is suspected."""
        suspect = self._suspects.get(writer)
        return suspect.asked.add if suspect is not None else None

    def _begin_minute(self, now: float) -> None:
        """Drops every key, so that idle keys cost nothing."""
        self._since = now
        self._counts.clear()
        self._suspects.clear()
        self._reported = {writer: when for writer, when in self._reported.items() if now - when < _MINUTE}

    def _look_at(self, writer: Writer, work: Work[Key], count: int, now: float) -> None:
        suspect = self._suspects.get(writer)
        if suspect is None:
            self._suspects[writer] = _Suspect()
            return
        after = suspect.after
        own = suspect.begin((token for token in work.tokens if isinstance(token, Version)), work.reasons)
        is_collected, suspect.changes = suspect.changes is not None, None
        changes = tuple(own.values())[:_CHANGES_KEPT]
        if is_collected and changes:
            self._reported[writer] = now
            seconds = now - self._since
            self._report(LoopReport(*writer, count, seconds, suspect.own, suspect.observed, changes, work.reasons))
        elif now - self._reported.get(writer, -_MINUTE) < _MINUTE:
            return
        elif count > self._limit and suspect.is_cause:
            suspect.changes = {}
        elif count > self._limit * _TIMER_FACTOR and suspect.is_timed and after is not None:
            self._reported[writer] = now
            seconds = now - self._since
            self._report(LoopReport(*writer, count, seconds, suspect.timed, suspect.observed, (), work.reasons, after))


def _is_among(cause: Version, asked: set[str]) -> bool:
    """Returns whether one of the paths is the object's own, below it, or the collection it is created in."""
    if not asked:
        return False
    namespace = cause.key.namespace or None
    own, all_of_them = cause.kind.path(namespace=namespace, name=cause.key.name), cause.kind.path(namespace=namespace)
    return any(path in {own, all_of_them} or path.startswith(f"{own}/") for path in asked)


def _change(version: Version, old: Entry | None, new: Entry) -> OwnChange:
    if old is None:
        return OwnChange(version.kind.kind, version.key, (), created=True)
    paths = differing_paths(msgspec.json.decode(old.data), msgspec.json.decode(new.data))
    own = (path for path in paths if path not in _SERVER_FIELDS)
    return OwnChange(version.kind.kind, version.key, tuple(islice(own, _PATHS_KEPT)))
