"""A collection is never older than own writes, tells every change of others, and ends as what the server has."""

from __future__ import annotations

from typing import Any

import pytest

from gadgets import Gadget, GadgetSpec
from navarch.api import Key, Kind, Labels, encode
from navarch.cache import Cached, Change, Collection, Entry
from navarch.client import MetadataOnly, PartialObjectMetadata
from navarch.errors import DecodeError

KEY = Key("default", "a")
US, OTHERS = "us", "others"


def data(version: int, *, name: str = "a", uid: str = "u1", size: Any = 1, **metadata: Any) -> bytes:
    known = {"name": name, "namespace": "default", "uid": uid, "resourceVersion": str(version), "generation": 1}
    body = {"apiVersion": "test.example.com/v1", "kind": "Gadget", "metadata": {**known, **metadata}}
    return encode({**body, "spec": {"size": size}})


class Told:
    """A collection, what its subscriber heard, and the watch as one method."""

    def __init__(self, cached: Cached[Any] | None = None) -> None:
        self.collection: Collection[Any] = Collection(cached or Cached(Gadget))
        self.changes: list[Change] = []
        self.collection.subscribe(self.changes.append)

    def saw(self, version: int, **fields: Any) -> None:
        self.collection.saw(self.entry(version, **fields))

    def saw_deleted(self, version: int, **fields: Any) -> None:
        self.collection.saw_deleted(self.entry(version, **fields))

    def wrote(self, version: int, *, read: int, by: str = US, **fields: Any) -> bool:
        return self.collection.wrote(data(version, **fields), writer=by, read=read)

    def entry(self, version: int, **fields: Any) -> Entry:
        return self.collection.cached.entry(data(version, **fields))

    @property
    def held(self) -> int:
        return self.collection.version(KEY)

    @property
    def heard(self) -> list[tuple[int, int, Any]]:
        """Old version, new version, writer; and forgets them."""
        heard = [
            (each.old.version if each.old else 0, each.new.version if each.new else 0, each.writer)
            for each in self.changes
        ]
        self.changes.clear()
        return heard


@pytest.fixture
def told() -> Told:
    return Told()


def test_changes_are_told_in_order_with_what_was_before(told: Told) -> None:
    """It came, it changed, it went."""
    told.saw(1)
    told.saw(2)
    told.saw(2)
    told.saw_deleted(3)
    assert told.heard == [(0, 1, None), (1, 2, None), (2, 0, None)]
    assert told.held == 0


def test_own_write_is_read_at_once_and_told_when_the_watch_shows_it(told: Told) -> None:
    """The echo names the writer, since nobody else wrote in between."""
    told.saw(1)
    assert told.wrote(2, read=1) is False
    assert (told.held, told.heard) == (2, [(0, 1, None)])
    told.saw(2)
    assert (told.held, told.heard) == (2, [(1, 2, US)])


def test_change_of_others_between_read_and_write_is_told_and_so_is_the_write(told: Told) -> None:
    """Neither is taken for an echo; the store stays at the own write meanwhile."""
    told.saw(1)
    told.wrote(3, read=1)
    told.saw(2)
    assert told.held == 3
    told.saw(3)
    assert told.heard == [(0, 1, None), (1, 2, None), (2, 3, None)]


def test_two_own_writes_in_a_row_are_both_known(told: Told) -> None:
    """Each directly follows what its writer had read."""
    told.saw(1)
    told.wrote(2, read=1)
    told.wrote(3, read=2)
    told.saw(2)
    assert told.held == 3
    told.saw(3)
    assert [writer for *_, writer in told.heard] == [None, US, US]


def test_writer_of_a_version_is_told_to_everybody_by_name(told: Told) -> None:
    """Two writers had read the same: the second's write is news to both."""
    told.saw(1)
    told.wrote(2, read=1, by=US)
    told.wrote(3, read=1, by=OTHERS)
    told.saw(2)
    told.saw(3)
    assert [writer for *_, writer in told.heard] == [None, US, None]


def test_echo_before_the_answer_can_be_taken_back(told: Told) -> None:
    """Only if it directly follows what was read."""
    told.saw(1)
    told.saw(2)
    assert told.wrote(2, read=1) is True
    told.saw(3)
    told.saw(4)
    assert told.wrote(4, read=2) is False


def test_write_that_changed_nothing_is_not_taken_for_one(told: Told) -> None:
    """The server answers it with the version that there is."""
    told.saw(1)
    told.saw(2)
    assert told.wrote(2, read=2) is False
    assert told.heard == [(0, 1, None), (1, 2, None)]


def test_version_that_was_not_surely_read_is_never_claimed(told: Told) -> None:
    """Whoever does not know what his write was made on top of gives a version that no object has."""
    told.saw(1)
    told.wrote(2, read=-1)
    assert told.held == 2
    told.saw(2)
    assert told.heard == [(0, 1, None), (1, 2, None)]
    assert told.wrote(2, read=-1) is False


