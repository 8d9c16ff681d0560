"""Which promises the kernel and the account of this machine let a process node keep: marks for tests of the others.

`docs/embedded-cluster.md#limits` lists what is missing where. Everything else is tested on every machine.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Final

import pytest

_MAKES_NAMESPACES: Final = """
import ctypes, os, sys
user, mounts, names, processes = 0x10000000, 0x20000, 0x4000000, 0x20000000
own = os.geteuid()
libc = ctypes.CDLL(None, use_errno=True)
if libc.unshare(mounts | names | processes | (user if own else 0)):
    sys.exit(os.strerror(ctypes.get_errno()))
if own:
    open("/proc/self/setgroups", "w").write("deny")
    open("/proc/self/uid_map", "w").write(f"{own} {own} 1")
"""


def _refusal() -> str:
    """The kernel's reason to refuse namespaces to a process of this account, or nothing."""
    command = [sys.executable, "-I", "-S", "-c", _MAKES_NAMESPACES]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    return said.stderr.strip().rpartition("\n")[2] if said.returncode else ""


REFUSAL: Final = _refusal()

needs_namespaces = pytest.mark.skipif(
    bool(REFUSAL), reason=f"containers have no namespaces of their own on this machine: {REFUSAL}"
)
