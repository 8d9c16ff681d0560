"""Calls to the kernel that find a file by its path."""

from __future__ import annotations

import ctypes
import os

from navarch.cluster.nodes.warden.program import kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, Literal

    Does = Literal["open", "look", "change"]

__all__ = ["CALLS", "MACHINE", "SECCOMP", "Call"]


class Call:
    """Which arguments are paths, and which one, of how many bytes, is filled. One that opens has flags and mode behind its
    path.
    """

    def __init__(self, does: Does, *paths: int, filled: int = 0, size: int = 0) -> None:
        self.does = does
        self.paths = paths
        self.filled = filled
        self.size = size

    def repeated(self, number: int, arguments: list[int], paths: list[str]) -> bytes:
        """What is filled if the call is made with these paths."""
        buffer = ctypes.create_string_buffer(max(self.size, 1))
        given: list[object] = list(arguments)
        for place, path in zip(self.paths, paths, strict=True):
            given[place] = ctypes.c_char_p(os.fsencode(path))
        if self.size:
            given[self.filled] = buffer
        kernel.call(number, *given)
        return buffer.raw[: self.size]


_OF_MACHINES: Final = {
    "x86_64": (
        0xC000003E,
        317,
        {
            2: Call("open", 0),
            4: Call("look", 0, filled=1, size=144),  # stat
            6: Call("look", 0, filled=1, size=144),  # lstat
            21: Call("look", 0),  # access
            76: Call("change", 0),  # truncate
            82: Call("change", 0, 1),  # rename
            83: Call("change", 0),  # mkdir
            84: Call("change", 0),  # rmdir
            87: Call("change", 0),  # unlink
            90: Call("change", 0),  # chmod
            257: Call("open", 1),
            258: Call("change", 1),  # mkdirat
            262: Call("look", 1, filled=2, size=144),  # newfstatat
            263: Call("change", 1),  # unlinkat
            264: Call("change", 1, 3),  # renameat
            268: Call("change", 1),  # fchmodat
            269: Call("look", 1),  # faccessat
            316: Call("change", 1, 3),  # renameat2
            332: Call("look", 1, filled=4, size=256),  # statx
            439: Call("look", 1),  # faccessat2
        },
    ),
    "aarch64": (
        0xC00000B7,
        277,
        {
            34: Call("change", 1),  # mkdirat
            35: Call("change", 1),  # unlinkat
            38: Call("change", 1, 3),  # renameat
            45: Call("change", 0),  # truncate
            48: Call("look", 1),  # faccessat
            53: Call("change", 1),  # fchmodat
            56: Call("open", 1),
            79: Call("look", 1, filled=2, size=128),  # newfstatat
            276: Call("change", 1, 3),  # renameat2
            291: Call("look", 1, filled=4, size=256),  # statx
            439: Call("look", 1),  # faccessat2
        },
    ),
}
MACHINE, SECCOMP, CALLS = _OF_MACHINES.get(os.uname().machine, (0, 0, {}))
"""The architecture as filters name it, the number of `seccomp`, and the calls by number."""
