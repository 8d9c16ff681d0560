"""Structs of a schema: what is sent, what is not, and what a class may say."""

import dataclasses
import functools
import types
from typing import Any, ClassVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from navarch.api import Model, OneOf, Rule, Spec, Status, decode, encode, field
from navarch.api.model import fields_of, required_fields
from navarch.errors import DefinitionError
from navarch.k8s.core.v1 import ContainerPort, Service, ServiceSpec


class Storage(Model):
    limit: ClassVar[int] = 7
    size_gib: int = 1
    class_name: str | None = None
    zones: list[str] = []
    options: dict[str, int] = {"a": 1}
    ip: str = field(name="clusterIP", default="none")
    made: list[int] = field(default_factory=lambda: [1])


def test_default_is_sent_and_none_is_not() -> None:
    """Server-side apply would give a field up that is left out because it equals its default."""
    assert decode(dict, encode(Storage())) == {
        "sizeGib": 1,
        "zones": [],
        "options": {"a": 1},
        "clusterIP": "none",
        "made": [1],
    }


@given(st.integers(-5, 5), st.none() | st.text(), st.lists(st.text()))
def test_field_is_sent_if_and_only_if_it_has_a_value(size: int, name: str | None, zones: list[str]) -> None:
    """Whatever the value; and it comes back the same."""
    storage = Storage(size_gib=size, class_name=name, zones=zones)
    wire = decode(dict, encode(storage))
    assert wire["sizeGib"] == size
    assert wire["zones"] == zones
    assert ("className" in wire) == (name is not None)
    assert decode(Storage, encode(storage)) == storage


def test_each_object_has_its_own_defaults() -> None:
    """A mutable default is copied for each."""
    first, second = Storage(), Storage()
    first.zones.append("a")
    first.options["b"] = 2
    first.made.append(2)
    assert second == Storage()


def test_class_variables_are_no_fields() -> None:
    """However they are written."""
    assert Storage.limit == 7
    assert "limit" not in Storage.__struct_fields__


def test_fields_are_keywords() -> None:
    """A positional argument is a mistake."""
    with pytest.raises(TypeError):
        Storage(1)  # type: ignore[call-arg]


def test_unset_raw_field_is_not_sent() -> None:
    """Bytes that were never there do not become null."""

    class Kept(Model):
        raw: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET

    assert encode(Kept()) == b"{}"
    assert encode(Kept(raw=msgspec.Raw(b'{"a": 1}'))) == b'{"raw":{"a": 1}}'


def test_subclass_keeps_defaults_and_rules() -> None:
    """Of every class above it."""

    class Base(Spec, rules=(Rule("self.a > 0"),)):
        a: int = 1

    class Derived(Base, rules=(Rule("self.b > 0"),), one_of=(OneOf("a", "b"),)):
        b: int = 2

    assert encode(Derived()) == b'{"a":1,"b":2}'
    assert [rule.expression for rule in Derived.__rules__] == ["self.a > 0", "self.b > 0"]
    assert Derived.__one_of__ == (OneOf("a", "b"),)
    assert Base.__one_of__ == ()


@pytest.mark.parametrize("rules", [Rule("self.a > 0"), [Rule("self.a > 0")], ("self.a > 0",), "self.a > 0"])
def test_rules_that_are_no_tuple_of_rules_are_refused(rules: Any) -> None:
    """The forgotten comma, told with the remedy."""
    with pytest.raises(
        DefinitionError, match=r"class Wrong: expected rules= to be a tuple of Rule.*write rules=\(Rule"
    ):

        class Wrong(Model, rules=rules): ...


def test_one_of_that_is_no_tuple_is_refused() -> None:
    """The same for groups of fields."""
    with pytest.raises(DefinitionError, match=r"write one_of=\(OneOf"):

        class Wrong(Model, one_of=OneOf("a")): ...


