"""TLS contexts that verify certificates as Go programs do."""

from __future__ import annotations

import ssl
from pathlib import Path


def client_ssl_context(authorities: str | None = None, *, file: Path | None = None) -> ssl.SSLContext:
    """Returns a context that trusts these authorities, or without any those of this machine.

    Accepts certificates without the extensions that Go does not require either: Python requires them from 3.13 on, and
    many authorities leave them out.
    """
    context = ssl.create_default_context(cafile=file, cadata=authorities)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
