"""Lines of code in stacks and tracebacks: tells the user's own code from the runtime's."""

from __future__ import annotations

import os
import traceback
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

_STANDARD_LIBRARY: Final = str(Path(os.__file__).parent) + os.sep
_NAVARCH: Final = str(Path(__file__).parent.parent) + os.sep
_INSTALLED: Final = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


class SourceLine(NamedTuple):
    """A line of code in a stack."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.function} ({self.file}:{self.line})"


def culprit(stack: Sequence[SourceLine]) -> SourceLine | None:
    """Returns the innermost line of the user's own code in a stack, innermost first; None if there is none.

    If the operator is itself an installed package, returns the line that the runtime called first.
    """
    for place in stack:
        if not _is_runtime(place) and not _is_installed(place):
            return place
    for place, caller in reversed([*pairwise(stack)]):
        if _is_runtime(caller) and not _is_runtime(place):
            return place
    return None


def users_line(error: BaseException) -> str:
    """Returns the line of the user's own code that raised the error, as "file:line"; empty if there is none."""
    frames = traceback.walk_tb(error.__traceback__)
    stack = [SourceLine(frame.f_code.co_filename, line, frame.f_code.co_qualname) for frame, line in frames]
    place = culprit(stack[::-1])
    return f"{place.file}:{place.line}" if place is not None else ""


def split_frames(error: BaseException) -> tuple[list[traceback.FrameSummary], list[traceback.FrameSummary]]:
    """Returns the frames of the runtime that called the user's code, and all other frames, each outermost first."""
    frames = traceback.extract_tb(error.__traceback__)
    runtime = [_is_runtime(SourceLine(frame.filename, frame.lineno or 0, frame.name)) for frame in frames]
    first = runtime.index(False) if False in runtime else len(frames)
    return list(frames[:first]), list(frames[first:])


def _is_installed(place: SourceLine) -> bool:
    return any(folder in place.file for folder in _INSTALLED)


def _is_runtime(place: SourceLine) -> bool:
    """Returns whether the line is in Python's standard library, frozen code or Navarch."""
    if place.file.startswith((_NAVARCH, "<")):
        return True
    return place.file.startswith(_STANDARD_LIBRARY) and not _is_installed(place)
