"""What a container says when it ends."""

from __future__ import annotations

from typing import Final

from navarch.cluster.nodes.pods.home import Home
from navarch.cluster.nodes.pods.launching import message_file
from navarch.cluster.nodes.runtime import Exit
from navarch.k8s.core.v1 import Container

__all__ = ["last_words"]

_LONGEST: Final = 4096
_LONGEST_LOG: Final = 2048
_MOST_LINES: Final = 80


def last_words(home: Home, container: Container, attempt: int, exit_: Exit) -> str | None:
    """What it wrote to its message file or, where that is its policy and it failed, the end of its log."""
    words = _tail_of(home, message_file(home, container.name, attempt), _LONGEST)
    if words or exit_.code == 0 or container.termination_message_policy != "FallbackToLogsOnError":
        return words or None
    tail = _tail_of(home, home.log(container.name, attempt), _LONGEST_LOG * 2)
    lines = [line.split(" ", 3)[-1] for line in tail.splitlines() if line.count(" ") >= 3]
    return "\n".join([*lines[-_MOST_LINES:], ""])[-_LONGEST_LOG:] or None


def _tail_of(home: Home, path: str, size: int) -> str:
    try:
        with home.folder.open() as folder:
            return folder.read(path, size, from_end=True).decode(errors="replace")
    except OSError:
        return ""
