"""What reconciles have looked at is found again by what changes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from navarch.api import Key, Labels, encode
from navarch.cache import Cached, Collection, Entry, entry_of
from navarch.controller.triggers import ReadTracker, TrackedRead
from navarch.k8s.core.v1 import ConfigMap

KIND = Cached(ConfigMap).kind
names = st.sampled_from(["a", "b", "c"])
labels = st.dictionaries(st.sampled_from(["app", "tier"]), names)
by_labels = st.one_of(
    labels.map(Labels.of), st.sampled_from([Labels("app!=a"), Labels("tier in (a,b)"), Labels("app,tier=b")])
)
looks = st.one_of(
    st.builds(TrackedRead, st.one_of(st.none(), names), labels=by_labels),
    st.builds(TrackedRead, names, names),
    st.builds(TrackedRead, st.one_of(st.none(), names), labels=by_labels, index=st.tuples(st.just("data"), names)),
)
primaries = st.builds(Key, st.just("p"), names)


@st.composite
def entries(draw: st.DrawFn) -> Entry:
    found = ConfigMap(name=draw(names), namespace=draw(names), labels=draw(labels), data={"v": draw(names)})
    found.metadata.resource_version, found.metadata.uid = "1", "u"
    return entry_of(encode(found))


def shows(look: TrackedRead, entry: Entry, value: str) -> bool:
    """By the words of the contract, one look at a time."""
    placed = look.namespace in {None, entry.key.namespace} and look.name in {None, entry.key.name}
    return placed and look.labels.matches(entry.labels) and look.index in {None, ("data", value)}


@given(noted=st.lists(st.tuples(primaries, looks)), gone=st.sets(primaries), entry=entries())
def test_changes_concern_those_who_looked_and_nobody_else(
    noted: list[tuple[Key, TrackedRead]], gone: set[Key], entry: Entry
) -> None:
    """However they looked, and as long as they have not looked anew."""
    collection = Collection(Cached(ConfigMap, indexes={"data": lambda found: [(found.data or {})["v"]]}))
    value = (collection.fresh(entry).data or {})["v"]
    kept = ReadTracker([KIND])
    for primary, look in noted:
        kept.note(primary, KIND, look)
    for primary in gone:
        kept.forget(primary)
    expected = {primary for primary, look in noted if primary not in gone and shows(look, entry, value)}
    assert set(kept.at(collection, entry)) == expected


def test_look_by_an_index_that_was_not_declared_concerns_nobody() -> None:
    """Who asks is told; whatever changes afterwards is followed as if nobody had asked."""
    kept, collection = ReadTracker([KIND]), Collection(Cached(ConfigMap))
    kept.note(Key("p", "a"), KIND, TrackedRead(None, index=("typo", "a")))
    assert not list(kept.at(collection, entry_of(encode(ConfigMap(name="x", namespace="a")))))


def test_looks_with_a_label_in_common_are_not_all_compared() -> None:
    """A change of one of many objects finds its own among thousands: no more than one by the label that all have."""
    kept, collection = ReadTracker([KIND]), Collection(Cached(ConfigMap))
    for number in range(1000):
        labels = Labels.of({"app": "cache", "cache": f"c{number}"})
        kept.note(Key("p", f"c{number}"), KIND, TrackedRead("a", labels=labels))
    found = ConfigMap(name="x", namespace="a", labels={"app": "cache", "cache": "c7"})
    compared = [
        look for trait in kept._traits_of(collection, entry_of(encode(found))) for look in kept._by_trait.get(trait, ())
    ]
    assert len(compared) <= 2
