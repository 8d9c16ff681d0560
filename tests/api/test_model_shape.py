"""The shape of a model as data."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NewType, Optional

import pytest

from navarch.api import ListMap, Model
from navarch.api.model_shape import shape_of


class Tree(Model):
    name: str
    children: "list[Tree]" = []
    by_name: "Annotated[list[Tree], ListMap('name')] | None" = None
    twin: "Optional[Tree]" = None  # noqa: UP045 - both spellings count


class Pair(Model):
    left_side: Annotated[list[Tree], ListMap("name")] = []
    rest: Any = None


def test_fields_go_by_their_wire_names() -> None:
    """As they are met in JSON."""
    assert set(shape_of(Pair).fields or {}) == {"leftSide", "rest"}


def test_struct_that_holds_itself_has_an_end() -> None:
    """Its shape holds itself too."""
    shape = shape_of(Tree)
    assert shape.fields is not None
    assert shape.fields["children"].items is shape


def test_map_keys_are_kept_with_their_list() -> None:
    """Also where the list is optional."""
    assert (shape_of(Pair).fields or {})["leftSide"].keys == ("name",)
    assert (shape_of(Tree).fields or {})["byName"].keys == ("name",)


def test_shape_is_made_once() -> None:
    """It is asked for with each object."""
    assert shape_of(Pair) is shape_of(Pair)


@pytest.mark.parametrize(
    ("value", "filled"),
    [
        ({}, {"name": ""}),
        ({"name": None}, {"name": ""}),
        ({"name": "a", "children": [{}, None]}, {"name": "a", "children": [{"name": ""}]}),
        ({"name": "a", "twin": None}, {"name": "a", "twin": None}),
        ({"name": "a", "twin": {"twin": {}}}, {"name": "a", "twin": {"name": "", "twin": {"name": ""}}}),
        (7, 7),
    ],
)
def test_zero_values_fill_what_is_required(value: Any, filled: Any) -> None:
    """And nothing else; null stays where it is allowed."""
    assert shape_of(Tree).with_zero_values(value) == filled


@pytest.mark.parametrize(
    ("annotation", "zero"),
    [
        (list[int], []),
        (list, []),
        (Sequence[int], []),
        (tuple[int, ...], []),
        (set[str], []),
        (Mapping[str, int], {}),
        (dict, {}),
        (NewType("Name", str), ""),
    ],
    ids=str,
)
def test_every_type_that_json_can_stand_for_has_its_zero_value(annotation: Any, zero: Any) -> None:
    """A Go server sends null for each of them where there is nothing."""
    assert shape_of(annotation).zero == zero
