"""Why a webhook gave no answer."""

from __future__ import annotations

__all__ = ["CallError"]


class CallError(Exception):
    """The webhook could not be asked, or gave no answer that can be understood; its text says so as Kubernetes does."""
