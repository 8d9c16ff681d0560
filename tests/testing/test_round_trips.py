"""`round_trips` finds conversions that raise, lose fields, or give objects that the other version refuses."""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable
from datetime import datetime
from itertools import count
from typing import Annotated, Any

import pytest
from hypothesis import given

from example_counts import examples
from navarch import (
    Duration,
    IntOrString,
    ListMap,
    ListSet,
    Meta,
    Model,
    Operator,
    Quantity,
    Resource,
    Rule,
    Spec,
    Status,
)
from navarch.errors import DefinitionError
from navarch.schema import Schema, schema_of
from navarch.testing import round_trips
from navarch.testing.round_trip_tests import drawn_objects

GROUP = "trips.example.com"


class Mood(enum.StrEnum):
    calm = "Calm"
    wild = "Wild"


class Part(Model):
    name: Annotated[str, Meta(pattern="^[a-z]+$", max_length=5)]
    weight: float = 0.5


class Bucket(Model, tag="s3", tag_field="store"):
    bucket: str


class Folder(Model, tag="local", tag_field="store"):
    path: Annotated[str, Meta(min_length=1)]


class ManySpec(Spec, rules=(Rule("self.size <= self.limit", message="too much"),)):
    size: Annotated[int, Meta(ge=0, le=64)] = 1
    limit: Annotated[int, Meta(ge=0, le=64)] = 64
    even: Annotated[int, Meta(multiple_of=2, format="int32")] | None = None
    mood: Mood = Mood.calm
    parts: Annotated[list[Part], ListMap("name"), Meta(max_length=2)] = []
    zones: Annotated[list[str], ListSet()] = []
    tags: set[str] = set()
    labels: dict[str, int] = {}
    memory: Quantity | None = None
    ratio: Annotated[float, Meta(ge=0, le=1)] = 1.0
    grace: Duration | None = None
    surge: IntOrString | None = None
    since: datetime | None = None
    data: bytes | None = None
    target: Bucket | Folder | None = None
    anything: Any = None


class Many(Resource[ManySpec, Status], group=GROUP, version="v1"):
    """All that a schema can say."""


class FewSpec(Spec):
    count: int = 1


class Few(Resource[FewSpec, Status], group=GROUP, version="v1alpha1", kind="Many", storage=False):
    """A version that can hold little of it."""


def _up(old: Few) -> Many:
    return Many(spec=ManySpec(size=max(0, min(old.spec.count, 64))))


def _down(new: Many) -> Few:
    return Few(spec=FewSpec(count=new.spec.size))


def _operator(up: Callable[[Few], Many] = _up, down: Callable[[Many], Few] = _down) -> Operator:
    operator = Operator("tripping")
    operator.convert(Few, Many)(up).reverse(down)
    return operator


test_conversions_that_lose_nothing = round_trips(_operator(), examples=50)


def _failure(test: Any) -> str:
    """The text of the first case that fails."""
    (mark,) = test.pytestmark
    for case in mark.args[1]:
        try:
            test(case)
        except AssertionError as error:
            return str(error)
    return ""


def test_every_pair_of_versions_is_a_case() -> None:
    """The names of the cases tell the direction."""
    (mark,) = getattr(round_trips(_operator()), "pytestmark")  # noqa: B009 - pytest puts it there
    assert list(map(mark.kwargs["ids"], mark.args[1])) == ["Many v1alpha1 to v1", "Many v1 to v1alpha1"]


def test_function_that_raises_is_found() -> None:
    """With the object, the function and the cause."""

    def divides(old: Few) -> Many:
        return Many(spec=ManySpec(size=64 // (old.spec.count or 0) % 64))

    found = _failure(round_trips(_operator(divides)))
    assert (
        "Many v1alpha1 to v1: Many default/drawn: cannot convert v1alpha1 to v1: divides raised ZeroDivisionError"
        in found
    )


def test_object_that_the_other_version_refuses_is_found() -> None:
    """It could be read, but never be updated; users may accept that."""

    def unlimited(old: Few) -> Many:
        return Many(spec=ManySpec(size=old.spec.count))

    operator = _operator(unlimited)
    found = _failure(round_trips(operator))
    assert "expected an object that v1 accepts, but its schema refuses: spec.size" in found
    assert "check_schema=False" in found
    assert not _failure(round_trips(operator, check_schema=False))


def test_function_that_depends_on_more_than_the_object_is_found() -> None:
    """Kept fields fit only what a function returns each time."""
    numbers = count()

    def counting(new: Many) -> Few:
        return Few(spec=FewSpec(count=next(numbers)))

    found = _failure(round_trips(_operator(down=counting)))
    assert "these changed: spec.count" in found or "expected the same object, got another one" in found


def test_operator_without_conversions_is_refused() -> None:
    """A test that tests nothing would pass."""
    with pytest.raises(DefinitionError, match="expected conversions, got none"):
        round_trips(Operator("nothing"))


def test_missing_hypothesis_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no dependency of navarch."""
    from navarch import testing

    monkeypatch.delitem(sys.modules, "navarch.testing.round_trip_tests")
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(ImportError, match="needs hypothesis, which is not installed: pip install hypothesis"):
        getattr(testing, "round_trips")  # noqa: B009 - the import is what fails


@examples(200)
@given(drawn_objects(Many, schema_of(Many)))
def test_drawn_objects_are_valid(value: Any) -> None:
    """As the server would find them."""
    schema = Schema(schema_of(Many))
    assert schema.admit(value) == []
    assert schema.validate(value) == []
