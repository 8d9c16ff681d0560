"""The live view of `navarch run` fits its terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from navarch.cli.run_display import LiveDisplay, panel
from navarch.project.dev.messages import ControllerState, EventReported, LoadFailed, OperatorState, WatchState
from navarch.project.dev.run_model import RunModel

KINDS = ("memcacheds.cache.example.com", "deployments.apps", "pods", "configmaps", "secrets")


def model() -> RunModel:
    """Returns the state of a run after two reports."""
    shown = RunModel(operator="cache", cluster="dev", reload=True, began=0.0, phase="running")
    shown.reloads, shown.reload_seconds = 3, 0.42
    for at in (60.0, 61.0):
        controllers = [ControllerState(f"cache/{name}", 3, 2, 16, int(at), 1, at) for name in ("memcached", "[b]x")]
        watches = [WatchState(kind, "", "watching", 2.0, 7) for kind in KINDS]
        shown.take(OperatorState(at, "127.0.0.1:1", True, controllers, watches))
    return shown


def drawn(shown: RunModel, width: int, height: int) -> list[str]:
    """Returns the lines of the panel, without colours."""
    console = Console(file=io.StringIO(), width=width, height=height, color_system=None)
    with console.capture() as capture:
        console.print(panel(shown, 125.0, width, height))
    return [line.rstrip() for line in capture.get().splitlines()]


def test_panel_shows_everything_at_80_columns() -> None:
    """Names are not cut, and what looks like markup is text."""
    lines = drawn(model(), 80, 24)
    assert lines[1] == "cache on cluster dev  running  up 2m 5s  leader  reloads 3, 0.42 s"
    assert lines[2].split() == ["CONTROLLER", "QUEUE", "BUSY", "RECONCILES", "PER", "S", "ERRORS", "TOOK"]
    assert lines[3].split() == ["memcached", "3", "2/16", "61", "1.0", "1", "1.0", "s"]
    assert lines[4].startswith("[b]x")
    assert lines[6].split() == ["memcacheds.cache.example.com", "7", "watching", "2s", "ago"]


@pytest.mark.parametrize(("width", "height"), [(80, 24), (80, 10), (60, 8), (40, 6), (20, 3), (1, 1)])
def test_panel_fits_any_terminal(width: int, height: int) -> None:
    """No line wraps, and one line stays free for the cursor."""
    shown = model()
    shown.problem = "src/cache/controllers/memcached.py:12: SyntaxError: invalid syntax " * 3
    lines = drawn(shown, width, height)
    assert len(lines) <= max(height - 1, 1)
    assert max(map(len, lines)) <= width


def test_watches_that_do_not_fit_are_counted() -> None:
    """So that nobody takes the list for complete."""
    assert drawn(model(), 80, 11)[-1] == "and 2 more"


def test_traceback_ends_with_the_code_of_the_project() -> None:
    """The frames of the runtime are in the log of production; here they would fill the terminal."""
    console = Console(file=io.StringIO(), width=80, color_system=None)
    display = LiveDisplay(console)
    display.record('{"level": "error", "event": "failed", "exception": "yours, line 3\\ncalled by:\\nthe runtime"}')
    display.flush()
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue() == "error   failed\nyours, line 3\n"


def test_text_of_others_cannot_break_the_view() -> None:
    """Markup and escape sequences of logs, events and output are shown or removed, not obeyed."""
    console = Console(file=io.StringIO(), width=80, height=24, force_terminal=True)
    with LiveDisplay(console) as display:
        display.record('{"level": "info", "event": "[red]hot[/red]", "why": "a\\u001b[2Jb", "n": 3, "exception": "T"}')
        display.record("no JSON")
        display.event(EventReported("Warning", "Failed", "Memcached default/a", "[bold]x"))
        display.output("\x1b[2J\x1b[Hcleared")
        display.failure(LoadFailed("a.py:1", "SyntaxError: x", "def ("), "nothing runs")
        display.note("info", "reloaded")
    assert isinstance(console.file, io.StringIO)
    told = console.file.getvalue()
    assert "\x1b[2J" not in told
    for text in ("[red]hot[/red]", "no JSON", "[bold]x", "cleared", "a.py:1", "nothing runs", "reloaded"):
        assert text in told
