"""Sets of field paths: the laws of sets, and how FieldsV1 is written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from navarch.cluster.server.objects.fields.elements import canonical_element, key_element, shown, value_element
from navarch.cluster.server.objects.fields.reading import compare_maps, set_of
from navarch.cluster.server.objects.fields.sets import (
    Tree,
    covers,
    decoded,
    difference,
    has,
    intersection,
    leaves,
    paths,
    recursive_difference,
    union,
)
from navarch.cluster.server.objects.fields.shapes import DEDUCED
from navarch.cluster.server.wire.json_errors import json_fault

_ELEMENTS = st.sampled_from(["f:a", "f:b", 'k:{"n":1}', 'k:{"n":10}', 'k:{"n":2}', 'v:"x"', "v:3", "i:0"])
_PATHS = st.lists(_ELEMENTS, min_size=1, max_size=4).map(tuple)
_PATH_SETS = st.frozensets(_PATHS, max_size=8)
_NAMES = st.sampled_from("abcd")
_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from("xy"),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(_NAMES, below, max_size=3),
    max_leaves=12,
)
_OBJECTS = st.dictionaries(_NAMES, _VALUES, max_size=4)


def _tree(members: frozenset[tuple[str, ...]]) -> Tree:
    """The set of some paths, made in the most naive way."""
    root: dict[str, Any] = {}
    for path in members:
        here = root
        for element in path:
            here = here.setdefault(element, {})
        here["."] = {}
    return decoded({element: _trimmed(node) for element, node in root.items()})


def _trimmed(node: dict[str, Any]) -> dict[str, Any]:
    below = {element: _trimmed(each) for element, each in node.items() if element != "."}
    return {".": {}, **below} if "." in node and below else below


def _members(tree: Tree) -> frozenset[tuple[str, ...]]:
    return frozenset(paths(tree))


@given(_PATH_SETS)
def test_a_set_has_the_members_it_was_made_of(members: frozenset[tuple[str, ...]]) -> None:
    """Reading and listing are inverse, and nothing else is a member."""
    tree = _tree(members)
    assert _members(tree) == members
    assert all(has(tree, *path) for path in members)


@given(_PATH_SETS, _PATH_SETS)
def test_union_intersection_and_difference_are_those_of_sets(
    left: frozenset[tuple[str, ...]], right: frozenset[tuple[str, ...]]
) -> None:
    """Member by member, as if the paths were in a plain set."""
    one, other = _tree(left), _tree(right)
    assert _members(union(one, other)) == left | right
    assert _members(intersection(one, other)) == left & right
    assert _members(difference(one, other)) == left - right
    assert covers(one, other) == (right <= left)


@given(_PATH_SETS, _PATH_SETS)
def test_results_are_written_as_if_they_had_been_made_at_once(
    left: frozenset[tuple[str, ...]], right: frozenset[tuple[str, ...]]
) -> None:
    """The order of elements does not tell how a set came about."""
    one, other = _tree(left), _tree(right)
    assert json.dumps(union(one, other)) == json.dumps(_tree(left | right))
    assert json.dumps(difference(one, other)) == json.dumps(_tree(left - right))
    assert json.dumps(intersection(one, other)) == json.dumps(_tree(left & right))


@given(_PATH_SETS, _PATH_SETS)
def test_recursive_difference_takes_what_is_below_too(
    left: frozenset[tuple[str, ...]], right: frozenset[tuple[str, ...]]
) -> None:
    """A path stays if no beginning of it is in the other set."""
    kept = {path for path in left if not any(path[:length] in right for length in range(1, len(path) + 1))}
    assert _members(recursive_difference(_tree(left), _tree(right))) == kept


@given(_PATH_SETS)
def test_leaves_have_no_members_below_them(members: frozenset[tuple[str, ...]]) -> None:
    """And every member without one below is a leaf."""
    expected = {path for path in members if not any(other[: len(path)] == path and other != path for other in members)}
    assert _members(leaves(_tree(members))) == expected


@given(_OBJECTS, _OBJECTS)
def test_what_came_is_in_the_new_object_and_what_is_gone_was_in_the_old_one(
    old: dict[str, Any], new: dict[str, Any]
) -> None:
    """No difference between equal objects, and turning them round turns the sides."""
    assert compare_maps(old, old, DEDUCED) == ({}, {})
    gone, came = compare_maps(old, new, DEDUCED)
    assert all(_reachable(new, path) for path in paths(came))
    assert all(_reachable(old, path) for path in paths(gone))
    assert set(_members(set_of(new, DEDUCED))) - set(_members(set_of(old, DEDUCED))) <= _members(came)


def _reachable(value: Any, path: tuple[str, ...]) -> bool:
    for element in path:
        if not isinstance(value, dict) or element[2:] not in value:
            return False
        value = value[element[2:]]
    return True


def test_elements_are_in_the_order_of_their_values() -> None:
    """Fields, then keys and values by number, then places."""
    written = decoded({name: {} for name in ("i:1", "v:10", "v:9", 'v:"a"', 'k:{"p":443}', 'k:{"p":80}', "f:b", "f:a")})
    assert list(written) == ["f:a", "f:b", 'k:{"p":80}', 'k:{"p":443}', "v:9", "v:10", 'v:"a"', "i:1"]


@pytest.mark.parametrize(
    ("element", "canonical"),
    [
        ('k:{"b": 1, "a": "x"}', 'k:{"a":"x","b":1}'),
        ("v:1.0", "v:1"),
        ('v:"<"', 'v:"\\u003c"'),
        ("i:07", "i:7"),
        ("x:later", None),
    ],
)
def test_an_element_has_one_way_to_be_written(element: str, canonical: str | None) -> None:
    """However a client writes it."""
    assert canonical_element(element) == canonical


@pytest.mark.parametrize("element", ["", "f", "nonsense", "k:{", "k:[]", "v:", "i:x"])
def test_what_is_no_element_is_refused(element: str) -> None:
    """And never taken for one."""
    with pytest.raises(ValueError):
        canonical_element(element)


@given(st.text(), st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | st.text())
def test_keys_and_values_of_any_kind_can_be_read_back(text: str, value: Any) -> None:
    """What is written is the canonical form, and can be shown."""
    for element in (key_element([("a", text), ("b", value)]), value_element(value)):
        assert canonical_element(element) == element
        assert shown(element)


@given(st.text(alphabet='{}[]",:0123eE.+-truefalsn\\u \n', max_size=12))
def test_a_body_is_faulty_if_and_only_if_it_is_no_json(body: str) -> None:
    """For any body, without a crash."""
    try:
        json.loads(body)
    except ValueError:
        assert json_fault(body.encode())
    else:
        assert not json_fault(body.encode())
