"""Which watch events led to a reconcile, for traces."""

from __future__ import annotations

from navarch.api import Key, Kind
from navarch.cache import Entry
from navarch.observe import traces
from navarch.observe.traces import Cause

__all__ = ["Causes"]

_KEPT = 8


class Causes:
    """Remembers, while traces are on, the events that a key waits for."""

    def __init__(self) -> None:
        self._by_key: dict[Key, list[Cause]] = {}

    def note(self, key: Key, kind: Kind, entry: Entry) -> None:
        """A version of an object is a reason to reconcile the key."""
        if not traces.enabled():
            return
        cause = traces.mark("watch event", kind=kind.resource, object=str(entry.key), version=entry.version)
        known = self._by_key.setdefault(key, [])
        if cause is not None and len(known) < _KEPT:
            known.append(cause)

    def take(self, key: Key) -> list[Cause]:
        """The events so far, each once."""
        return self._by_key.pop(key, [])