@pytest.mark.parametrize(
    "value",
    [1, None, "a", [], {"a": 1}, field(default=1), Storage()],
    ids=["number", "none", "text", "list", "mapping", "field", "model"],
)
def test_value_without_a_type_is_refused(value: Any) -> None:
    """It would be no field, without a word."""
    with pytest.raises(DefinitionError, match=r"class Wrong: expected a type for size, got .*write `size: "):

        class Wrong(Model):
            size = value


def test_what_is_no_value_needs_no_type() -> None:
    """Methods, properties, nested classes, aliases of types, and what is private."""

    class Rich(Model):
        _known = 1
        Names = list[str]

        class Inner(Model):
            a: int = 1

        @property
        def twice(self) -> int:
            return 2

        @classmethod
        def make(cls) -> "Rich":
            return cls()

        @staticmethod
        def three() -> int:
            return 3

        @functools.cached_property
        def four(self) -> int:
            return 4

        five = lambda self: 5  # noqa: E731 - one more way to write a method

    assert Rich.__struct_fields__ == ()


def test_two_fields_of_one_wire_name_are_refused() -> None:
    """Whether both are written here, one comes from above, or one was renamed."""
    with pytest.raises(DefinitionError, match=r"class Wrong: .* got 'fooBar' for both fooBar and foo_bar; rename one"):

        class Wrong(Model):
            fooBar: int = 1  # noqa: N815
            foo_bar: int = 2

    with pytest.raises(DefinitionError, match=r"class Below: .* got 'sizeGib' for both size_gib and gib"):

        class Below(Storage):
            gib: int = field(name="sizeGib")


def test_required_fields_are_those_without_a_default() -> None:
    """A default of None is one."""

    class Needs(Spec):
        a: int
        b: int = 1
        c: str | None = None
        d: list[str] = field(name="dd")

    assert set(required_fields(Needs)) == {"a", "d"}
    assert {info.name for info in fields_of(Needs) if info.required} == {"a", "d"}


def test_status_comes_with_generation_and_conditions() -> None:
    """A subclass adds its own."""

    class MyStatus(Status):
        nodes: list[str] = []

    assert encode(MyStatus(observed_generation=3)) == b'{"observedGeneration":3,"conditions":[],"nodes":[]}'


class Counting:
    """What several models can do, as a plain class."""

    unit: ClassVar[str] = "pods"
    size: int

    def words(self) -> str:
        """How many of what."""
        return f"{self.size} {self.unit}"


def test_plain_class_gives_methods_to_models() -> None:
    """And to models of those; what it says of their fields is only a hint for type checkers."""

    class Counted(Counting, Model):
        size: int = 3

    class Named(Counted):
        name: str = "a"

    assert Named().words() == "3 pods"
    assert decode(Named, encode(Named(size=4))) == Named(size=4)


@pytest.mark.parametrize("mixin", [Counting, dataclasses.make_dataclass("Counting", [("size", int, 1)])])
def test_field_that_a_plain_class_declares_is_refused(mixin: type) -> None:
    """It would be no field of the model, without a word."""
    with pytest.raises(
        DefinitionError, match=r"expected the field size in a Model, got it in Counting, .* Counting\(Model\)"
    ):
        types.new_class("Wrong", (mixin, Model))


@pytest.mark.parametrize(
    ("kind", "keyword", "told"),
    [
        (ServiceSpec, "clusterIP", "ServiceSpec calls it cluster_ip="),
        (ServiceSpec, "selectors", "ServiceSpec calls it selector="),
        (ContainerPort, "zzz", "ContainerPort has container_port, host_ip"),
        (Service, "spek", "Service calls it spec="),
    ],
)
def test_misspelt_keyword_is_told_with_the_right_one(kind: Any, keyword: str, told: str) -> None:
    """By its name on the wire, or by one that looks like it."""
    with pytest.raises(TypeError, match=told):
        kind(**{keyword: None})
