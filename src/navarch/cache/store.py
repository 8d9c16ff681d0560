"""Entries by key, and by whatever else they are looked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from navarch.api import Key, Labels
from navarch.api.selectors import LabelRequirement, Operator
from navarch.cache.entry import Entry

__all__ = ["Store"]

Values = Callable[[Entry], Iterable[str]]

_NAMESPACE = "namespace"
_OWNER = "owner"
_CONTROLLER = "controller"
_LABEL = "label:"
_EQUALITY = (Operator.EQUALS, Operator.DOUBLE_EQUALS)


class _Index:
    """Which entries have which value. `values` must give the same for the same entry, always."""

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


class Store:
    """The newest known version of each object. Indexes are kept up to date with every `put` and `remove`."""

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
        """The entry of that key."""
        return self._entries.get(key)

    def put(self, entry: Entry) -> None:
        """Takes the entry in the place of the one of its key."""
        old = self._entries.get(entry.key)
        self._entries[entry.key] = entry
        self.bytes += len(entry.data) - (len(old.data) if old else 0)
        for index in self._indexes.values():
            if old is not None:
                index.remove(old)
            index.add(entry)

    def remove(self, key: Key) -> Entry | None:
        """Takes the entry out and returns it."""
        old = self._entries.pop(key, None)
        if old is not None:
            self.bytes -= len(old.data)
            for index in self._indexes.values():
                index.remove(old)
        return old

    def add_index(self, name: str, values: Values) -> None:
        """Begins an index over everything there is and comes; a name that is known stays as it is."""
        if name not in self._indexes:
            index = self._indexes[name] = _Index(values)
            for entry in self._entries.values():
                index.add(entry)

    def indexed(self, name: str, value: str) -> list[Entry]:
        """The entries that have that value in an index that was added; raises `KeyError` for one that was not."""
        return list(self._indexes[name].find(value).values())

    def values(self, name: str, entry: Entry) -> Iterable[str]:
        """What an index has of an entry, whether that is in the store or not; nothing, if the index was not added."""
        index = self._indexes.get(name)
        return index.values(entry) if index is not None else ()

    def in_namespace(self, namespace: str) -> list[Entry]:
        """The entries of one namespace; indexed from the first question on."""
        self.add_index(_NAMESPACE, _namespace)
        return self.indexed(_NAMESPACE, namespace)

    def owned_by(self, uid: str) -> list[Entry]:
        """The entries that the object of that uid owns; indexed from the first question on."""
        self.add_index(_OWNER, _owners)
        return self.indexed(_OWNER, uid)

    def controlled_by(self, uid: str) -> list[Entry]:
        """The entries whose controller is the object of that uid; indexed from the first question on."""
        self.add_index(_CONTROLLER, _controller)
        return self.indexed(_CONTROLLER, uid)

    def orphans(self, namespace: str) -> list[Entry]:
        """The entries of one namespace that have no controller; indexed from the first question on."""
        return self.controlled_by(_nobody(namespace))

    def select(self, labels: Labels, namespace: str | None = None) -> list[Entry]:
        """The entries whose labels match, of one namespace or of all.

        A label that is asked for by its value is indexed from the first question on, so that asking again does not go
        through everything.
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
        """The fewest entries among which all that are asked for are."""
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
    """Stands for the controller of orphans; no uid looks like that."""
    return f"nobody/{namespace}"


def _label(key: str) -> Values:
    def values(entry: Entry) -> Iterable[str]:
        value = entry.labels.get(key)
        return () if value is None else (value,)

    return values
