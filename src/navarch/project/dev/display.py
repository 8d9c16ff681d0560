"""`RunDisplay`: how a run is shown to people. `navarch.cli` has a live view, and log lines."""

from __future__ import annotations

from typing import Literal, Protocol

from navarch.project.dev.messages import EventReported, LoadFailed
from navarch.project.dev.run_model import RunModel

Level = Literal["info", "warning", "error"]


class RunDisplay(Protocol):
    """Shows a run to people: on a terminal, or as log lines."""

    @property
    def is_live(self) -> bool:
        """Whether it shows a view: then logs and output of the operator come through it."""
        ...

    def note(self, level: Level, text: str) -> None:
        """Shows a sentence of the supervisor."""
        ...

    def failure(self, failure: LoadFailed, state: str) -> None:
        """Shows why code could not be imported, and what runs meanwhile."""
        ...

    def record(self, line: str) -> None:
        """Shows a log record of the operator, as JSON."""
        ...

    def event(self, event: EventReported) -> None:
        """Shows a Kubernetes Event that the operator wrote."""
        ...

    def output(self, line: str) -> None:
        """Shows a line that the operator printed."""
        ...

    def flush(self) -> None:
        """Prints what the other methods were given since the last call."""
        ...

    def refresh(self, model: RunModel, now: float) -> None:
        """Shows the present state."""
        ...
