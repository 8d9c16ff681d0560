"""The objects of one kind, from the watch and from own writes.

Promises: `entry` never returns a version older than a write that was reported by `wrote` or `deleted`. Subscribers
receive every change of the watch, in its order, once: also changes that are older than an own write. An object that was
deleted without a watch is reported as a deletion when the next list lacks it.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import islice
from typing import Generic, TypeVar

import msgspec

from navarch.api import Key, Labels, encode
from navarch.api.merge_patch import differing_paths
from navarch.cache.entry import UNKNOWN, Entry
from navarch.cache.selection import Cached, IndexFunction
from navarch.cache.store import EntryStore
from navarch.errors import DecodeError

T = TypeVar("T")

_log = logging.getLogger("navarch.cache")
_EVERYTHING = Labels()


class Change(msgspec.Struct, frozen=True, gc=False, eq=False):
    """A change of one object: it was added (`old` is None), updated, or deleted (`new` is None).

    `initial` marks the first list. `writer` is the controller that wrote this version, if the version directly follows
    the one that it had read.
    """

    old: Entry | None
    new: Entry | None
    initial: bool = False
    writer: Hashable = None

    @property
    def newest(self) -> Entry:
        """The current object, or the last version of a deleted one."""
        found = self.new or self.old
        assert found is not None
        return found


class _Unconfirmed:
    """Own writes of one object that the watch has not shown yet.

    `base` is the version that the watch showed last; `writes` has the written versions, their writers, and the versions
    that those had read.
    """

    __slots__ = ("base", "deleted_by", "deleted_uid", "writes")

    def __init__(self, base: Entry | None) -> None:
        self.base = base
        self.writes: dict[int, tuple[Hashable, int]] = {}
        self.deleted_uid = ""
        self.deleted_by: Hashable = None

    @property
    def base_version(self) -> int:
        return self.base.version if self.base else 0

    def writer_of(self, entry: Entry) -> Hashable:
        """Returns the controller that wrote this resourceVersion if its read was current; drops older entries."""
        writer, read = self.writes.get(entry.version, (None, -1))
        self.writes = {version: write for version, write in self.writes.items() if version > entry.version}
        return writer if read == self.base_version else None


class Collection(Generic[T]):
    """The cached objects of one kind. Informers feed it, controllers read it and subscribe to changes."""

    def __init__(self, cached: Cached[T]) -> None:
        self.cached = cached
        self.kind = cached.kind
        self.store = EntryStore()
        self._from_json: Callable[[bytes], T] = cached.readable.from_json
        self._views: OrderedDict[Key, tuple[int, T]] = OrderedDict()
        self._most_views = cached.views
        self._unconfirmed: dict[Key, _Unconfirmed] = {}
        self._subscribers: list[Callable[[Change], None]] = []
        # How far the watch has come in each namespace, and by lists of all of them (None).
        self._passed: dict[str | None, int] = {}
        for name, function in cached.indexes.items():
            self.add_index(name, function)

        self.namespaces: set[str] | None = None
        """The namespaces that are kept; None stands for all of them."""

    # Reading

    def keeps(self, namespace: str) -> bool:
        """Returns True if the objects of that namespace are kept here; for a new namespace only once it was listed."""
        return self.namespaces is None or (namespace in self.namespaces and namespace in self._passed)

    def entry(self, key: Key) -> Entry | None:
        """Returns the newest known version of that object."""
        return self.store.get(key)

    def view(self, entry: Entry) -> T:
        """Returns the typed object: shared, read-only, decoded once per version. Raises `DecodeError`."""
        known = self._views.get(entry.key)
        if known is not None and known[0] == entry.version:
            self._views.move_to_end(entry.key)
            return known[1]
        found = self.fresh(entry)
        self._views[entry.key] = (entry.version, found)
        if len(self._views) > self._most_views:
            self._views.popitem(last=False)
        return found

    def take_changed_views(self, most: int) -> Iterator[tuple[Key, Iterator[str]]]:
        """Drops typed objects that a reader has modified, and returns their keys and the paths that differ.

        Checks the `most` that were read last.
        """
        for key, (version, found) in list(islice(reversed(self._views.items()), most)):
            entry = self.store.get(key)
            if entry is None or entry.version != version:
                continue
            now, meant = encode(found), encode(self.fresh(entry))
            if now != meant:
                del self._views[key]
                yield key, differing_paths(msgspec.json.decode(meant), msgspec.json.decode(now))

    def allow_views(self, count: int) -> None:
        """Raises the number of decoded objects to keep to at least `count`."""
        self._most_views = max(self._most_views, count)

    def fresh(self, entry: Entry) -> T:
        """Returns the typed object as a private copy. Raises `DecodeError`."""
        return self._from_json(entry.data)

    def entries(self, *, namespace: str | None = None, labels: Labels = _EVERYTHING) -> list[Entry]:
        """Returns the objects whose labels match, of one namespace or of all."""
        return self.store.select(labels, namespace)

    def owned_by(self, uid: str) -> list[Entry]:
        """Returns the objects that the object of that uid owns."""
        return self.store.owned_by(uid)

    def controlled_by(self, uid: str) -> list[Entry]:
        """Returns the objects that the object of that uid controls."""
        return self.store.controlled_by(uid)

    def orphans(self, namespace: str) -> list[Entry]:
        """Returns the objects of that namespace without a controller."""
        return self.store.orphans(namespace)

    def add_index(self, name: str, function: IndexFunction) -> None:
        """Adds an index by the values that `function` returns for each object; an object for which it fails has no
        values.
        """
        self.store.add_index(f"user:{name}", lambda entry: self._index_values(name, function, entry))

    def indexed(self, name: str, value: str) -> list[Entry]:
        """Returns the objects with that value in the index of that name. Raises `KeyError` for an unknown index."""
        return self.store.indexed(f"user:{name}", value)

    def index_values(self, name: str, entry: Entry) -> Iterable[str]:
        """Returns the values of an object, of any version, in the index of that name; none for an unknown index."""
        return self.store.values(f"user:{name}", entry)

    def _index_values(self, name: str, function: IndexFunction, entry: Entry) -> Iterable[str]:
        try:
            return tuple(function(self.fresh(entry)))
        except DecodeError:
            return ()
        except Exception:  # noqa: BLE001 - a user's function may raise anything
            _log.exception("index %r of %s failed for %s; it is not indexed", name, self.kind.resource, entry.key)
            return ()

    # Telling

    def subscribe(self, subscriber: Callable[[Change], None]) -> None:
        """Reports every change from now on, after one initial change for each object that the watch has shown."""
        for entry in self._shown():
            self._tell_one(subscriber, Change(None, entry, initial=True))
        self._subscribers.append(subscriber)

    def _shown(self) -> list[Entry]:
        """Returns every object as the watch showed it last: own writes are reported when it shows them, which may never
        happen.
        """
        confirmed = [entry for entry in self.store if entry.key not in self._unconfirmed]
        return confirmed + [waiting.base for waiting in self._unconfirmed.values() if waiting.base is not None]

    def unsubscribe(self, subscriber: Callable[[Change], None]) -> None:
        """Ends the subscription."""
        self._subscribers.remove(subscriber)

    def _tell(self, change: Change) -> None:
        for subscriber in self._subscribers:
            self._tell_one(subscriber, change)

    def _tell_one(self, subscriber: Callable[[Change], None], change: Change) -> None:
        try:
            subscriber(change)
        except Exception:  # noqa: BLE001 - one must not keep the change from the others, nor others from itself
            _log.exception("a subscriber of %s failed for %s", self.kind.resource, change.newest.key)

    # What the watch shows

    def saw(self, entry: Entry, *, initial: bool = False, listed: bool = False) -> None:
        """Takes a version of an object from the watch, or with `listed` from a list."""
        if not listed:
            self._passed[entry.key.namespace] = entry.version
        unconfirmed = self._unconfirmed.get(entry.key)
        if unconfirmed is not None:
            self._saw_behind_own_write(entry, unconfirmed, listed=listed)
            return
        old = self.store.get(entry.key)
        if old is not None and old.version == entry.version:
            return
        entry.previous = UNKNOWN if listed else old.version if old else 0
        self.store.put(entry)
        self._tell_of_version(old, entry, initial=initial)

    def _tell_of_version(
        self, old: Entry | None, new: Entry, *, initial: bool = False, writer: Hashable = None
    ) -> None:
        """Reports a version. An object of the same name with another uid is another object: the old one was deleted
        unseen.
        """
        if old is not None and old.uid != new.uid:
            self._tell(Change(old, None))
            old = None
        self._tell(Change(old, new, initial, writer))

    def _saw_behind_own_write(self, entry: Entry, unconfirmed: _Unconfirmed, *, listed: bool) -> None:
        old, entry.previous = unconfirmed.base, UNKNOWN if listed else unconfirmed.base_version
        if old is not None and old.version == entry.version:
            return
        writer = unconfirmed.writer_of(entry)
        unconfirmed.base = entry
        held = self.store.get(entry.key)
        if entry.uid != unconfirmed.deleted_uid and (held is None or held.version <= entry.version):
            self.store.put(entry)
            self._unconfirmed.pop(entry.key)
            self._tell_of_unshown(held, old, entry)
        self._tell_of_version(old, entry, writer=None if listed else writer)

    def _tell_of_unshown(self, held: Entry | None, *shown: Entry | None) -> None:
        """Reports the deletion of an object that we wrote and others deleted before a watch showed it."""
        if held is not None and all(entry is None or entry.uid != held.uid for entry in shown):
            self._tell(Change(None, held))
            self._tell(Change(held, None))

    def saw_deleted(self, entry: Entry) -> None:
        """Takes a deletion from the watch; `entry` is the last version."""
        self._passed[entry.key.namespace] = entry.version
        unconfirmed = self._unconfirmed.get(entry.key)
        if unconfirmed is None:
            if (old := self._removed(entry.key)) is not None:
                self._tell(Change(old, None))
            return
        old, unconfirmed.base = unconfirmed.base or entry, None
        held = self.store.get(entry.key)
        if held is None or held.version <= entry.version or held.uid == entry.uid:
            self._removed(entry.key)
            self._unconfirmed.pop(entry.key)
        own = unconfirmed.deleted_uid == entry.uid
        self._tell(Change(old, None, writer=unconfirmed.deleted_by if own else None))

    def keys(self, namespace: str | None = None) -> set[Key]:
        """Returns the known keys of one namespace or of all, with unconfirmed own deletions."""
        held = self.store if namespace is None else self.store.in_namespace(namespace)
        unconfirmed = {key for key in self._unconfirmed if namespace in {None, key.namespace}}
        return {entry.key for entry in held} | unconfirmed

    def unshown(self, namespace: str | None = None) -> set[Key]:
        """Returns the objects of one namespace or of all that only own writes have shown."""
        waiting = self._unconfirmed.items()
        return {key for key, own in waiting if own.base is None and namespace in {None, key.namespace}}

    def missed(self, keys: Iterable[Key], version: int) -> None:
        """Deletes objects that a list of that version lacks, unless an own write is newer than the list."""
        for key in keys:
            self._missed(key, version)

    def listed(self, namespace: str | None, version: int) -> None:
        """Marks one namespace or all as listed up to that version."""
        if namespace is None:
            self._passed.clear()
            self.namespaces = None
        self._passed[namespace] = version

    def _missed(self, key: Key, version: int) -> None:
        entry, unconfirmed = self.store.get(key), self._unconfirmed.get(key)
        old = unconfirmed.base if unconfirmed else entry
        if unconfirmed is not None:
            unconfirmed.base = None
        gone = None
        if entry is None or unconfirmed is None or entry.version <= version:
            gone = self._removed(key)
            self._unconfirmed.pop(key, None)
        if old is not None:
            self._tell(Change(old, None))
        self._tell_of_unshown(gone, old)

    def forget(self, namespace: str | None) -> None:
        """Drops a namespace, or all (None), that is no longer kept.

        Reports no change: nothing happened to the objects.
        """
        for key in self.keys(namespace):
            self._removed(key)
            self._unconfirmed.pop(key, None)
        self._passed.pop(namespace, None)

    def _removed(self, key: Key) -> Entry | None:
        self._views.pop(key, None)
        return self.store.remove(key)

    # Own writes

    def version(self, key: Key) -> int:
        """Returns the version that is held now, 0 if none; call it before a write, for `wrote`."""
        entry = self.store.get(key)
        return entry.version if entry else 0

    def wrote(self, data: bytes, *, writer: Hashable, read: int) -> bool:
        """Takes the result of a write by `writer`, who had read version `read`; reads see it from now on.

        Returns True if the watch has shown it already, directly after `read`: then no other change lies between.
        """
        entry = self.cached.written(data)
        held, unconfirmed = self.store.get(entry.key), self._unconfirmed.get(entry.key)
        shown = unconfirmed.base if unconfirmed else held
        if shown is not None and entry.version <= shown.version:
            return entry.version == shown.version and shown.previous == read
        if held is None and (self._is_gone(entry, unconfirmed) or not self._belongs(entry)):
            return False
        if held is None or held.version < entry.version:
            unconfirmed = self._unconfirmed.setdefault(entry.key, unconfirmed or _Unconfirmed(held))
            unconfirmed.writes[entry.version] = (writer, read)
            self.store.put(entry)
        return False

    def deleted(self, key: Key, uid: str, *, writer: Hashable) -> None:
        """Takes the deletion by `writer` of the object of that uid: reads no longer find it."""
        held = self.store.get(key)
        if held is None or held.uid != uid:
            return
        unconfirmed = self._unconfirmed.setdefault(key, self._unconfirmed.get(key) or _Unconfirmed(held))
        unconfirmed.deleted_uid, unconfirmed.deleted_by = uid, writer
        self._removed(key)

    def _is_gone(self, entry: Entry, unconfirmed: _Unconfirmed | None) -> bool:
        """Returns True if an object that is not held was deleted since: by ourselves, or before the answer to its write
        came.
        """
        if unconfirmed is not None and unconfirmed.deleted_uid == entry.uid:
            return True
        return entry.version <= max(self._passed.get(entry.key.namespace, 0), self._passed.get(None, 0))

    def _belongs(self, entry: Entry) -> bool:
        """Returns True if a new object is selected, as far as that can be decided without the server."""
        labels, fields = self.cached.labels, self.cached.fields
        assert isinstance(labels, Labels)
        return not fields and labels.matches(entry.labels) and self.keeps(entry.key.namespace)
