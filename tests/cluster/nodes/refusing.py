"""`python refusing.py COMMAND...` runs a command on a machine that gives no namespaces to anybody, as containers are."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys

from navarch.cluster.nodes.shim.program import kernel

_SECCOMP, _UNSHARE = {"x86_64": (317, 272), "aarch64": (277, 97)}[os.uname().machine]
_LOAD, _IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOWED, _REFUSED = 0x7FFF0000, 0x00050000 | errno.EPERM
_SET_FILTER = 1
STEPS = ((_LOAD, 0, 0, 0), (_IF_EQUAL, 0, 1, _UNSHARE), (_RETURN, 0, 0, _REFUSED), (_RETURN, 0, 0, _ALLOWED))


def refuse_namespaces() -> None:
    """From here on this process, and all that it begins, gets none."""
    kernel.no_new_privileges()
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in STEPS))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(STEPS), ctypes.addressof(code)))
    kernel.call(_SECCOMP, _SET_FILTER, 0, program)


if __name__ == "__main__":
    refuse_namespaces()
    os.execv(sys.argv[1], sys.argv[1:])