def test_own_deletion_is_read_at_once(told: Told) -> None:
    """Older versions that the watch still shows do not bring it back; its end is told as ours."""
    told.saw(1)
    told.collection.deleted(KEY, "u1", writer=US)
    assert told.held == 0
    told.saw(2)
    assert told.held == 0
    told.saw_deleted(3)
    assert told.heard == [(0, 1, None), (1, 2, None), (2, 0, US)]


def test_deletion_of_another_object_of_that_name_is_not_believed(told: Told) -> None:
    """The uid decides."""
    told.saw(1)
    told.collection.deleted(KEY, "u0", writer=US)
    assert told.held == 1


def test_object_made_anew_after_an_own_deletion_is_there(told: Told) -> None:
    """By ourselves, or by others."""
    told.saw(1)
    told.collection.deleted(KEY, "u1", writer=US)
    told.wrote(3, read=0, uid="u2")
    assert told.held == 3
    told.saw_deleted(2)
    told.saw(3, uid="u2")
    assert (told.held, told.heard) == (3, [(0, 1, None), (1, 0, US), (0, 3, US)])


def test_answer_that_comes_after_the_object_is_gone_does_not_bring_it_back(told: Told) -> None:
    """The watch was faster twice: with the echo, and with the deletion by somebody else."""
    told.saw(1)
    told.saw(2)
    told.saw_deleted(3)
    told.wrote(2, read=1)
    assert told.held == 0
    told.wrote(5, read=0, uid="u2")
    assert told.held == 5


def test_late_answer_to_a_write_before_an_own_deletion_does_not_bring_it_back(told: Told) -> None:
    """Two tasks: one has written, the other deletes, and its answer is the first to come."""
    told.saw(1)
    told.collection.deleted(KEY, "u1", writer=US)
    told.wrote(2, read=1)
    assert told.held == 0
    told.saw(2)
    told.saw_deleted(3)
    assert (told.held, told.collection.keys()) == (0, set())


def test_answer_that_is_older_than_a_list_without_the_object_does_not_bring_it_back(told: Told) -> None:
    """It was written, deleted by others, and then everything was listed."""
    told.collection.missed(told.collection.keys(), 7)
    told.collection.listed(None, 7)
    told.wrote(5, read=0)
    assert told.held == 0
    told.wrote(8, read=0)
    assert told.held == 8


def test_listed_versions_say_nothing_about_how_far_the_watch_is(told: Told) -> None:
    """A list has its own order: an own write that it has not come to yet stays readable."""
    told.collection.saw(told.entry(9, name="b"), initial=True, listed=True)
    told.wrote(5, read=0)
    assert told.held == 5


def test_list_is_never_taken_for_an_echo(told: Told) -> None:
    """It shows only the newest version, so others may have written before."""
    told.saw(1)
    told.wrote(2, read=1)
    told.collection.saw(told.entry(2), listed=True)
    assert told.heard == [(0, 1, None), (1, 2, None)]


def test_what_a_list_does_not_have_is_gone_unless_our_write_is_newer(told: Told) -> None:
    """An object that we made after the list stays."""
    told.saw(1)
    told.wrote(5, read=0, name="b", uid="u2")
    told.collection.missed(told.collection.keys(), 3)
    assert (told.held, told.collection.version(Key("default", "b"))) == (0, 5)
    assert told.heard == [(0, 1, None), (1, 0, None)]


def test_object_of_the_same_name_that_a_list_shows_is_another_one(told: Told) -> None:
    """The deletion of the first was not seen; it is told."""
    told.saw(1)
    told.collection.saw(told.entry(5, uid="u2"), listed=True)
    assert told.heard == [(0, 1, None), (1, 0, None), (0, 5, None)]


def test_write_of_what_is_not_kept_is_not_kept() -> None:
    """Other labels, other namespaces, and what only the server can select."""
    labelled, far = Told(Cached(Gadget, labels="app=web")), Told()
    selected = Told(Cached(Gadget, fields="spec.colour=red"))
    far.collection.namespaces = {"elsewhere"}
    for told in (labelled, far, selected):
        told.wrote(2, read=0)
        assert told.held == 0
    labelled.wrote(3, read=0, labels={"app": "web"})
    assert labelled.held == 3


def test_write_to_a_collection_of_metadata_reads_as_metadata() -> None:
    """The server answers with the whole object."""
    told = Told(Cached(Gadget, metadata_only=True))
    told.wrote(2, read=0)
    entry = told.collection.entry(KEY)
    assert entry is not None
    found = told.collection.view(entry)
    assert isinstance(found, PartialObjectMetadata)
    assert b"spec" not in entry.data
    assert told.collection.cached.readable == MetadataOnly(Gadget)


