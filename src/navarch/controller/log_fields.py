"""The log fields of a reconcile, computed only when a line is written: most reconciles write none."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from navarch.api import Key

__all__ = ["ReconcileFields"]

_NAMES = ("controller", "object", "reconcile_id", "reason")


class ReconcileFields(Mapping[str, object]):
    """The controller, object, id and reasons of a reconcile; its id is generated on first use."""

    __slots__ = ("_controller", "_id", "_key", "_kind", "_reasons")

    def __init__(self, controller: str, kind: str, key: Key, reasons: tuple[str, ...], reconcile_id: str) -> None:
        self._controller = controller
        self._kind = kind
        self._key = key
        self._reasons = reasons
        self._id = reconcile_id

    @property
    def reconcile_id(self) -> str:
        """The unique id of the reconcile."""
        if not self._id:
            self._id = os.urandom(8).hex()
        return self._id

    def __getitem__(self, name: str) -> object:
        if name == "controller":
            return self._controller
        if name == "object":
            return f"{self._kind} {self._key}"
        if name == "reconcile_id":
            return self.reconcile_id
        if name == "reason":
            return ", ".join(self._reasons)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)
