"""How a node is switched off: by an annotation of it."""

from __future__ import annotations

from typing import Final

__all__ = ["POWER", "POWER_OFF"]

POWER: Final = "navarch.dev/power"
"""The annotation: a node that has it with the value `off` does not run."""
POWER_OFF: Final = "off"
