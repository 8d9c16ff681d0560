"""JSON merge patches, as RFC 7386 and the API server have them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from navarch.api.json_patch import same_json
from navarch.api.merge_patch import apply_merge_patch, create_merge_patch
from navarch.errors import PatchError

NAMES = st.sampled_from(["a", "b", "c"])
SCALARS = st.booleans() | st.integers(-2, 2) | st.sampled_from([0.0, 1.0]) | st.sampled_from(["", "x"])


def documents(scalars: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=12
    )


WITH_NULLS = documents(SCALARS | st.none())
WITHOUT_NULLS = documents(SCALARS)

# The examples of RFC 7386, appendix A: document, patch, result.
EXAMPLES: list[tuple[Any, Any, Any]] = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("document", "patch", "expected"), EXAMPLES)
def test_examples_of_the_rfc_hold(document: Any, patch: Any, expected: Any) -> None:
    """And nothing that was given is changed."""
    before = copy.deepcopy((document, patch))
    assert same_json(apply_merge_patch(patch, document), expected)
    assert (document, patch) == before


def test_nulls_inside_a_new_list_go_as_on_the_api_server() -> None:
    """Members go, elements stay."""
    assert apply_merge_patch({"a": [{"b": None, "c": 1}, None]}, {}) == {"a": [{"c": 1}, None]}


def test_result_shares_nothing_with_its_arguments() -> None:
    """Neither with the patch nor with the document."""
    patch: dict[str, Any] = {"a": {"b": []}}
    document: dict[str, Any] = {"c": {"d": []}}
    result = apply_merge_patch(patch, document)
    result["a"]["b"].append(1)
    result["c"]["d"].append(1)
    assert (patch, document) == ({"a": {"b": []}}, {"c": {"d": []}})


@pytest.mark.parametrize(
    ("before", "after", "patch"),
    [
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1}, {"a": 1.0}, {"a": 1.0}),
        ({"a": 1}, {"a": True}, {"a": True}),
        ({"a": 1, "b": 2}, {"b": 2}, {"a": None}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, {"a": {"c": 3}}),
        ({"a": {"b": 1}}, {"a": {}}, {"a": {"b": None}}),
        ({"a": 1}, {"a": {}}, {"a": {}}),
        ({}, {"a": {}}, {"a": {}}),
        ({"a": [1, 2]}, {"a": [1, 2, 3]}, {"a": [1, 2, 3]}),
        ({"a": None, "b": 1}, {"a": None, "b": 2}, {"b": 2}),
        ({"a": 1}, [1], [1]),
    ],
)
def test_created_patch_has_only_what_differs(before: Any, after: Any, patch: Any) -> None:
    """Objects are entered, all else is replaced."""
    assert same_json(create_merge_patch(before, after), patch)


@pytest.mark.parametrize(
    ("after", "place"), [({"a": None}, "/a"), ({"a": {"b": None}}, "/a/b"), ({"a": [1, {"b/c": None}]}, "/a/1/b~1c")]
)
def test_null_cannot_be_expressed(after: Any, place: str) -> None:
    """Better an error than a removal."""
    with pytest.raises(PatchError, match=f"at {place}, got null; use a JSON patch"):
        create_merge_patch({}, after)


@given(WITH_NULLS, WITHOUT_NULLS)
def test_created_patch_leads_from_one_to_the_other(before: Any, after: Any) -> None:
    """For any two documents, the second without nulls."""
    originals = copy.deepcopy((before, after))
    assert same_json(apply_merge_patch(create_merge_patch(before, after), before), after)
    assert (before, after) == originals


@given(WITH_NULLS, WITH_NULLS)
def test_created_patch_is_right_or_refused(before: Any, after: Any) -> None:
    """Never quietly wrong."""
    try:
        patch = create_merge_patch(before, after)
    except PatchError:
        return
    assert same_json(apply_merge_patch(patch, before), after)


@given(WITH_NULLS, WITH_NULLS)
def test_applying_twice_changes_nothing_more(patch: Any, document: Any) -> None:
    """A merge patch says how things shall be."""
    once = apply_merge_patch(patch, document)
    assert same_json(apply_merge_patch(patch, once), once)
