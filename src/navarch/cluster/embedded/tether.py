"""Becomes another program, which is asked to end when the process that started it dies.

Run as a script: `python tether.py PARENT PROGRAM [ARGUMENT...]`. The kernel sends the signal (PR_SET_PDEATHSIG), also if the
parent was killed with -9. It is asked for in a program of its own since Python between fork and exec (`preexec_fn`) can
deadlock in a process with threads.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

__all__ = ["main"]

_PR_SET_PDEATHSIG = 1


def main(parent: int, command: list[str]) -> None:
    """Returns only if the parent is already gone: no signal would ever come."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() == parent:
        os.execv(command[0], command)  # noqa: S606 - this is its purpose


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
