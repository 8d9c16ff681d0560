"""Become another program that dies when the process that started it dies.

Run as a script: `python tether.py PARENT PROGRAM [ARGUMENT...]`.

Why: a test run that is killed with SIGKILL cannot stop its etcd and its API server, and they would run for ever.
The kernel can do it: PR_SET_PDEATHSIG asks for a signal when the parent is gone, and it survives exec. It is set
here, in a program of its own, because the alternative (`preexec_fn`) runs Python between fork and exec, which can
deadlock in a process with threads.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(parent: int, command: list[str]) -> None:
    """Ask for SIGKILL at the parent's death, then exec the command."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == parent:  # else the parent died before the request, and no signal will ever come
        os.execv(command[0], command)  # noqa: S606 (this is its purpose)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
