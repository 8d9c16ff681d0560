"""Runs the operator of a project in a process of its own, and replaces that process when the code changes.

The supervisor has one thread and no event loop, so that a fork is safe at any time. New code is imported while the former
process still runs: code that cannot be imported changes nothing.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Final

from navarch._base.clock import Clock
from navarch.project.dev.display import RunDisplay
from navarch.project.dev.messages import (
    EventReported,
    LoadFailed,
    LogRecordLine,
    Message,
    OperatorLoaded,
    OperatorPrepared,
    OperatorState,
)
from navarch.project.dev.operator_process import OperatorProcess, fork_operator
from navarch.project.dev.operator_program import RunOptions
from navarch.project.dev.preload import preload_modules
from navarch.project.dev.run_model import RunModel
from navarch.project.dev.sources import SourceWatcher
from navarch.project.project import Project

_LOOK_SECONDS: Final = 0.1
_LOOK_SHARE: Final = 5.0
"""A look at very many files is followed by a pause that is so many times as long."""
_SETTLE_SECONDS: Final = 0.03
_REFRESH_SECONDS: Final = 0.25
_STOP_SECONDS: Final = 2.0
"""After SIGTERM, the operator's process has so long to end; its reconciles under way have one second of it."""
_MOST_BYTES: Final = 65536
_TURN: Final = 16
"""How many messages, or pieces of output, are taken before signals and files get their turn: a process may write without end."""
_REST: Final = 1000
"""As above, once the process has ended."""