def test_views_are_shared_per_version_and_fresh_ones_are_not(told: Told) -> None:
    """Decoded once."""
    told.saw(1)
    entry = told.entry(1)
    assert told.collection.view(entry) is told.collection.view(entry)
    assert told.collection.fresh(entry) is not told.collection.view(entry)
    told.saw(2, size=2)
    assert told.collection.view(told.entry(2, size=2)).spec == GadgetSpec(size=2)


def test_as_many_views_are_kept_as_is_asked_for() -> None:
    """The most that anybody asks for; the one that was not read for longest goes first."""
    collection: Collection[Any] = Collection(Cached(Gadget, views=1))
    one, other = (collection.cached.entry(data(version, name=name)) for version, name in ((1, "a"), (2, "b")))
    first = collection.view(one)
    collection.view(other)
    assert collection.view(one) is not first
    collection.allow_views(2)
    first = collection.view(one)
    collection.view(other)
    assert collection.view(one) is first


def test_controller_and_orphans_are_found(told: Told) -> None:
    """By uid, and by namespace, as they are now."""
    owner = {"apiVersion": "v1", "kind": "X", "name": "x", "uid": "o1", "controller": True}
    told.saw(1, ownerReferences=[owner])
    told.saw(2, name="b", ownerReferences=[{**owner, "controller": False}])
    assert [entry.key.name for entry in told.collection.controlled_by("o1")] == ["a"]
    assert [entry.key.name for entry in told.collection.orphans("default")] == ["b"]
    assert told.collection.orphans("elsewhere") == []
    told.saw(3)
    assert told.collection.controlled_by("o1") == []
    assert sorted(entry.key.name for entry in told.collection.orphans("default")) == ["a", "b"]


def test_object_that_does_not_fit_is_kept_and_raises_when_it_is_read(told: Told) -> None:
    """And has no place in an index."""
    told.collection.add_index("size", lambda gadget: [str(gadget.spec.size)])
    told.saw(1, size="huge")
    told.saw(2, name="b", size=3)
    with pytest.raises(DecodeError, match="default/a"):
        told.collection.view(told.entry(1, size="huge"))
    assert [entry.key.name for entry in told.collection.indexed("size", "3")] == ["b"]


def test_objects_are_found_by_label_namespace_and_owner(told: Told) -> None:
    """As they are now."""
    owner = {"apiVersion": "v1", "kind": "X", "name": "x", "uid": "o1", "controller": True}
    told.saw(1, labels={"app": "web"}, ownerReferences=[owner])
    told.saw(2, name="b", labels={"app": "db"})
    assert [entry.key for entry in told.collection.entries(labels=Labels("app=web"))] == [KEY]
    assert [entry.key for entry in told.collection.owned_by("o1")] == [KEY]
    told.saw(3, labels={"app": "db"})
    assert told.collection.entries(labels=Labels("app=web")) == []
    assert len(told.collection.entries(labels=Labels("app=db"), namespace="default")) == 2
    assert told.collection.owned_by("o1") == []


def test_failing_subscriber_does_not_keep_a_change_from_the_others(
    told: Told, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged."""

    def fail(change: Change) -> None:
        raise RuntimeError("broken")

    told.collection.subscribe(fail)
    late: list[Change] = []
    told.collection.subscribe(late.append)
    told.saw(1)
    assert len(late) == 1
    assert "a subscriber of gadgets.test.example.com failed" in caplog.text


def test_namespace_that_is_let_go_leaves_nothing(told: Told) -> None:
    """And nobody is told: nothing happened to the objects."""
    told.saw(4)
    told.changes.clear()
    told.wrote(5, read=4)
    told.collection.forget("default")
    assert (told.held, told.collection.keys(), told.heard) == (0, set(), [])
    told.wrote(3, read=0)
    assert told.held == 3


def test_namespace_is_kept_when_it_has_been_listed(told: Told) -> None:
    """Until then, what is not here may well exist."""
    told.collection.namespaces = {"default", "new"}
    told.collection.listed("default", 3)
    assert (told.collection.keeps("default"), told.collection.keeps("new"), told.collection.keeps("far")) == (
        True,
        False,
        False,
    )
    told.collection.listed("new", 4)
    assert told.collection.keeps("new")
    told.collection.forget("new")
    assert not told.collection.keeps("new")


def test_kind_without_a_class_reads_as_dynamic() -> None:
    """Only its name is needed."""
    told = Told(Cached(Kind("test.example.com", "v1", "Gadget", plural="gadgets")))
    told.saw(1)
    entry = told.collection.entry(KEY)
    assert entry is not None
    assert told.collection.view(entry)["spec"] == {"size": 1}
