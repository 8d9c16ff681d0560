"""`python bare_kernel.py CALL... -- COMMAND...` runs a command on a kernel that refuses these system calls."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys

from navarch.cluster.nodes.shim.program import kernel

NUMBERS = {
    "x86_64": {"seccomp": 317, "unshare": 272, "pidfd_getfd": 438},
    "aarch64": {"seccomp": 277, "unshare": 97, "pidfd_getfd": 438},
}[os.uname().machine]
_LOAD, _IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOWED, _REFUSED = 0x7FFF0000, 0x00050000 | errno.EPERM
_SET_FILTER = 1


def refuse(*calls: str) -> None:
    """From here on this process, and all that it begins, is refused these calls."""
    rules = [step for call in calls for step in ((_IF_EQUAL, 0, 1, NUMBERS[call]), (_RETURN, 0, 0, _REFUSED))]
    steps = [(_LOAD, 0, 0, 0), *rules, (_RETURN, 0, 0, _ALLOWED)]
    kernel.no_new_privileges()
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(steps), ctypes.addressof(code)))
    kernel.call(NUMBERS["seccomp"], _SET_FILTER, 0, program)


if __name__ == "__main__":
    end = sys.argv.index("--")
    refuse(*sys.argv[1:end])
    os.execv(sys.argv[end + 1], sys.argv[end + 1 :])
