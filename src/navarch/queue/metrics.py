"""What a queue tells about itself."""

from __future__ import annotations

from typing import Protocol

__all__ = ["SILENT", "QueueMetrics"]


class QueueMetrics(Protocol):
    """Told of what happens as it happens.

    What holds at one moment (how many keys wait, how long the longest work has run) is asked of the queue instead.
    """

    def added(self) -> None:
        """A key that was not waiting waits from now on."""
        ...

    def taken(self, waited: float) -> None:
        """A key was handed out after so many seconds."""
        ...

    def finished(self, seconds: float) -> None:
        """The work on a key took so long."""
        ...

    def retried(self) -> None:
        """A key failed and will come again."""
        ...


class _Silent:
    def added(self) -> None: ...

    def taken(self, waited: float) -> None: ...

    def finished(self, seconds: float) -> None: ...

    def retried(self) -> None: ...


SILENT: QueueMetrics = _Silent()
