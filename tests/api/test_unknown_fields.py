"""What a model does not know survives reading, changing and writing."""

import copy
import json
import pickle
from collections.abc import Sequence
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from navarch.api import ListMap, Model, Resource, Spec, Status, decode, encode, full_wire
from navarch.api.model_shape import ModelShape
from navarch.api.unknown_fields import ObjectChange, carry
from navarch.errors import MalformedJsonError


class Part(Model):
    name: str
    value: int = 0
    notes: list[str] = []


class WidgetSpec(Spec):
    size: int = 1
    colour: str | None = None
    part: Part | None = None
    by_name: Annotated[list[Part], ListMap("name")] = []
    plain: list[Part] = []
    by_key: dict[str, Part] = {}
    anything: Any = None


class WidgetStatus(Status):
    ready: bool = False


class Widget(Resource[WidgetSpec, WidgetStatus], group="example.com", version="v1"): ...


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
UNKNOWN = st.dictionaries(st.text(max_size=5).map("x-{}".format), JSON, max_size=3)
NAMES = st.sampled_from("abcdef")


def known(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A struct with some of its own fields and some that the model does not know."""
    mine = st.fixed_dictionaries({}, optional=fields)
    return st.builds(lambda own, other: {**own, **other}, mine, UNKNOWN)


def part(name: str | None = None) -> st.SearchStrategy[dict[str, Any]]:
    named = NAMES if name is None else st.just(name)
    rest = known(value=st.integers(0, 9), notes=st.lists(st.text(max_size=3), max_size=2))
    return st.builds(lambda name, rest: {"name": name, **rest}, named, rest)


PARTS = st.lists(part(), max_size=4)
NAMED_PARTS = st.lists(part(), max_size=4, unique_by=lambda item: item["name"])
SPEC = known(
    size=st.integers(0, 9),
    colour=st.text(max_size=3),
    part=part(),
    byName=NAMED_PARTS,
    plain=PARTS,
    byKey=st.dictionaries(NAMES, part(), max_size=3),
    anything=JSON,
)
WIRE = st.builds(
    lambda spec, other, labels: {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w", "labels": labels, "x-meta": 1},
        "spec": spec,
        **other,
    },
    SPEC,
    UNKNOWN,
    st.dictionaries(NAMES, st.text(max_size=3), max_size=2),
)


class Bag(Model):
    tags: set[str] = set()
    shades: frozenset[str] | None = None
    in_order: Annotated[Sequence[Part], ListMap("name")] = []
    fixed: Annotated[tuple[Part, ...], ListMap("name")] = ()


class Sack(Resource[Bag, Status], group="example.com", version="v1"): ...


def sack(**spec: Any) -> Sack:
    return Sack.from_json(encode({"apiVersion": "example.com/v1", "kind": "Sack", "metadata": {}, "spec": spec}))


def test_what_is_taken_from_a_set_is_gone_whatever_the_order_it_came_in() -> None:
    """The model's view of a set is sorted, what was read is not."""
    found = sack(tags=["zebra", "ant", "cat"], shades=["red", "blue"])
    found.spec.tags.discard("zebra")
    found.spec.shades = frozenset({"red", "green"})
    written = full_wire(found)["spec"]
    assert (set(written["tags"]), set(written["shades"])) == ({"ant", "cat"}, {"red", "green"})


@pytest.mark.parametrize("field", ["in_order", "fixed"])
def test_keys_count_in_whatever_type_holds_the_items(field: str) -> None:
    """A tuple or Sequence is a list on the wire."""
    wire = {"in_order": "inOrder", "fixed": "fixed"}[field]
    found = sack(**{wire: [{"name": "a", "x-of": "a"}, {"name": "b", "x-of": "b"}]})
    turned = tuple(Part(name=item.name, value=7) for item in reversed(getattr(found.spec, field)))
    setattr(found.spec, field, turned)
    assert [(item["name"], item["x-of"]) for item in full_wire(found)["spec"][wire]] == [("b", "b"), ("a", "a")]


def read(wire: dict[str, Any]) -> Widget:
    return Widget.from_json(json.dumps(wire).encode())


def unknown_of(value: dict[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in value.items() if key.startswith("x-")}


@given(WIRE)
def test_object_that_is_not_changed_is_written_as_it_was_read(wire: dict[str, Any]) -> None:
    """To the letter: defaults that it did not have are not added."""
    assert full_wire(read(wire)) == wire


@given(WIRE, SPEC)
def test_known_changes_are_made_and_unknown_fields_stay(wire: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Whatever is read and whatever is set: the model's view is the new one, the rest is the old one."""
    widget = read(wire)
    widget.spec = decode(WidgetSpec, json.dumps({k: v for k, v in wanted.items() if not k.startswith("x-")}).encode())
    written = full_wire(widget)
    assert decode(Widget, encode(written)) == widget
    assert unknown_of(written) == unknown_of(wire)
    assert unknown_of(written["spec"]) == unknown_of(wire["spec"])
    assert written["metadata"]["x-meta"] == 1


@given(WIRE, st.permutations("abcdef"), st.sets(NAMES), st.integers(0, 9))
def test_items_with_keys_keep_their_own_unknown_fields(
    wire: dict[str, Any], order: list[str], removed: set[str], value: int
) -> None:
    """However they are sorted, removed, added and changed."""
    widget = read(wire)
    before = {item["name"]: item for item in wire["spec"].get("byName", [])}
    kept = {item.name: item for item in widget.spec.by_name if item.name not in removed}
    widget.spec.by_name = [kept.get(name) or Part(name=name) for name in order]
    for item in widget.spec.by_name:
        item.value = value
    written = {item["name"]: item for item in full_wire(widget)["spec"]["byName"]}
    assert list(written) == order
    for name, item in written.items():
        assert item.get("value", 0) == value
        old = before.get(name, {})
        assert unknown_of(item) == unknown_of(old)


@given(
    st.lists(part(), min_size=1, max_size=5, unique_by=lambda item: json.dumps([item["name"], item.get("value", 0)])),
    st.data(),
)
def test_items_without_keys_are_found_by_likeness(items: list[dict[str, Any]], data: st.DataObject) -> None:
    """One is taken out or put in anywhere: the others keep what they had."""
    widget = read({"metadata": {"name": "w"}, "spec": {"plain": items}})
    place = data.draw(st.integers(0, len(items) - 1))
    if data.draw(st.booleans()):
        del widget.spec.plain[place]
        expected = items[:place] + items[place + 1 :]
    else:
        widget.spec.plain.insert(place, Part(name="new"))
        expected = [*items[:place], {"name": "new", "value": 0, "notes": []}, *items[place:]]
    assert full_wire(widget)["spec"]["plain"] == expected


def test_item_without_keys_that_is_changed_in_its_place_keeps_what_is_unknown() -> None:
    """It is like nothing that was there, so it is taken for what stood at its index."""
    widget = read({"metadata": {}, "spec": {"plain": [{"name": "a", "x-1": 1}, {"name": "b", "x-2": 2}]}})
    widget.spec.plain[1].value = 5
    assert full_wire(widget)["spec"]["plain"] == [{"name": "a", "x-1": 1}, {"name": "b", "x-2": 2, "value": 5}]


def pickled(original: Widget) -> Any:
    return pickle.loads(pickle.dumps(original))


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, Widget.copy, pickled])
def test_copies_know_what_the_original_knew(duplicate: Any) -> None:
    """And are private down to the last list."""
    original = read(
        {"metadata": {"name": "w", "labels": {"a": "b"}}, "spec": {"plain": [{"name": "a", "x-1": 1}], "x-2": 2}}
    )
    twin = duplicate(original)
    assert twin == original
    twin.spec.plain[0].value = 7
    twin.spec.size = 9
    twin.labels["a"] = "c"
    assert (original.spec.plain[0].value, original.spec.size, original.labels) == (0, 1, {"a": "b"})
    written = full_wire(twin)["spec"]
    assert written == {"plain": [{"name": "a", "x-1": 1, "value": 7}], "x-2": 2, "size": 9}


@pytest.mark.parametrize(
    ("before", "after"), [(1, True), (True, 1), (1, 1.0), (0, False), ([1], [True]), ({"a": 1}, {"a": True})]
)
def test_change_of_type_is_a_change(before: Any, after: Any) -> None:
    """Although Python holds the two for equal."""
    widget = read({"metadata": {}, "spec": {"anything": before}})
    widget.spec.anything = after
    assert encode(full_wire(widget)["spec"]["anything"]) == encode(after)


def test_field_that_is_unset_is_removed() -> None:
    """None means unset; null is never sent."""
    widget = read({"metadata": {}, "spec": {"colour": "red", "part": {"name": "a", "x-1": 1}, "x-2": 2}})
    widget.spec.colour = widget.spec.part = None
    assert full_wire(widget)["spec"] == {"x-2": 2}


def test_labels_that_are_taken_away_are_gone() -> None:
    """One by one, and all together."""
    widget = read({"metadata": {"name": "w", "labels": {"a": "1", "b": "2"}}, "spec": {}})
    del widget.labels["a"]
    assert full_wire(widget)["metadata"]["labels"] == {"b": "2"}
    widget.labels.clear()
    assert "labels" not in full_wire(widget)["metadata"]


def test_explicit_value_that_equals_the_default_stays_when_its_neighbour_changes() -> None:
    """The server was told so once; server-side apply must not give it up."""
    widget = read({"metadata": {}, "spec": {"size": 1}})
    widget.spec.colour = "red"
    assert full_wire(widget)["spec"] == {"size": 1, "colour": "red"}


def test_unknown_bytes_that_are_no_text_are_an_error_of_ours() -> None:
    """They are not looked at when the object is read, but cannot be written."""
    widget = Widget.from_json(b'{"metadata":{},"spec":{},"x":"\xff"}')
    with pytest.raises(MalformedJsonError):
        full_wire(widget)


def test_new_object_is_written_with_its_defaults() -> None:
    """There is nothing to be kept."""
    assert full_wire(Widget(name="w"))["spec"] == {"size": 1, "byName": [], "plain": [], "byKey": {}}


def test_carry_takes_what_is_new_where_shapes_differ() -> None:
    """A list that became a dict, or nothing, is replaced."""
    assert carry([1], [1], {"a": 1}) == {"a": 1}
    assert carry({"a": 1}, {"a": 1}, None) is None
    assert carry({"a": [1, 2]}, {"a": [1]}, {"a": [3]}) == {"a": [3]}


def test_change_is_carried_over_to_a_later_version_of_a_list_with_keys() -> None:
    """What somebody else added, changed and removed stays so; what we added, changed and removed is done."""
    then = [{"name": name, "value": 0} for name in ("same", "ours", "theirs", "we-remove", "they-remove", "they-drop")]
    later = [{"name": "same", "value": 0}, {"name": "ours", "value": 0, "unknown": 1}, {"name": "theirs", "value": 7}]
    later += [{"name": "we-remove", "value": 0}, {"name": "they-add", "value": 8}]
    now = [{"name": "we-add", "value": 9}, {"name": "same", "value": 0}, {"name": "ours", "value": 5}]
    now += [{"name": "theirs", "value": 0}, {"name": "they-remove", "value": 0}, {"name": "they-drop", "value": 6}]
    merged = carry(later, then, now, ModelShape(keys=("name",), items=ModelShape()))
    assert {item.pop("name"): item for item in merged} == {
        "same": {"value": 0},
        "ours": {"value": 5, "unknown": 1},
        "theirs": {"value": 7},
        "they-add": {"value": 8},
        "they-drop": {"value": 6},
        "we-add": {"value": 9},
    }


def test_change_is_told_as_a_patch_of_the_wire() -> None:
    """The operations reach only what was changed, with the indices and names of the wire; what the model lacks stays."""
    wire = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "a", "labels": {"x/y": "1"}, "future": {"kept": True}},
        "spec": {"size": 1, "byName": [{"name": "a", "later": 1}, {"name": "b", "value": 2, "later": 2}], "later": [1]},
        "status": {"ready": True, "later": {}},
    }
    widget = Widget.from_json(json.dumps(wire).encode())
    change = ObjectChange(widget)
    assert change.patch() == []
    widget.spec.by_name[1].value = 3
    widget.labels["z"] = "2"
    assert change.patch() == [
        {"op": "add", "path": "/metadata/labels/z", "value": "2"},
        {"op": "replace", "path": "/spec/byName/1/value", "value": 3},
    ]


def test_change_is_that_since_the_object_was_remembered() -> None:
    """What was changed before is not part of it; an object that was never on the wire can be changed too."""
    widget = Widget.from_json(b'{"apiVersion": "example.com/v1", "kind": "Widget", "spec": {"size": 1}}')
    widget.spec.size = 2
    change = ObjectChange(widget)
    widget.spec.colour = "red"
    assert change.patch() == [{"op": "add", "path": "/spec/colour", "value": "red"}]
    fresh = Widget(name="a", spec=WidgetSpec(size=1))
    change = ObjectChange(fresh)
    fresh.spec.size = True
    assert change.patch() == [{"op": "replace", "path": "/spec/size", "value": True}]
