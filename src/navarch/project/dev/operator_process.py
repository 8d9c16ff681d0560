"""The process of an operator: forked from a supervisor that has imported the library, so that only the project's code is left."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import ctypes
import logging
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from navarch._base.clock import Clock
from navarch.client import Client, Request, Response, Transport
from navarch.client.transport import WrappedTransport
from navarch.observe import logs
from navarch.observe.metrics import Metrics
from navarch.observe.rendering import JsonFormatter
from navarch.project.dev.messages import (
    EventReported,
    LogRecordLine,
    OperatorLoaded,
    OperatorPrepared,
    ReportChannel,
    SupervisorChannel,
    channel,
    shortened,
)
from navarch.project.dev.operator_program import LoadError, RunOptions, config_of, load_fresh
from navarch.project.dev.operator_state import state_of

if TYPE_CHECKING:
    from navarch.operator import Operator
    from navarch.project.project import Project

_PR_SET_PDEATHSIG: Final = 1
_STATE_SECONDS: Final = 0.5
_OWN_PACKAGES: Final = (
    "navarch",
    "aiohttp",
    "multidict",
    "yarl",
    "msgspec",
    "yaml",
    "prometheus_client",
    "uvloop",
    "re2",
)
"""Whose modules the supervisor imports ahead: they start no threads, and do not change while it runs."""


class OperatorProcess:
    """A forked process: it imports the code, waits for `start`, then runs until SIGTERM."""

    def __init__(self, pid: int, reports: SupervisorChannel, output: int | None) -> None:
        self.pid = pid
        self.reports = reports
        self.output = output
        """The pipe with what it prints; None if it prints to the terminal itself."""
        if output is not None:
            os.set_blocking(output, False)
        self.handle = os.pidfd_open(pid)
        self.is_loaded = False
        self.is_closed = False

    def start(self) -> None:
        """Lets it run."""
        self.reports.start()

    def send_signal(self, number: signal.Signals) -> None:
        """Sends the signal, if the process has not ended."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.handle, number)

    def exit_code(self) -> int | None:
        """Returns its exit code, negative for a signal; None while it runs. Call it until it returns one."""
        found, status = os.waitpid(self.pid, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if found else None

    def close(self) -> None:
        """Closes its channel and pipe."""
        self.is_closed = True
        self.reports.close()
        os.close(self.handle)
        if self.output is not None:
            os.close(self.output)
            self.output = None


def fork_operator(
    project: Project, options: RunOptions, clock: Clock, *, is_shown: bool, forget: Callable[[], None]
) -> OperatorProcess:
    """Forks the process of an operator. With `is_shown`, its logs and its output come as messages and through a pipe.

    `forget` closes in the new process what belongs to the supervisor. The kernel kills the process if the supervisor dies.
    """
    ours, theirs, end = channel()
    reader, writer = os.pipe() if is_shown else (None, None)
    supervisor = os.getpid()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    pid = os.fork()
    if pid:
        end.close()
        if writer is not None:
            os.close(writer)
        return OperatorProcess(pid, ours, reader)
    code = 1
    try:
        _become_child(supervisor)
        forget()
        ours.close()
        if writer is not None and reader is not None:
            os.close(reader)
            _print_to(writer)
        code = _run(project, options, clock, theirs, is_shown=is_shown)
        atexit._run_exitfuncs()  # noqa: SLF001 - `os._exit` does not call them, and the operator's may send traces
    except BaseException:  # noqa: BLE001 - nothing may return into the supervisor's code
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _become_child(supervisor: int) -> None:
    """Takes back what a fork inherits: handlers of signals, of the exit and of logs. A Ctrl-C is left to the supervisor."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != supervisor:
        os._exit(1)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGWINCH, signal.SIG_DFL)
    signal.signal(signal.SIGINT, lambda *_: None)  # not ignored: programs that the operator starts would inherit that
    logging.getLogger().handlers.clear()  # the project may set up its own, unless there are some
    atexit._clear()  # noqa: SLF001 - the supervisor's are not this process' business


def _print_to(writer: int) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(writer, 1)
    os.dup2(writer, 2)
    os.close(writer)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(line_buffering=True)


def _run(project: Project, options: RunOptions, clock: Clock, reports: ReportChannel, *, is_shown: bool) -> int:
    from navarch.operator.program import run_until_signal  # noqa: PLC0415 - `navarch --help` needs no operator

    try:
        operator = load_fresh(project, options)
    except LoadError as error:
        reports.send(error.failure)
        return 1
    reports.send(OperatorLoaded(operator.name))
    if not reports.wait_for_start():
        return 0
    if not logging.getLogger().handlers:
        if is_shown:
            logs.install(_ReportingHandler(reports), options.program.log_level)
        else:
            logs.setup(options.log_format, options.program.log_level)
    serving = partial(_serve, operator, reports, clock, is_shown=is_shown)
    # Ctrl-C signals this process, too: a second signal, from the supervisor, would end reconciles under way at once.
    is_well = run_until_signal(operator.name, serving, config_of(options), signals=(signal.SIGTERM,))
    return 0 if is_well else 1


async def _serve(operator: Operator, reports: ReportChannel, clock: Clock, client: Client, *, is_shown: bool) -> None:
    """Serves the operator, and reports when it is prepared and, with `is_shown`, its state and its Events."""
    from navarch.operator.process import serve  # noqa: PLC0415 - `navarch --help` needs no operator

    metrics = Metrics(operator.endpoints.registry if operator.endpoints else None)
    prepared = asyncio.Event()

    async def report_modules() -> None:
        await prepared.wait()
        reports.send(OperatorPrepared(_library_modules()))

    async def report_state() -> None:
        while True:
            reports.send(state_of(metrics, client.host, clock.monotonic(), reports.dropped))
            await clock.sleep(_STATE_SECONDS)

    used = client.through(lambda transport: _EventForwarder(transport, reports)) if is_shown else client
    async with asyncio.TaskGroup() as group:
        reporting = [group.create_task(report_modules())]
        if is_shown:
            reporting.append(group.create_task(report_state()))
        try:
            await serve(used, operator, prepared=prepared, metrics=metrics)
        finally:
            for task in reporting:
                task.cancel()


def _library_modules() -> list[str]:
    return sorted(name for name in sys.modules if name.partition(".")[0] in _OWN_PACKAGES)


class _ReportingHandler(logging.Handler):
    """Sends log records to the supervisor."""

    def __init__(self, reports: ReportChannel) -> None:
        super().__init__()
        self._reports = reports
        self.setFormatter(JsonFormatter())

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._reports.send(LogRecordLine(self.format(record)))
        except Exception:  # noqa: BLE001 - a record must not end the operator
            self.handleError(record)


class _EventForwarder(WrappedTransport):
    """Reports the Kubernetes Events that the operator creates."""

    def __init__(self, transport: Transport, reports: ReportChannel) -> None:
        super().__init__(transport)
        self._reports = reports

    async def send(self, request: Request) -> Response:
        """See `Transport.send`."""
        if request.method == "POST" and request.path.endswith("/events") and request.body is not None:
            with contextlib.suppress(msgspec.MsgspecError):
                event = msgspec.json.decode(request.body, type=_EventBody)
                about = f"{event.regarding.kind} {event.regarding.namespace}/{event.regarding.name}"
                self._reports.send(EventReported(event.type, event.reason, about, shortened(event.note)))
        return await self._transport.send(request)


class _Regarding(msgspec.Struct):
    kind: str = ""
    namespace: str = ""
    name: str = ""


class _EventBody(msgspec.Struct):
    regarding: _Regarding = msgspec.field(default_factory=_Regarding)
    type: str = ""
    reason: str = ""
    note: str = ""