class DevSupervisor:
    """One `navarch run`. `run` returns its exit code; nothing that it started is left then."""

    def __init__(
        self, project: Project, options: RunOptions, model: RunModel, display: RunDisplay, clock: Clock
    ) -> None:
        self._project = project
        self._options = options
        self._model = model
        self._display = display
        self._clock = clock
        self._selector = selectors.DefaultSelector()
        self._sources = SourceWatcher(project.root / "src") if model.reload else None
        self._current: OperatorProcess | None = None
        """The process that runs, or that is being stopped."""
        self._next: OperatorProcess | None = None
        """The process that imports newer code, or that waits for the end of the current one."""
        self._kill_at: float | None = None
        self._signals = 0
        """How many signals to end have come, and how many of them were followed."""
        self._followed = 0
        self._wake: tuple[socket.socket, socket.socket] | None = None
        self._code = 0
        self._changed_at: float | None = None
        self._is_gone = False
        self._partial: dict[int, bytes] = {}

    def run(self) -> int:
        """Runs until SIGINT or SIGTERM, or, without reload, until the operator ends."""
        with self._handling_signals(), self._selector:
            try:
                self._launch()
                self._loop()
            finally:
                for process in (self._current, self._next):
                    if process is not None:
                        self._kill(process)
        return self._code

    def _loop(self) -> None:
        look_at = refresh_at = self._clock.monotonic()
        while self._current is not None or self._next is not None or (self._model.reload and not self._signals):
            now = self._clock.monotonic()
            if self._signals > self._followed:
                self._followed = self._signals
                self._end()
            if now >= look_at and self._sources is not None and not self._signals:
                look_at = now + self._look(self._sources)
            if now >= refresh_at:
                self._display.refresh(self._model, now)
                refresh_at = now + _REFRESH_SECONDS
            if self._kill_at is not None and now >= self._kill_at and self._current is not None:
                self._kill_at = None
                self._current.send_signal(signal.SIGKILL)
            waits = [refresh_at, *([look_at] if self._sources else []), *([self._kill_at] if self._kill_at else [])]
            for key, _ in self._selector.select(max(min(waits) - self._clock.monotonic(), 0.0)):
                self._serve(key.data)
            self._display.flush()
        self._display.flush()

    def _serve(self, source: OperatorProcess | None) -> None:
        if source is not None and source.is_closed:  # by a descriptor before this one, in the same turn
            return
        if source is not None:
            self._read_reports(source)
            self._read_output(source)
            self._reap(source)
        elif self._wake is not None:
            with contextlib.suppress(BlockingIOError):
                self._wake[0].recv(_MOST_BYTES)

    # Signals

    @contextlib.contextmanager
    def _handling_signals(self) -> Iterator[None]:
        """Wakes the loop for SIGINT and SIGTERM. A second signal kills."""
        ours, theirs = self._wake = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        self._selector.register(ours, selectors.EVENT_READ, None)
        wake = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
        before = {number: signal.signal(number, self._signalled) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            signal.set_wakeup_fd(wake)
            for number, handler in before.items():
                signal.signal(number, handler)
            ours.close()
            theirs.close()

    def _signalled(self, _number: int, _frame: FrameType | None) -> None:
        self._signals += 1

    def _end(self) -> None:
        self._model.phase = "stopping"
        if self._next is not None:
            self._next.send_signal(signal.SIGKILL)
        if self._current is not None:
            self._stop(self._current, signal.SIGTERM if self._signals == 1 else signal.SIGKILL)

    # Processes

    def _launch(self) -> None:
        """Forks a process that imports the present code."""
        process = fork_operator(
            self._project, self._options, self._clock, is_shown=self._display.is_live, forget=self._close_inherited
        )
        self._next = process
        for descriptor in (process.reports.fileno(), process.handle, process.output):
            if descriptor is not None:
                self._selector.register(descriptor, selectors.EVENT_READ, process)

    def _close_inherited(self) -> None:
        """Closes, in a forked process, what belongs to the supervisor."""
        self._selector.close()
        for end in self._wake or ():
            end.close()
        for process in (self._current, self._next):
            if process is not None:
                process.close()

    def _stop(self, process: OperatorProcess, number: signal.Signals) -> None:
        if self._kill_at is None:
            self._kill_at = self._clock.monotonic() + _STOP_SECONDS
        process.send_signal(number)

    def _promote(self) -> None:
        """Starts the loaded process, once the former one has ended."""
        if self._next is None or not self._next.is_loaded or self._signals:
            return
        if self._current is not None:
            self._stop(self._current, signal.SIGTERM)
            return
        self._current, self._next = self._next, None
        self._model.restarted()
        self._model.phase, self._model.problem = "running", ""
        self._current.start()
        if self._changed_at is not None:
            self._model.reloads += 1
            self._model.reload_seconds = self._clock.monotonic() - self._changed_at
            self._display.note("info", f"reloaded in {self._model.reload_seconds:.2f} s")
            self._changed_at = None

    def _reap(self, process: OperatorProcess) -> None:
        code = process.exit_code()
        if code is None:
            return
        self._read_reports(process, _REST)
        self._read_output(process, _REST)
        self._forget(process)
        if process is self._next:
            self._next = None
            self._load_ended(code)
        elif process is self._current:
            self._current, self._kill_at = None, None
            self._current_ended(code)

    def _load_ended(self, code: int) -> None:
        """A process that has ended before it was started: its code cannot be imported, or newer code has come."""
        if self._signals:
            return
        if not self._model.problem:
            self._failed(LoadFailed("", f"the process ended with {_exit(code)} while it imported the code"))
        if not self._model.reload:
            self._code = 1

    def _current_ended(self, code: int) -> None:
        if self._next is not None and self._next.is_loaded and not self._signals:
            self._promote()
            return
        if self._signals or self._next is not None:
            return
        self._model.restarted()
        self._model.phase = "ended"
        self._code = code if code > 0 else 1 if code else 0
        if self._model.reload:
            self._code = 0
            self._model.problem = f"the operator ended with {_exit(code)}"
            self._display.note("error", f"the operator ended with {_exit(code)}; it starts again when a file is saved")
        elif code < 0:
            self._display.note("error", f"the operator ended with {_exit(code)}")

    def _kill(self, process: OperatorProcess) -> None:
        """Ends the process at once, and waits for it."""
        process.send_signal(signal.SIGKILL)
        while process.exit_code() is None:
            selector = selectors.DefaultSelector()
            selector.register(process.handle, selectors.EVENT_READ)
            selector.select()
            selector.close()
        self._forget(process)

    def _forget(self, process: OperatorProcess) -> None:
        for descriptor in (process.reports.fileno(), process.handle, process.output):
            if descriptor is not None:
                with contextlib.suppress(KeyError, ValueError):
                    self._selector.unregister(descriptor)
        if process.output is not None and (rest := self._partial.pop(process.output, b"")):
            self._display.output(rest.decode(errors="replace"))
        process.close()

    # Reports

    def _read_reports(self, process: OperatorProcess, most: int = _TURN) -> None:
        for _ in range(most):
            message = process.reports.receive()
            if message is None:
                return
            self._take(process, message)

    def _take(self, process: OperatorProcess, message: Message) -> None:
        if isinstance(message, LogRecordLine):
            self._display.record(message.json)
        elif isinstance(message, EventReported):
            self._display.event(message)
        elif isinstance(message, OperatorState):
            if process is self._current:
                self._model.take(message)
        elif isinstance(message, LoadFailed):
            self._failed(message)
        elif isinstance(message, OperatorLoaded):
            process.is_loaded = True
            self._model.operator = message.operator
            self._promote()
        elif isinstance(message, OperatorPrepared):
            preload_modules(message.modules)

    def _failed(self, failure: LoadFailed) -> None:
        self._model.problem = f"{failure.place}: {failure.cause}" if failure.place else failure.cause
        if self._current is None:
            self._model.phase = "failed"
            state = "nothing runs until the next file is saved" if self._model.reload else ""
        else:
            self._model.phase = "running"
            state = "the code of before keeps running; save the file again"
        self._changed_at = None
        self._display.failure(failure, state)

    def _read_output(self, process: OperatorProcess, most: int = _TURN) -> None:
        """Shows whole lines that the process printed."""
        for _ in range(most):
            if process.output is None:
                return
            try:
                found = os.read(process.output, _MOST_BYTES)
            except BlockingIOError:
                return
            *lines, rest = (self._partial.pop(process.output, b"") + found).split(b"\n")
            for line in [*lines, *([rest] if rest and not found else [])]:
                self._display.output(line.decode(errors="replace"))
            if found:
                self._partial[process.output] = rest[-_MOST_BYTES:]
                continue
            self._selector.unregister(process.output)  # its end: without this, a selector reports it again and again
            os.close(process.output)
            process.output = None

    # Sources

    def _look(self, sources: SourceWatcher) -> float:
        """Looks for changes once, and returns the seconds until the next look."""
        if sources.is_gone:
            if not self._is_gone:
                self._is_gone = True
                self._display.note(
                    "warning",
                    f"the project is no longer at {self._project.root}: it was moved or deleted; the operator keeps "
                    f"running with the code it has. Go to the new folder and run it there",
                )
            return _LOOK_SECONDS
        if self._is_gone:
            self._is_gone = False
            self._display.note("info", f"the project is back at {self._project.root}")
        began = self._clock.monotonic()
        changed = sources.changes()
        took = self._clock.monotonic() - began
        if changed:
            self._reload(changed, began)
        elif sources.is_unsettled and self._changed_at is None:
            self._changed_at = began
        return max(_SETTLE_SECONDS if sources.is_unsettled else _LOOK_SECONDS, took * _LOOK_SHARE)

    def _reload(self, changed: list[Path], now: float) -> None:
        self._changed_at = self._changed_at or now
        shown = ", ".join(str(_short(path, self._project.root)) for path in changed[:3])
        more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
        self._display.note("info", f"{shown}{more} changed; reloading")
        self._model.phase, self._model.problem = "reloading", ""
        if self._next is not None:  # it imports, or has imported, older code
            process, self._next = self._next, None
            self._kill(process)
        self._launch()


def _short(path: Path, root: Path) -> Path:
    return path.relative_to(root) if root in path.parents else path


def _exit(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
