"""`ReadTracker`: remembers what each reconcile read, so that a change of it triggers the reconcile again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from navarch.api import Key, Kind, Labels
from navarch.api.names import SelectorOperator
from navarch.cache import Collection, Entry

__all__ = ["ReadTracker", "TrackedRead"]

_EQUALITY = (SelectorOperator.EQUALS, SelectorOperator.DOUBLE_EQUALS)
_EVERYTHING = Labels()


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
