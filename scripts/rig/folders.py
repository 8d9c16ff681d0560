"""Where the rig keeps things, all of it outside the checkout."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

SOURCE = Path(__file__).resolve().parent
"""This package: the Go modules it builds lie in it."""


def cache(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder for what is slow to make and safe to delete (`NAVARCH_CACHE` moves it)."""
    if chosen := environ.get("NAVARCH_CACHE"):
        return Path(chosen)
    return _base(environ, "XDG_CACHE_HOME", ".cache") / "navarch"


def state(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder that holds one folder per named cluster."""
    return _base(environ, "XDG_STATE_HOME", ".local/state") / "navarch" / "rig"


def _base(environ: Mapping[str, str], variable: str, fallback: str) -> Path:
    """Follow the XDG rule: an unset, empty or relative value counts as unset."""
    chosen = Path(environ.get(variable, ""))
    return chosen if chosen.is_absolute() else Path(environ.get("HOME") or Path.home()) / fallback
