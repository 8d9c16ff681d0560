"""JSON patches say little, hit what they mean, and apply as on the API server."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from navarch.api.json_patch import (
    apply_json_patch,
    copy_json,
    create_json_patch,
    join_pointer,
    parse_pointer,
    same_json,
)
from navarch.errors import PatchError

SCALARS = (
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.0, 1.0, 1.5]) | st.sampled_from(["", "a", "b"])
)
NAMES = st.sampled_from(["a", "b", "a/b", "~", "0", "name", ""])
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=20
)

APPLIED: list[tuple[str, dict[str, Any], Any, Any]] = [
    ("add a member", {"op": "add", "path": "/b", "value": 2}, {"a": 1}, {"a": 1, "b": 2}),
    ("add over a member", {"op": "add", "path": "/a", "value": 2}, {"a": 1}, {"a": 2}),
    ("add without value", {"op": "add", "path": "/a"}, {}, {"a": None}),
    ("add an element", {"op": "add", "path": "/1", "value": 2}, [1, 3], [1, 2, 3]),
    ("add at the end by index", {"op": "add", "path": "/2", "value": 3}, [1, 2], [1, 2, 3]),
    ("add at the end", {"op": "add", "path": "/a/-", "value": 2}, {"a": [1]}, {"a": [1, 2]}),
    ("add from the end", {"op": "add", "path": "/-1", "value": 3}, [1, 2], [1, 2, 3]),
    ("add a dash to an object", {"op": "add", "path": "/-", "value": 1}, {}, {"-": 1}),
    ("escape", {"op": "add", "path": "/a~1b/m~0n", "value": 1}, {"a/b": {}}, {"a/b": {"m~n": 1}}),
    ("escape once", {"op": "add", "path": "/~01", "value": 1}, {}, {"~1": 1}),
    ("empty member", {"op": "add", "path": "/", "value": 1}, {}, {"": 1}),
    ("remove a member", {"op": "remove", "path": "/a"}, {"a": None, "b": 1}, {"b": 1}),
    ("remove an element", {"op": "remove", "path": "/0"}, [1, 2], [2]),
    ("remove the last", {"op": "remove", "path": "/-1"}, [1, 2], [1]),
    ("replace a member", {"op": "replace", "path": "/a", "value": [1]}, {"a": 1}, {"a": [1]}),
    ("replace a missing member", {"op": "replace", "path": "/a", "value": 1}, {}, {"a": 1}),
    ("replace an element", {"op": "replace", "path": "/a/1", "value": 9}, {"a": [1, 2]}, {"a": [1, 9]}),
    ("replace all", {"op": "replace", "path": "", "value": {"b": 1}}, {"a": 1}, {"b": 1}),
    ("move a member", {"op": "move", "from": "/a", "path": "/b"}, {"a": 1}, {"b": 1}),
    ("move an element", {"op": "move", "from": "/0", "path": "/-"}, [1, 2, 3], [2, 3, 1]),
    ("copy", {"op": "copy", "from": "/a", "path": "/b"}, {"a": [1]}, {"a": [1], "b": [1]}),
    ("copy what is not there", {"op": "copy", "from": "/x", "path": "/b"}, {}, {"b": None}),
    ("test a value", {"op": "test", "path": "/a", "value": {"b": [1, None]}}, {"a": {"b": [1, None]}}, ...),
    ("test null", {"op": "test", "path": "/a", "value": None}, {"a": None}, ...),
    ("test null where nothing is", {"op": "test", "path": "/b", "value": None}, {"a": 1}, ...),
    ("test nothing where nothing is", {"op": "test", "path": "/b"}, {"a": 1}, ...),
    ("test all", {"op": "test", "path": "", "value": {"a": 1}}, {"a": 1}, ...),
]
REFUSED: list[tuple[dict[str, Any], Any, str]] = [
    ({"op": "remove", "path": "/b"}, {"a": 1}, "expected a member 'b', found none"),
    ({"op": "remove", "path": "/2"}, [1, 2], "expected an index"),
    ({"op": "remove", "path": "/-"}, [1, 2], "expected an index"),
    ({"op": "remove", "path": "/-3"}, [1, 2], "expected an index"),
    ({"op": "remove", "path": ""}, {"a": 1}, "whole document"),
    ({"op": "add", "path": "", "value": 1}, {"a": 1}, "use replace"),
    ({"op": "add", "path": "/a/b", "value": 1}, {}, "expected an object or list at /a, found null; add it first"),
    ({"op": "add", "path": "/a/b", "value": 1}, {"a": "secret"}, "expected an object or list at /a, found a text"),
    ({"op": "add", "path": "/a", "value": 1}, 5, "at the document, found 5"),
    ({"op": "add", "path": "/3", "value": 1}, [1, 2], "expected an index"),
    ({"op": "add", "path": "/x", "value": 1}, [1, 2], "got 'x'"),
    ({"op": "add", "path": "/1_0", "value": 1}, list(range(20)), "got '1_0'"),
    ({"op": "add", "path": "/a/-/b", "value": 1}, {"a": [{}]}, "got '-'"),
    ({"op": "add", "path": "a", "value": 1}, {}, "begins with '/', got 'a'; write /a"),
    ({"op": "add", "value": 1}, {}, "expected 'path' to be a JSON pointer"),
    ({"op": "add", "path": 1, "value": 1}, {}, "got 1"),
    ({"op": "replace", "path": "/0", "value": 1}, [], "expected an index"),
    ({"op": "replace", "path": "/a/b", "value": 1}, {}, "add it first"),
    ({"op": "move", "path": "/b"}, {"a": 1}, "expected 'from' to be a JSON pointer"),
    ({"op": "move", "from": "/x", "path": "/b"}, {"a": 1}, "expected a member 'x'"),
    ({"op": "move", "from": "/a", "path": "/a/b"}, {"a": {}}, "at /a, found null"),
    ({"op": "copy", "from": "/5", "path": "/0"}, [1], "expected an index"),
    ({"op": "test", "path": "/a", "value": 2}, {"a": 1}, "expected 2, found 1"),
    ({"op": "test", "path": "/a", "value": 1.0}, {"a": 1}, "expected 1.0, found 1"),
    ({"op": "test", "path": "/a", "value": True}, {"a": 1}, "expected true, found 1"),
    ({"op": "test", "path": "/a", "value": None}, {"a": 1}, "expected null, found 1"),
    ({"op": "test", "path": "/a"}, {"a": [1]}, "found a list"),
    ({"op": "test", "path": "/a", "value": {}}, {"a": "secret"}, "expected an object, found a text"),
    ({"op": "test", "path": "/9", "value": None}, [1], "expected an index"),
    ({"op": "merge", "path": "/a"}, {}, "got 'merge'"),
    ({"path": "/a"}, {}, "one of add, remove, replace, move, copy, test, got None"),
    ({"op": ["add"], "path": "/a"}, {}, "expected op"),
]


@pytest.mark.parametrize(
    ("operation", "document", "expected"), [case[1:] for case in APPLIED], ids=[case[0] for case in APPLIED]
)
def test_operation_applies_as_on_the_api_server(operation: dict[str, Any], document: Any, expected: Any) -> None:
    """And leaves what it was given alone."""
    operation_before, document_before = copy.deepcopy(operation), copy.deepcopy(document)
    result = apply_json_patch([operation], document)
    assert same_json(result, document if expected is ... else expected)
    assert (operation, document) == (operation_before, document_before)


def test_one_change_among_many_equal_elements_is_one_operation() -> None:
    """What is equal at both ends is not compared pair by pair, so ten thousand elements take no time."""
    many = ["same"] * 10_000
    changed = [*many[:5_000], "other", *many[5_000:-1]]
    assert create_json_patch(many, changed) == [{"op": "replace", "path": "/5000", "value": "other"}]


@pytest.mark.parametrize(("operation", "document", "message"), REFUSED)
def test_operation_that_does_not_fit_is_refused(operation: dict[str, Any], document: Any, message: str) -> None:
    """With its number, and without the texts of the document, which may be secret."""
    before = copy.deepcopy(document)
    with pytest.raises(PatchError) as caught:
        apply_json_patch([operation], document)
    assert str(caught.value).startswith("operation 0 (")
    assert message in str(caught.value)
    assert "secret" not in str(caught.value)
    assert document == before


def test_operation_must_be_an_object() -> None:
    """A patch from the wire may be anything."""
    with pytest.raises(PatchError, match=r"operation 1 \(remove\): expected op"):
        apply_json_patch([{"op": "add", "path": "/a", "value": 1}, "remove"], {})


def test_result_shares_nothing_with_the_patch() -> None:
    """One patch can be applied many times."""
    patch = [{"op": "add", "path": "/a", "value": []}, {"op": "add", "path": "/a/-", "value": 1}]
    assert apply_json_patch(patch, {}) == apply_json_patch(patch, {}) == {"a": [1]}


def test_copied_value_is_independent() -> None:
    """A later operation changes only one of the two."""
    patch = [{"op": "copy", "from": "/a", "path": "/b"}, {"op": "add", "path": "/b/-", "value": 1}]
    assert apply_json_patch(patch, {"a": []}) == {"a": [], "b": [1]}


CREATED: list[tuple[Any, Any, list[tuple[str, str]]]] = [
    ({"a": 1}, {"a": 1}, []),
    ([], [], []),
    ({"a": 1}, {"a": 2}, [("replace", "/a")]),
    ({"a": 1}, {"a": 1.0}, [("replace", "/a")]),
    ({"a": 1}, {"a": True}, [("replace", "/a")]),
    ({"a": 0}, {"a": None}, [("replace", "/a")]),
    ({}, {"a": None}, [("add", "/a")]),
    ({"a": None}, {}, [("remove", "/a")]),
    ({"a/b": {"~": 1}}, {"a/b": {"~": 2}}, [("replace", "/a~1b/~0")]),
    ({"a": {"b": 1}}, {"a": [1]}, [("replace", "/a")]),
    ({"a": 1}, [1], [("replace", "")]),
    ([1, 2, 3], [1, 3], [("remove", "/1")]),
    ([1, 3], [1, 2, 3], [("add", "/1")]),
    ([1, 2, 3], [1, 9, 3], [("replace", "/1")]),
    ([1, 2, 3, 4], [2, 3, 4, 5], [("remove", "/0"), ("add", "/3")]),
    ([1, 1.0, True], [1.0, True], [("remove", "/0")]),
    ([], [1, 2], [("replace", "")]),
    ([1, 2], [], [("replace", "")]),
    ([1, 2], [3, 4], [("replace", "")]),
    ([{"x": 1}], [{"x": 2}], [("replace", "/0/x")]),
    ([[1, 2]], [[1, 2, 3]], [("add", "/0/2")]),
    (
        [{"name": "a", "v": 1}, {"name": "b", "v": 1}],
        [{"name": "new"}, {"name": "a", "v": 1}, {"name": "b", "v": 2}],
        [("add", "/0"), ("replace", "/2/v")],
    ),
    (
        [{"name": "a", "v": 1}, {"name": "b", "v": 1}, {"name": "c"}],
        [{"name": "b", "v": 2}, {"name": "c"}],
        [("remove", "/0"), ("replace", "/0/v")],
    ),
    ([{"name": "a", "v": 1}, 1], [{"name": "b", "v": 2}, 1], [("replace", "/0")]),
    (
        [{"type": "Ready", "status": "False"}, {"type": "Synced", "status": "True"}],
        [{"type": "Ready", "status": "True"}, {"type": "Synced", "status": "True"}],
        [("replace", "/0/status")],
    ),
]


@pytest.mark.parametrize(("before", "after", "expected"), CREATED)
def test_created_patch_is_small_and_deep(before: Any, after: Any, expected: list[tuple[str, str]]) -> None:
    """What stayed is not touched; named elements are followed."""
    patch = create_json_patch(before, after)
    assert [(operation["op"], operation["path"]) for operation in patch] == expected


def test_created_patch_shares_nothing_with_its_arguments() -> None:
    """The object may change before the patch is sent."""
    after = {"a": [1]}
    patch = create_json_patch({}, after)
    after["a"].append(2)
    assert patch == [{"op": "add", "path": "/a", "value": [1]}]


@given(JSON, JSON)
def test_created_patch_leads_from_one_to_the_other(before: Any, after: Any) -> None:
    """For any two documents, and without changing them."""
    originals = copy.deepcopy((before, after))
    patch = create_json_patch(before, after)
    assert same_json(apply_json_patch(patch, before), after)
    assert (before, after) == originals
    assert bool(patch) != same_json(before, after)


@given(st.lists(st.dictionaries(NAMES, SCALARS)), st.data())
def test_created_patch_follows_edits_of_lists(before: list[dict[str, Any]], data: st.DataObject) -> None:
    """Lists of objects, reordered, shortened and lengthened."""
    after = data.draw(st.permutations(before))[1:] + data.draw(st.lists(st.dictionaries(NAMES, SCALARS), max_size=2))
    assert same_json(apply_json_patch(create_json_patch(before, after), before), after)


@given(st.lists(st.text() | st.integers(0, 9)))
def test_pointer_survives_escaping(parts: list[str | int]) -> None:
    """Slashes and tildes come back."""
    assert parse_pointer(join_pointer(*parts)) == list(map(str, parts))


@given(JSON)
def test_copy_is_the_same_and_another(value: Any) -> None:
    """All the way down."""
    copied = copy_json(value)
    assert same_json(copied, value)
    if isinstance(value, list | dict):
        assert copied is not value
