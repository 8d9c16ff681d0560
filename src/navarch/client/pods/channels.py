"""The channels of Kubernetes' remote commands: the first byte of each message says which it belongs to."""

from __future__ import annotations

from typing import Final

__all__ = ["CLOSE", "ERROR", "PIECE", "RESIZE", "STDERR", "STDIN", "STDOUT", "V4", "V5", "pieces"]

STDIN: Final = 0
STDOUT: Final = 1
STDERR: Final = 2
ERROR: Final = 3
RESIZE: Final = 4
CLOSE: Final = 255
"""Followed by the number of a channel on which nothing more will come; since v5."""

V5: Final = "v5.channel.k8s.io"
V4: Final = "v4.channel.k8s.io"

PIECE: Final = 32 * 1024
"""Large enough to be fast, small enough that one message is never a burden."""


def pieces(channel: int, data: bytes) -> list[bytes]:
    """The messages that carry `data` on a channel."""
    prefix = bytes([channel])
    return [prefix + data[start : start + PIECE] for start in range(0, len(data), PIECE)]
