"""Executes a program that gets a signal when the process that started it dies.

Run as a script: `python parent_death_signal.py PARENT SIGNAL PROGRAM [ARGUMENT...]`. The kernel sends the signal (PR_SET_PDEATHSIG) also
if the parent was killed with SIGKILL, and keeps the request across exec. A program of its own asks for it, since Python
between fork and exec (`preexec_fn`) can deadlock in a process with threads.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(parent: int, signal_name: str, command: list[str]) -> None:
    """Replaces this process by the command; returns only if the parent has died already, since no signal would come."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.Signals[signal_name])
    if os.getppid() == parent:
        os.execv(command[0], command)  # noqa: S606 - this is its purpose


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
