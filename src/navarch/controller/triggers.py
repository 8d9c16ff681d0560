"""`Triggers`: from a change in the cache to the keys to reconcile."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from navarch.api import Key, Kind, Labels
from navarch.api.names import SelectorOperator
from navarch.cache import Change, Collection, Entry, Owner, only_status_differs
from navarch.cache.entry import is_related_alike
from navarch.cache.lookup import Lookup
from navarch.errors import DecodeError, InvalidValueError
from navarch.observe import traces
from navarch.observe.traces import SpanCause
from navarch.queue import LOW, WorkQueue

__all__ = [
    "ByMetadata",
    "Causes",
    "Mapper",
    "Predicate",
    "ReadTracker",
    "TrackedRead",
    "Triggers",
    "Version",
    "Writer",
    "any_change",
    "wanted_change",
]


_KEPT = 8
_EQUALITY = (SelectorOperator.EQUALS, SelectorOperator.DOUBLE_EQUALS)
_EVERYTHING = Labels()


class Writer(NamedTuple):
    """The controller, and the key it reconciled, that made a write."""

    controller: str
    key: Key


class Version(NamedTuple):
    """One resourceVersion of one object; the token of the reason "this changed" in a work queue."""

    kind: Kind
    key: Key
    version: int

    @property
    def object(self) -> tuple[Kind, Key]:
        """The object that has this version."""
        return self.kind, self.key

    @property
    def end(self) -> Version:
        """The token of the reason "this was deleted" after this version; the queue retracts it on its own."""
        return Version(self.kind, self.key, -self.version)


class Causes:
    """Collects, while tracing is enabled, the watch events that a key waits for."""

    def __init__(self) -> None:
        self._by_key: dict[Key, list[SpanCause]] = {}

    def note(self, key: Key, kind: Kind, entry: Entry) -> None:
        """Records that a version of an object triggers the key."""
        if not traces.enabled():
            return
        cause = traces.mark("watch event", kind=kind.resource, object=str(entry.key), version=entry.version)
        known = self._by_key.setdefault(key, [])
        if cause is not None and len(known) < _KEPT:
            known.append(cause)

    def take(self, key: Key) -> list[SpanCause]:
        """Returns the events so far and drops them."""
        return self._by_key.pop(key, [])


Predicate = Callable[[Change], bool]
"""Whether a change of the primary object is a reason to reconcile it."""

Mapper = Callable[[Any, Lookup], Iterable[Key]]
"""The primary objects that a change of another object concerns, found with the help of what is cached."""


@dataclass(frozen=True, slots=True)
class ByMetadata:
    """A mapping of `watches` that needs only the key, labels and owners of an object.

    The function gets the `Entry` instead of the object, which is not decoded.
    """

    function: Callable[[Entry, Lookup], Iterable[Key]]

    def __call__(self, entry: Entry, lookup: Lookup) -> Iterable[Key]:
        """The primary objects that the change concerns."""
        return self.function(entry, lookup)


_log = logging.getLogger("navarch.controller")
_AT_START = "the controller started"


def any_change(change: Change) -> bool:  # noqa: ARG001 - a predicate is given the change
    """Every version of an object triggers, its status included."""
    return True


def wanted_change(change: Change) -> bool:
    """A change of the spec, labels, annotations, finalizers or owners triggers, and so does a deletion.

    A change of the status alone does not. Of kinds without generations every version triggers.
    """
    return change.old is None or change.new is None or not only_status_differs(change.old, change.new)


@dataclass(frozen=True, slots=True)
class TrackedRead:
    """One read of a kind: of one namespace or of all (None), by name, by labels, or by an index."""

    namespace: str | None
    name: str | None = None
    labels: Labels = _EVERYTHING
    index: tuple[str, str] | None = None

    def shows(self, entry: Entry) -> bool:
        """Returns whether the labels match an entry that matches otherwise."""
        return self.labels.matches(entry.labels)


class ReadTrait(NamedTuple):
    """A property that all objects of a read share, and few others: a namespace, if given, and one more."""

    kind: Kind
    namespace: str | None
    what: tuple[str, ...] = ()


class ReadTracker:
    """By primary object, what its last reconcile read of `kinds`, whose changes trigger nothing else.

    Each read is indexed by one trait of the objects it returns, so that a change is compared with few reads.
    """

    def __init__(self, kinds: Iterable[Kind] = ()) -> None:
        self._kinds = frozenset(kinds)
        self._by_primary: dict[Key, dict[tuple[Kind, TrackedRead], ReadTrait]] = {}
        self._by_trait: dict[ReadTrait, set[tuple[TrackedRead, Key]]] = {}
        self._indexes: set[tuple[Kind, str]] = set()

    def follows(self, kind: Kind) -> bool:
        """Returns whether reads of that kind are tracked."""
        return kind in self._kinds

    def note(self, primary: Key, kind: Kind, look: TrackedRead) -> None:
        """Records that the reconcile of `primary` reads a tracked kind."""
        noted = self._by_primary.setdefault(primary, {})
        if (kind, look) in noted:
            return
        trait = noted[kind, look] = min(_traits(kind, look), key=lambda each: len(self._by_trait.get(each, ())))
        self._by_trait.setdefault(trait, set()).add((look, primary))
        if look.index is not None:
            self._indexes.add((kind, look.index[0]))

    def forget(self, primary: Key) -> None:
        """Drops the reads of an object that is deleted, or about to be reconciled again."""
        for (_, look), trait in self._by_primary.pop(primary, {}).items():
            known = self._by_trait[trait]
            known.discard((look, primary))
            if not known:
                del self._by_trait[trait]

    def at(self, collection: Collection[Any], entry: Entry) -> Iterator[Key]:
        """Yields the objects whose reconcile read the entry, or would have read it had it existed."""
        if not self._by_primary:
            return
        for trait in self._traits_of(collection, entry):
            for look, primary in self._by_trait.get(trait, ()):
                if look.shows(entry):
                    yield primary

    def _traits_of(self, collection: Collection[Any], entry: Entry) -> Iterator[ReadTrait]:
        indexes = [name for kind, name in self._indexes if kind == collection.kind]
        whats: list[tuple[str, ...]] = [(), ("name", entry.key.name)]
        whats += [("label", *label) for label in entry.labels.items()]
        whats += [("index", name, value) for name in indexes for value in collection.index_values(name, entry)]
        for namespace in (None, entry.key.namespace):
            yield from (ReadTrait(collection.kind, namespace, what) for what in whats)


def _traits(kind: Kind, look: TrackedRead) -> list[ReadTrait]:
    """Returns the possible traits of a read, at least one. Of several labels the least used one is taken."""
    if look.name is not None:
        return [ReadTrait(kind, look.namespace, ("name", look.name))]
    if look.index is not None:
        return [ReadTrait(kind, look.namespace, ("index", *look.index))]
    equal = [each for each in look.labels.requirements if each.operator in _EQUALITY]
    labels = [ReadTrait(kind, look.namespace, ("label", each.key, each.values[0])) for each in equal]
    return labels or [ReadTrait(kind, look.namespace)]


class Triggers:
    """Adds the keys of one controller to its queue as collections change.

    Without primary objects, changes of other kinds are ignored.
    """

    def __init__(self, controller: str, primaries: Collection[Any], queue: WorkQueue[Key], causes: Causes) -> None:
        self._controller = controller
        self._primary = primaries.kind
        self._primaries = primaries.store
        self._queue = queue
        self._causes = causes

    def on_primary(self, collection: Collection[Any], predicate: Predicate) -> Callable[[Change], None]:
        """Triggers the object itself. The worker drops what is known of a deleted one."""

        def changed(change: Change) -> None:
            key = change.newest.key
            if change.new is None:
                self._queue.forget(key)
                self._queue.add(key, reason=_reason(collection.kind, key, change))
            elif _is_marked_now(change) or predicate(change):
                self._add((key,), collection.kind, change)

        return changed

    def on_owned(self, collection: Collection[Any]) -> Callable[[Change], None]:
        """Triggers the controller of an object, before and after the change."""

        def changed(change: Change) -> None:
            if not self._primaries:
                return
            entries = (change.old, change.new)
            self._add({key for entry in entries if entry for key in self._owner(entry)}, collection.kind, change)

        return changed

    def on_mapped(self, collection: Collection[Any], mapper: Mapper, lookup: Lookup) -> Callable[[Change], None]:
        """Triggers the objects that the mapping names, before and after the change."""

        def changed(change: Change) -> None:
            if not self._primaries:
                return
            found: set[Key] = set()
            for entry in _looked_at(change, mapper):
                found.update(self._mapped(collection, entry, mapper, lookup))
            self._add(found, collection.kind, change)

        return changed

    def on_read(self, collection: Collection[Any], looks: ReadTracker) -> Callable[[Change], None]:
        """Triggers the objects whose reconcile read the changed object, or would read it now."""

        def changed(change: Change) -> None:
            entries = (change.old, change.new)
            self._add(
                {key for entry in entries if entry for key in looks.at(collection, entry)}, collection.kind, change
            )

        return changed

    def _add(self, keys: Iterable[Key], kind: Kind, change: Change) -> None:
        """Adds all keys but the one that wrote this version itself, having read the one before."""
        entry = change.newest
        for key in keys:
            if change.writer is not None and change.writer == Writer(self._controller, key):
                continue
            self._causes.note(key, kind, entry)
            if change.initial:
                self._queue.add(key, reason=_AT_START, priority=LOW)
            else:
                version = Version(kind, entry.key, entry.version)
                token = version.end if change.new is None else version
                self._queue.add(key, reason=_reason(kind, key, change), token=token)

    def _owner(self, entry: Entry) -> Iterator[Key]:
        owner = entry.controller
        if owner is not None and _is_of(owner, self._primary):
            yield Key(entry.key.namespace if self._primary.namespaced else "", owner.name)

    def _mapped(self, collection: Collection[Any], entry: Entry, mapper: Mapper, lookup: Lookup) -> Iterable[Key]:
        try:
            found = entry if isinstance(mapper, ByMetadata) else collection.view(entry)
            return _keys(mapper(found, lookup))
        except DecodeError as error:
            _log.warning("%s is not mapped to %s: %s", entry.key, self._primary.resource, error)
        except Exception:  # noqa: BLE001 - a user's function may raise anything
            _log.exception("mapping %s %s to %s failed", collection.kind.kind, entry.key, self._primary.resource)
        return ()


def _looked_at(change: Change, mapper: Mapper) -> Iterable[Entry]:
    """Returns the versions to map: both, or one where only metadata counts and is equal."""
    old, new = change.old, change.new
    if old is None or new is None:
        return (change.newest,)
    return (new,) if isinstance(mapper, ByMetadata) and is_related_alike(old, new) else (old, new)


def _keys(mapped: Iterable[Key]) -> tuple[Key, ...]:
    keys = tuple(mapped)
    for key in keys:
        if not isinstance(key, Key):
            raise InvalidValueError(f"expected Key(namespace, name) from a mapping of watches, got {key!r}")
    return keys


def _is_marked_now(change: Change) -> bool:
    """Returns whether the deletion begins with this change: no predicate may keep the cleanup from it."""
    return change.new is not None and change.new.deleting and not (change.old is not None and change.old.deleting)


def _is_of(owner: Owner, kind: Kind) -> bool:
    """Returns whether the owner is of that kind, in any version."""
    return owner.kind == kind.kind and owner.api_version.rpartition("/")[0] == kind.group


def _reason(kind: Kind, key: Key, change: Change) -> str:
    what = "was deleted" if change.new is None else "was created" if change.old is None else "changed"
    entry = change.newest
    return f"{kind.kind} {what}" if entry.key == key else f"{kind.kind} {entry.key} {what}"
