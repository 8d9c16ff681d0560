"""Objects that do not fit their model: left out where many are read, but not without a word."""

from __future__ import annotations

import logging
from collections import OrderedDict

from navarch.api import Key, Kind
from navarch.errors import DecodeError

__all__ = ["Unreadable"]

_log = logging.getLogger("navarch.controller")
_REMEMBERED = 1000


class Unreadable:
    """Logs each version of an object that does not decode once; of the last thousand objects."""

    def __init__(self) -> None:
        self._told: OrderedDict[tuple[Kind, Key], int] = OrderedDict()

    def tell(self, kind: Kind, key: Key, version: int, error: DecodeError) -> None:
        """Logs that this version of the object was left out."""
        if self._told.get((kind, key)) == version:
            return
        self._told[kind, key] = version
        if len(self._told) > _REMEMBERED:
            self._told.popitem(last=False)
        _log.warning("%s %s is left out of what is listed: %s", kind.resource, key, error)
