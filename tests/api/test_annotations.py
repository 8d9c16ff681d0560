"""Annotations that name what cannot be found are told with their place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pytest

from navarch.api import Model, Resource, Spec, Status, decode, from_builtins
from navarch.api.model import fields_of
from navarch.api.model_shape import shape_of
from navarch.errors import DefinitionError
from navarch.schema import crd

if TYPE_CHECKING:
    from elsewhere import Affinity  # type: ignore[import-not-found]

T = TypeVar("T")


class Placement(Model):
    affinity: Affinity | None = None


class PostgresSpec(Spec):
    placement: list[Placement] = []


class Postgres(Resource[PostgresSpec, Status], group="example.com", version="v1"): ...


class Box(Model, Generic[T]):
    held: T
    affinity: dict[str, Affinity] = {}


class Crate(Model):
    box_or_its_name: Box[int] | str = ""


USES: dict[str, Any] = {
    "fields": lambda: fields_of(Placement),
    "decode": lambda: Postgres.from_json(b"{}"),
    "decode a list": lambda: decode(list[Postgres], b"[]"),
    "from builtins": lambda: from_builtins(Postgres, {}),
    "copy": lambda: Postgres(name="a").copy(),
    "shape": lambda: shape_of(Postgres),
    "crd": lambda: crd(Postgres),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_name_that_is_imported_for_type_checkers_only_is_refused(use: Any) -> None:
    """Whatever looks at the annotations first; without a trace of how they are looked at."""
    with pytest.raises(DefinitionError) as caught:
        use()
    assert str(caught.value) == (
        "class Placement, field affinity: expected a type, got the name 'Affinity' that is not defined at module level; "
        "import it outside TYPE_CHECKING, or define it in the module"
    )
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert caught.value.__cause__ is None


def test_class_inside_a_function_is_refused() -> None:
    """Its name means nothing outside; the error says so."""

    class Inner(Model):
        a: int = 1

    class Outer(Model):
        inner: Inner | None = None

    with pytest.raises(
        DefinitionError, match=r"class Outer, field inner: .*'Inner' that is not defined at module level"
    ):
        decode(Outer, b"{}")


def test_generic_class_is_named_too() -> None:
    """By the class that was parametrized."""
    with pytest.raises(DefinitionError, match="class Box, field affinity"):
        fields_of(Box[int])


def test_name_out_of_reach_of_a_shape_is_still_told() -> None:
    """With the type that was to be decoded."""
    with pytest.raises(DefinitionError, match=r"Crate: expected a type, got the name 'Affinity'"):
        decode(Crate, b"{}")
