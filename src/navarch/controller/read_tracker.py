"""What reconciles have looked at, so that they come again when that changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from navarch.api import Key, Kind, Labels
from navarch.api.selectors import Operator
from navarch.cache import Collection, Entry

__all__ = ["ReadTracker", "TrackedRead"]

_EQUALITY = (Operator.EQUALS, Operator.DOUBLE_EQUALS)
_EVERYTHING = Labels()


@dataclass(frozen=True, slots=True)
class TrackedRead:
    """Which objects of a kind were asked for: of one namespace or of all (None), by name, by labels, or by an index."""

    namespace: str | None
    name: str | None = None
    labels: Labels = _EVERYTHING
    index: tuple[str, str] | None = None

    def shows(self, entry: Entry) -> bool:
        """Whether its labels let it show an object that it finds otherwise."""
        return self.labels.matches(entry.labels)


class ReadTrait(NamedTuple):
    """What everything that a look shows has, and few other objects: a namespace, if given, and one thing more."""

    kind: Kind
    namespace: str | None
    what: tuple[str, ...] = ()


class ReadTracker:
    """By primary object, what its last reconcile looked at of `kinds`, which call nobody by themselves.

    Each look is found by one trait of what it shows, so that a change is compared with few of them.
    """

    def __init__(self, kinds: Iterable[Kind] = ()) -> None:
        self._kinds = frozenset(kinds)
        self._by_primary: dict[Key, dict[tuple[Kind, TrackedRead], ReadTrait]] = {}
        self._by_trait: dict[ReadTrait, set[tuple[TrackedRead, Key]]] = {}
        self._indexes: set[tuple[Kind, str]] = set()

    def follows(self, kind: Kind) -> bool:
        """Whether looks at that kind are to be noted."""
        return kind in self._kinds

    def note(self, primary: Key, kind: Kind, look: TrackedRead) -> None:
        """The reconcile of `primary` looks at that, of a kind that is followed."""
        noted = self._by_primary.setdefault(primary, {})
        if (kind, look) in noted:
            return
        trait = noted[kind, look] = min(_traits(kind, look), key=lambda each: len(self._by_trait.get(each, ())))
        self._by_trait.setdefault(trait, set()).add((look, primary))
        if look.index is not None:
            self._indexes.add((kind, look.index[0]))

    def forget(self, primary: Key) -> None:
        """The object is gone, or is reconciled anew and looks again."""
        for (_, look), trait in self._by_primary.pop(primary, {}).items():
            known = self._by_trait[trait]
            known.discard((look, primary))
            if not known:
                del self._by_trait[trait]

    def at(self, collection: Collection[Any], entry: Entry) -> Iterator[Key]:
        """Whose reconciles looked at the object, or would have if it had been there."""
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
    """One at least. Of several labels any will do: the one that the fewest looks are found by is taken."""
    if look.name is not None:
        return [ReadTrait(kind, look.namespace, ("name", look.name))]
    if look.index is not None:
        return [ReadTrait(kind, look.namespace, ("index", *look.index))]
    equal = [each for each in look.labels.requirements if each.operator in _EQUALITY]
    labels = [ReadTrait(kind, look.namespace, ("label", each.key, each.values[0])) for each in equal]
    return labels or [ReadTrait(kind, look.namespace)]
