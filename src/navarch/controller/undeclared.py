"""Children of kinds that were not declared: nobody is called for them, which nobody would notice."""

from __future__ import annotations

from navarch.api import Kind
from navarch.observe.logs import logger

__all__ = ["Undeclared"]

_log = logger("navarch.controller")


class Undeclared:
    """Warns of each kind once."""

    def __init__(self) -> None:
        self._told: set[Kind] = set()

    def tell(self, controller: str, kind: Kind) -> None:
        """A child of a kind is written that the controller does not declare."""
        if kind in self._told:
            return
        self._told.add(kind)
        _log.warning(
            f"{kind.kind} is written as a child, but not declared: when one is changed or deleted, nobody is called, and the "
            f"right to write it is not checked at the start; declare owns=({kind.kind}, ...), or write owned=False",
            controller=controller,
        )
