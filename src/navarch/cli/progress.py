"""Progress of commands that take longer than a second: one line that changes on a terminal, else a line for each step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console


@contextmanager
def progress(console: Console) -> Iterator[Callable[[str], None]]:
    """Yields a function that shows a step; a step that is the same as the last one is shown once."""
    if console.is_terminal:
        with console.status("") as shown:
            yield lambda text: shown.update(text.replace("[", r"\["))
        return
    last = ""

    def say(text: str) -> None:
        nonlocal last
        if text != last:
            console.print(text, markup=False)
        last = text

    yield say
