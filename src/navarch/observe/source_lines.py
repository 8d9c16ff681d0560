"""Lines of code, and which of them are the user's own."""

from __future__ import annotations

import os
import traceback
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["SourceLine", "culprit", "split_frames", "users_line"]

_STANDARD_LIBRARY: Final = str(Path(os.__file__).parent) + os.sep
_NAVARCH: Final = str(Path(__file__).parent.parent) + os.sep
_INSTALLED: Final = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


class SourceLine(NamedTuple):
    """A line of code that is being executed."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.function} ({self.file}:{self.line})"


def culprit(stack: Sequence[SourceLine]) -> SourceLine | None:
    """The innermost line of the user's own code, of a stack whose innermost line comes first; None if there is none.

    An operator may itself be an installed package; then it is whatever the runtime called first.
    """
    for place in stack:
        if not _is_runtime(place) and not _is_installed(place):
            return place
    for place, caller in reversed([*pairwise(stack)]):
        if _is_runtime(caller) and not _is_runtime(place):
            return place
    return None


def users_line(error: BaseException) -> str:
    """Where in the user's own code an error came from, as "file:line"; empty if it did not pass through any."""
    frames = traceback.walk_tb(error.__traceback__)
    stack = [SourceLine(frame.f_code.co_filename, line, frame.f_code.co_qualname) for frame, line in frames]
    place = culprit(stack[::-1])
    return f"{place.file}:{place.line}" if place is not None else ""


def split_frames(error: BaseException) -> tuple[list[traceback.FrameSummary], list[traceback.FrameSummary]]:
    """The frames of the runtime that led to the user's code, and all others, each outermost first."""
    frames = traceback.extract_tb(error.__traceback__)
    runtime = [_is_runtime(SourceLine(frame.filename, frame.lineno or 0, frame.name)) for frame in frames]
    first = runtime.index(False) if False in runtime else len(frames)
    return list(frames[:first]), list(frames[first:])


def _is_installed(place: SourceLine) -> bool:
    return any(folder in place.file for folder in _INSTALLED)


def _is_runtime(place: SourceLine) -> bool:
    """Python's own library, what it has frozen, and Navarch."""
    if place.file.startswith((_NAVARCH, "<")):
        return True
    return place.file.startswith(_STANDARD_LIBRARY) and not _is_installed(place)
