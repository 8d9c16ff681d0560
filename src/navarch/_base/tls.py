"""TLS contexts that verify certificates as Go programs do, and certificates without files."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def client_ssl_context(authorities: str | None = None, *, file: Path | None = None) -> ssl.SSLContext:
    """Returns a context that trusts these authorities, or without any those of this machine.

    Accepts certificates without the extensions that Go does not require either: Python requires them from 3.13 on, and
    many authorities leave them out.
    """
    context = ssl.create_default_context(cafile=file, cadata=authorities)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def load_key_pair(context: ssl.SSLContext, certificate: str | Path, key: str | Path) -> None:
    """Loads a certificate and its key from PEM files into a server's context; new connections get them.

    Loads them into a context of their own first: a key that does not match would leave `context` half changed. Raises
    OSError (ssl.SSLError is one).
    """
    for target in (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), context):
        target.load_cert_chain(certificate, key, password="")  # without one OpenSSL might ask


@contextmanager
def pem_file(data: bytes) -> Iterator[str]:
    """Yields a path from which OpenSSL can read `data`, until the block ends: it reads certificates only from files.

    The file is in memory and has no name in a folder, so a private key never reaches a disk.
    """
    if hasattr(os, "memfd_create") and Path("/proc/self/fd").exists():
        with open(os.memfd_create("navarch", os.MFD_CLOEXEC), "wb", buffering=0) as memory:  # noqa: PTH123 - no path
            memory.write(data)
            yield f"/proc/self/fd/{memory.fileno()}"
        return
    import tempfile  # noqa: PLC0415 - it brings several archive formats, which few processes need

    with tempfile.NamedTemporaryFile(buffering=0) as file:  # its owner's alone, and removed at the end of the block
        file.write(data)
        yield file.name
