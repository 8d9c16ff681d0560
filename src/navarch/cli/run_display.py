"""Shows a run to people: log lines above a panel with controllers and watches, or log lines alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Final, Self

import msgspec
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from navarch.observe import logs
from navarch.observe.rendering import CALLED_BY
from navarch.project.dev.display import Level
from navarch.project.dev.messages import EventReported, LoadFailed, WatchState
from navarch.project.dev.run_model import ControllerRow, RunModel

_COLOURS: Final = {"debug": "bright_black", "info": "green", "warning": "yellow", "error": "red", "critical": "red"}
_HIDDEN: Final = frozenset({"time", "level", "logger", "event", "exception", "reconcile_id"})
_WIDEST: Final = 100
"""Lines of the panel are no longer than that: a terminal that becomes narrower wraps fewer of them."""
_LEAST_LINES: Final = 6
"""A terminal with fewer lines than this shows the first line of the panel alone."""
_NARROW: Final = 56
"""A panel that is narrower than this leaves out how many reconciles there were."""
_STALE_SECONDS: Final = 60.0


class LogDisplay:
    """Writes log lines to standard error, as `operator.run()` does; the operator's process writes its own."""

    is_live = False

    def __init__(self, log_format: logs.Format, level: str) -> None:
        self._log_format: logs.Format = log_format
        self._level = level
        self._log = logs.logger("navarch.run")

    def __enter__(self) -> Self:
        logs.setup(self._log_format, self._level)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Leaves the log as it is."""

    def note(self, level: Level, text: str) -> None:
        """See `RunDisplay`."""
        getattr(self._log, level)(text)

    def failure(self, failure: LoadFailed, state: str) -> None:
        """See `RunDisplay`."""
        fields = {"why": failure.cause, "place": failure.place, "state": state}
        self._log.error("cannot import the code", **{name: value for name, value in fields.items() if value})

    def record(self, line: str) -> None:
        """The operator's process writes its log itself."""

    def event(self, event: EventReported) -> None:
        """Events are not logged, as in production."""

    def output(self, line: str) -> None:
        """The operator's process prints to the terminal itself."""

    def flush(self) -> None:
        """Nothing waits."""

    def refresh(self, model: RunModel, now: float) -> None:
        """There is no view."""


class LiveDisplay:
    """Prints logs, events and output above a panel that stays at the bottom of the terminal."""

    is_live = True

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False, soft_wrap=False)
        self._waiting: list[Text] = []
        self._live = Live(
            console=self._console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
        )

    def __enter__(self) -> Self:
        self._live.start()
        self._console.show_cursor(True)  # a killed process could not bring it back
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.flush()
        self._live.stop()

    def note(self, level: Level, text: str) -> None:
        """See `RunDisplay`."""
        self._print(Text.assemble(("navarch ", f"bold {_COLOURS[level]}"), (text, "bold")))

    def failure(self, failure: LoadFailed, state: str) -> None:
        """See `RunDisplay`."""
        where = f"{failure.place}: " if failure.place else ""
        cause = _printable(f"cannot import {where}{failure.cause}")
        self._print(Text.assemble(("navarch ", "bold red"), (cause, "bold")))
        if failure.trace:
            self._print(Text(_printable(failure.trace)))
        if state:
            self._print(Text(f"        {state}", "yellow"))

    def record(self, line: str) -> None:
        """See `RunDisplay`."""
        try:
            found: dict[str, Any] = msgspec.json.decode(line)
        except msgspec.DecodeError:
            self._print(Text(_printable(line)))
            return
        self._print(_record(found))
        if failure := found.get("exception"):
            own, _, _ = str(failure).partition(CALLED_BY)
            self._print(Text(_printable(own.rstrip()), "bright_black"))

    def event(self, event: EventReported) -> None:
        """See `RunDisplay`."""
        colour = "yellow" if event.type == "Warning" else "cyan"
        self._print(
            Text.assemble(("event   ", colour), (event.reason, "bold"), f" {event.about}: {_printable(event.note)}")
        )

    def output(self, line: str) -> None:
        """See `RunDisplay`."""
        self._print(Text.from_ansi(line))

    def refresh(self, model: RunModel, now: float) -> None:
        """See `RunDisplay`."""
        self._live.update(panel(model, now, self._console.width, self._console.height), refresh=True)

    def flush(self) -> None:
        """See `RunDisplay`. All lines at once: each print draws the panel again."""
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            self._console.print(Group(*waiting))

    def _print(self, text: Text) -> None:
        self._waiting.append(text)


