"""`ControllerDeps`: the client, the cache and the records that all reconciles of one controller share."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from navarch._base.clock import Clock
from navarch.api import Dynamic, Key, Kind, Object
from navarch.cache import Collection, Entry
from navarch.cache.lookup import selector_of
from navarch.client import Client
from navarch.controller.apply_cache import ApplyCache
from navarch.controller.events import Recorder
from navarch.controller.triggers import ReadTracker, Version, Writer
from navarch.errors import DecodeError
from navarch.observe.logs import logger

_log = logger("navarch.controller")
_REPORTED_OBJECTS = 1000


OnWrite = Callable[[Writer, Version, Entry | None, Entry], None]
"""Called for each write that made a new version, with the writer, the version, the object before (as far as known) and after."""

NoteOf = Callable[[Writer], Callable[[str], None] | None]
"""Returns the function that records the paths a writer writes to without the cache; None if nothing records them."""


class DecodeErrors:
    """Logs each version of an object that does not fit its model once; remembers the last thousand objects."""

    def __init__(self) -> None:
        self._reported: OrderedDict[tuple[Kind, Key], int] = OrderedDict()

    def report(self, kind: Kind, key: Key, version: int, error: DecodeError) -> None:
        """Logs that a list leaves this version of the object out."""
        if self._reported.get((kind, key)) == version:
            return
        self._reported[kind, key] = version
        if len(self._reported) > _REPORTED_OBJECTS:
            self._reported.popitem(last=False)
        _log.warning(f"the list leaves out {kind.resource} {key}, which does not fit its model: {error}")


class UntriggeredChildren:
    """Warns once of each kind whose children the controller writes but does not watch: their changes trigger no reconcile."""

    def __init__(self) -> None:
        self._warned: set[Kind] = set()

    def check(
        self, controller: str, kind: Kind, child: Object | Dynamic, collections: Mapping[Kind, Collection[Any]]
    ) -> None:
        """Looks at a child that the controller is about to write."""
        if kind in self._warned:
            return
        why = _why_untriggered(kind, child, collections.get(kind))
        if why:
            self._warned.add(kind)
            _log.warning(why, controller=controller)


def _why_untriggered(kind: Kind, child: Object | Dynamic, collection: Collection[Any] | None) -> str:
    """Returns an empty text for a child whose changes trigger its owner."""
    if collection is None:
        return (
            f"the reconciler writes {kind.kind} as a child, but the controller does not declare that kind: a change or "
            f"deletion of a child triggers no reconcile, and the start does not check the right to write it; declare "
            f"owns=({kind.kind}, ...), or write owned=False"
        )
    labels = child.labels if isinstance(child, Object) else child.metadata.get("labels") or {}
    if selector_of(collection.cached.labels).matches(labels):
        return ""
    return (
        f"the reconciler writes {kind.kind} {child.name} as a child, but its labels do not match the declared selector "
        f"{collection.cached.labels}: its changes and its deletion trigger no reconcile; give it these labels"
    )


@dataclass(frozen=True, slots=True)
class ControllerDeps:
    """What all reconciles of one controller share.

    `client` writes as the controller's field manager, and only while the controller may write. `collections` holds the
    primary kind and what `owns`, `watches`, `reads` and `caches` declare; `owned` the kinds in `owns`. `retract` removes the
    change to a version from the reasons to reconcile a key. `apply_cache` remembers across reconciles which applies would
    change nothing: call `apply_cache.forget(key)` when an object is deleted. `reads` remembers what each reconcile read of
    the kinds that only `reads` declares.
    """

    controller: str
    client: Client
    collections: Mapping[Kind, Collection[Any]]
    owned: frozenset[Kind]
    recorder: Recorder
    clock: Clock
    retract: Callable[[Key, Hashable], None]
    on_write: OnWrite | None = None
    note_of: NoteOf | None = None
    reporter: str = ""
    """The reporting controller of its events, if it is not the recorder's own name."""
    apply_cache: ApplyCache = field(default_factory=ApplyCache)
    decode_errors: DecodeErrors = field(default_factory=DecodeErrors)
    untriggered_children: UntriggeredChildren = field(default_factory=UntriggeredChildren)
    reads: ReadTracker = field(default_factory=ReadTracker)
