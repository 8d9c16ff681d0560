"""Entries by key, with indexes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from navarch.api import Key, Labels
from navarch.api.names import SelectorOperator
from navarch.api.selectors import LabelRequirement
from navarch.cache.entry import Entry

Values = Callable[[Entry], Iterable[str]]

_NAMESPACE = "namespace"
_OWNER = "owner"
_CONTROLLER = "controller"
_LABEL = "label:"
_EQUALITY = (SelectorOperator.EQUALS, SelectorOperator.DOUBLE_EQUALS)


class _Index:
    """Entries by value. `values` must be a pure function of the entry."""

    def __init__(self, values: Values) -> None:
        self.values = values
        self._buckets: dict[str, dict[Key, Entry]] = {}

    def add(self, entry: Entry) -> None:
        for value in self.values(entry):
            self._buckets.setdefault(value, {})[entry.key] = entry

    def remove(self, entry: Entry) -> None:
        for value in self.values(entry):
            bucket = self._buckets.get(value, {})
            bucket.pop(entry.key, None)
            if not bucket:
                self._buckets.pop(value, None)

    def find(self, value: str) -> Mapping[Key, Entry]:
        return self._buckets.get(value, {})


class EntryStore:
    """The newest known version of each object. `put` and `remove` update the indexes."""

    def __init__(self) -> None:
        self._entries: dict[Key, Entry] = {}
        self._indexes: dict[str, _Index] = {}
        self.bytes = 0
        """How many bytes the objects take."""

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def get(self, key: Key) -> Entry | None:
        """Returns the entry of that key."""
        return self._entries.get(key)

    def put(self, entry: Entry) -> None:
        """Adds the entry, or replaces the one of its key."""
        old = self._entries.get(entry.key)
        self._entries[entry.key] = entry
        self.bytes += len(entry.data) - (len(old.data) if old else 0)
        for index in self._indexes.values():
            if old is not None:
                index.remove(old)
            index.add(entry)

    def remove(self, key: Key) -> Entry | None:
        """Removes the entry and returns it."""
        old = self._entries.pop(key, None)
        if old is not None:
            self.bytes -= len(old.data)
            for index in self._indexes.values():
                index.remove(old)
        return old

    def add_index(self, name: str, values: Values) -> None:
        """Adds an index over all present and future entries; keeps an existing index of that name."""
        if name not in self._indexes:
            index = self._indexes[name] = _Index(values)
            for entry in self._entries.values():
                index.add(entry)

    def indexed(self, name: str, value: str) -> list[Entry]:
        """Returns the entries with that value in an index. Raises `KeyError` for an unknown index."""
        return list(self._indexes[name].find(value).values())

    def values(self, name: str, entry: Entry) -> Iterable[str]:
        """Returns the values of an entry in an index, also of an entry outside of the store; none for an
        unknown index.
        """
        index = self._indexes.get(name)
        return index.values(entry) if index is not None else ()

    def in_namespace(self, namespace: str) -> list[Entry]:
        """Returns the entries of one namespace; the first call creates the index."""
        self.add_index(_NAMESPACE, _namespace)
        return self.indexed(_NAMESPACE, namespace)

    def owned_by(self, uid: str) -> list[Entry]:
        """Returns the entries that the object of that uid owns; the first call creates the index."""
        self.add_index(_OWNER, _owners)
        return self.indexed(_OWNER, uid)

    def controlled_by(self, uid: str) -> list[Entry]:
        """Returns the entries whose controller is the object of that uid; the first call creates the index."""
        self.add_index(_CONTROLLER, _controller)
        return self.indexed(_CONTROLLER, uid)

    def orphans(self, namespace: str) -> list[Entry]:
        """Returns the entries of one namespace without a controller; the first call creates the index."""
        return self.controlled_by(_nobody(namespace))

    def select(self, labels: Labels, namespace: str | None = None) -> list[Entry]:
        """Returns the entries whose labels match, of one namespace or of all.

        A label that is selected by value gets an index on first use, so that further calls do not scan every entry.
        """
        if not self._entries:
            return []
        if not labels.requirements:
            return list(self) if namespace is None else self.in_namespace(namespace)
        return [
            entry
            for entry in self._candidates(labels, namespace)
            if (namespace is None or entry.key.namespace == namespace) and labels.matches(entry.labels)
        ]

    def _candidates(self, labels: Labels, namespace: str | None) -> Iterable[Entry]:
        """Returns the smallest known set of entries that contains all matches."""
        found = [self._with_label(requirement) for requirement in labels.requirements if _is_equality(requirement)]
        if found:
            return min(found, key=len)
        return list(self) if namespace is None else self.in_namespace(namespace)

    def _with_label(self, requirement: LabelRequirement) -> list[Entry]:
        name = _LABEL + requirement.key
        self.add_index(name, _label(requirement.key))
        return self.indexed(name, requirement.values[0])


def _is_equality(requirement: LabelRequirement) -> bool:
    return requirement.operator in _EQUALITY


def _namespace(entry: Entry) -> Iterable[str]:
    return (entry.key.namespace,)


def _owners(entry: Entry) -> Iterable[str]:
    return [owner.uid for owner in entry.owners]


def _controller(entry: Entry) -> Iterable[str]:
    controller = entry.controller
    return (_nobody(entry.key.namespace) if controller is None else controller.uid,)


def _nobody(namespace: str) -> str:
    """Stands for the controller of orphans; no uid has this form."""
    return f"nobody/{namespace}"


def _label(key: str) -> Values:
    def values(entry: Entry) -> Iterable[str]:
        value = entry.labels.get(key)
        return () if value is None else (value,)

    return values