def _record(found: Mapping[str, Any]) -> Text:
    level = str(found.get("level", "info"))
    text = Text.assemble((f"{level:<8}", _COLOURS.get(level, "red")), (_printable(str(found.get("event", ""))), "bold"))
    for name, value in found.items():
        if name not in _HIDDEN:
            word = value if isinstance(value, str) else msgspec.json.encode(value).decode()
            text.append(f" {name}=", "bright_black").append(_printable(word))
    return text


def _printable(text: str) -> str:
    """Escapes control characters, which could rewrite the terminal; lines and tabs stay."""
    return "".join(each if each.isprintable() or each in "\n\t" else repr(each)[1:-1] for each in text)


def panel(model: RunModel, now: float, width: int, height: int) -> RenderableType:
    """Returns the panel, as high and as wide as fits: a small terminal shows fewer watches, then no controllers."""
    head = _head(model, now)
    head.truncate(max(width - 1, 1), overflow="ellipsis")
    if height < _LEAST_LINES:
        return head
    width = min(width - 1, _WIDEST)
    lines = height - 3  # the ruler, the head, and the line of the cursor
    parts: list[RenderableType] = [Text("─" * width, "bright_black"), head]
    if model.problem:
        problem = Text(_printable(model.problem), "red")
        problem.truncate(width, overflow="ellipsis")
        parts.append(problem)
        lines -= 1
    controllers = model.controllers()[: max(lines - 1, 0)]
    if controllers:
        parts.append(_controllers(controllers, width))
        lines -= len(controllers) + 1
    if model.watches and lines > 1:
        parts.append(_watches(model.watches, lines - 1, width))
    return Group(*parts)


def _head(model: RunModel, now: float) -> Text:
    colour = {"running": "green", "failed": "red", "ended": "red"}.get(model.phase, "yellow")
    text = Text.assemble((model.operator, "bold"), f" on {model.place}  ", (model.phase, colour))
    text.append(f"  up {_duration(now - model.began)}")
    if model.is_leading is not None:
        text.append("  leader" if model.is_leading else "  waits to lead")
    if model.reload:
        last = f", {model.reload_seconds:.2f} s" if model.reload_seconds is not None else ""
        text.append(f"  reloads {model.reloads}{last}")
    if model.dropped:
        text.append(f"  {model.dropped} logs too fast to show", "yellow")
    return text


def _controllers(rows: list[ControllerRow], width: int) -> Table:
    is_narrow = width < _NARROW
    counts = () if is_narrow else ("RECONCILES", "PER S")
    table = _table("CONTROLLER", "QUEUE", "BUSY", *counts, "ERRORS", "TOOK", name=min(max(width - 50, 10), 44))
    for row in rows:
        errors = Text(str(row.errors), "red" if row.errors else "")
        took = "-" if row.took is None else _seconds(row.took)
        done = () if is_narrow else (str(row.reconciles), f"{row.rate:.1f}")
        table.add_row(escape(row.name), str(row.waiting), f"{row.busy}/{row.workers}", *done, errors, took)
    return table


def _watches(watches: list[WatchState], most: int, width: int) -> Table:
    table = _table("WATCH", "OBJECTS", "STATE", "HEARD", name=min(max(width - 36, 10), 50))
    shown = watches if len(watches) <= most else watches[: most - 1]
    for each in shown:
        name = f"{each.kind} {each.scope}".strip()
        is_stale = each.staleness > _STALE_SECONDS or each.state != "watching"
        heard = "never" if each.staleness >= 1e9 else f"{_duration(each.staleness)} ago"
        table.add_row(escape(name), str(each.objects), Text(each.state, "yellow" if is_stale else ""), heard)
    if len(shown) < len(watches):
        table.add_row(f"and {len(watches) - len(shown)} more", "", "", "")
    return table


def _table(*columns: str, name: int) -> Table:
    """Returns an empty table, whose first column is `name` wide."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bright_black")
    for number, column in enumerate(columns):
        table.add_column(
            column,
            justify="left" if number == 0 or column in {"STATE", "HEARD"} else "right",
            no_wrap=True,
            overflow="ellipsis",
            min_width=name if number == 0 else None,
            max_width=name if number == 0 else None,
        )
    return table


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def _duration(seconds: float) -> str:
    """Returns the duration in its two largest units.

    >>> _duration(3725)
    '1h 2m'
    """
    whole = int(seconds)
    parts = list(_units(whole))
    return " ".join(parts[:2]) or "0s"


def _units(whole: int) -> Iterator[str]:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m"), (1, "s")):
        if whole >= size:
            yield f"{whole // size}{unit}"
            whole %= size
