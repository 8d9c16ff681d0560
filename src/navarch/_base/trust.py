"""Whom to trust, as Kubernetes' own programs do."""

from __future__ import annotations

import ssl
from pathlib import Path

__all__ = ["trusting"]


def trusting(authorities: str | None = None, *, file: Path | None = None) -> ssl.SSLContext:
    """For connections to servers for which one of these authorities answers, or without any one that this machine knows.

    Their certificates may lack what Go does not ask for either: Python does from 3.13 on, and many authorities leave it
    out.
    """
    context = ssl.create_default_context(cafile=file, cadata=authorities)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
