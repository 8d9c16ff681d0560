"""Objects to bytes and back: as lenient as Kubernetes is, and precise about what is wrong."""

import contextlib
import enum
from datetime import datetime
from typing import Any, Literal, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from navarch.api import ManagedFields, Model, Resource, Spec, Status, decode, encode, from_builtins, to_builtins
from navarch.errors import DecodeError, InvalidValueError, MalformedJsonError


class Port(Model):
    number: int
    name: str
    public: bool
    weight: float
    tags: list[str]
    limits: dict[str, int]
    alias: str | None = None


class ServiceSpec(Spec):
    ports: list[Port] = []
    main: Port | None = None
    maybe: int | None
    replicas: int = 3


class Service(Resource[ServiceSpec, Status], group="example.com", version="v1"): ...


def read(spec: str, name: str = "web") -> Service:
    return Service.from_json(f'{{"metadata":{{"name":"{name}","namespace":"shop"}},"spec":{spec}}}'.encode())


ZERO = Port(number=0, name="", public=False, weight=0.0, tags=[], limits={})


@pytest.mark.parametrize("port", ["{}", '{"number":null,"tags":null,"limits":null,"name":null}'])
def test_missing_and_null_fields_are_what_a_go_server_means_by_them(port: str) -> None:
    """Zero values: it leaves out what is empty, or sends null for it."""
    assert read(f'{{"ports":[{port}],"maybe":1}}').spec.ports == [ZERO]


def test_null_list_and_null_struct_are_empty_and_unset() -> None:
    """At every depth."""
    spec = read('{"ports":null,"main":null,"maybe":1,"replicas":null}').spec
    assert (spec.ports, spec.main, spec.replicas) == ([], None, 3)
    assert read('{"ports":[null,{}],"maybe":1}').spec.ports == [ZERO]


def test_null_that_the_model_allows_stays_null() -> None:
    """Also where something else has to be filled in."""
    spec = read('{"ports":[{}],"maybe":null}').spec
    assert spec.maybe is None
    assert spec.ports == [ZERO]


def test_missing_spec_has_the_zero_values_of_its_fields() -> None:
    """As an object that was created without one."""
    assert Service.from_json(b'{"metadata":{"name":"a"}}').spec == ServiceSpec(maybe=None)


@pytest.mark.parametrize(
    ("spec", "place", "fault"),
    [
        ('{"maybe":"many"}', "$.spec.maybe", "Expected `int | null`, got `str`"),
        ('{"maybe":1,"ports":[{"number":"x"}]}', "$.spec.ports[0].number", "Expected `int`, got `str`"),
        ('{"ports":null,"maybe":"many"}', "$.spec.maybe", "Expected `int | null`, got `str`"),
        ('{"maybe":1,"ports":{}}', "$.spec.ports", "Expected `array`, got `object`"),
        ("[]", "$.spec", "Expected `object`, got `array`"),
    ],
)
def test_error_names_the_object_the_place_and_the_fault(spec: str, place: str, fault: str) -> None:
    """So that it can be found among thousands."""
    with pytest.raises(DecodeError) as caught:
        read(spec)
    text = str(caught.value)
    assert text.startswith("expected Service shop/web: ")
    assert place in text
    assert fault in text


class Sync(enum.Enum):
    ON = "On"
    OFF = "Off"


class ReplicaSpec(Spec):
    sync: Sync = Sync.ON
    modes: list[Literal["a", "b"]] = []
    places: dict[str, Sync | None] = {}
    only: Literal[1] | None = None


class NeedySpec(Spec):
    mode: Literal["a", "b"]
    since: datetime


class Replica(Resource[ReplicaSpec, None], group="example.com", version="v1"): ...


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ('{"sync":"Quorum"}', "expected one of 'On', 'Off', got 'Quorum' - at `$.spec.sync`"),
        ('{"modes":["a","c"]}', "expected one of 'a', 'b', got 'c' - at `$.spec.modes[1]`"),
        ('{"places":{"x.y":"Q"}}', "expected one of 'On', 'Off', got 'Q' - at `$.spec.places[...]`"),
        ('{"only":2}', "expected 1, got 2 - at `$.spec.only`"),
    ],
)
def test_error_about_a_choice_tells_what_is_allowed(spec: str, fault: str) -> None:
    """Wherever it stands."""
    with pytest.raises(DecodeError) as caught:
        Replica.from_json(f'{{"metadata":{{"name":"a"}},"spec":{spec}}}'.encode())
    assert str(caught.value) == f"expected Replica a: {fault}"


def test_error_about_another_kind_tells_both() -> None:
    """In the words of a manifest."""
    with pytest.raises(DecodeError, match=r"^expected Replica a: expected apiVersion example.com/v1, got v1$"):
        Replica.from_json(b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}')
    with pytest.raises(DecodeError, match=r"^expected Replica: expected kind Replica, got Pod$"):
        Replica.from_json(b'{"apiVersion":"example.com/v1","kind":"Pod"}')


def test_missing_field_without_a_zero_value_is_told_as_missing() -> None:
    """Not as the null that would stand in for it."""
    with pytest.raises(DecodeError, match="missing required field `since`"):
        decode(NeedySpec, b'{"mode":"a"}')
    with pytest.raises(DecodeError, match="missing required field `mode`"):
        decode(NeedySpec, b'{"mode":null,"since":"2030-01-01T00:00:00Z"}')


def test_error_shows_no_machinery() -> None:
    """The decoder's own error says nothing more."""
    with pytest.raises(DecodeError) as caught:
        read('{"maybe":"many"}')
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


MALFORMED = [b"", b" ", b"{", b'{"a":', b"<html>", b"\xff\xfe", b'{"kind":"\xff"}', b"[" * 100_000, b'{"a":1}}', b"nul",
             b'{"metadata":7, "x', b'{"metadata":7, "x":"\xff"}', b'{"metadata":7,"x":' + b"[" * 100_000]  # fmt: skip


@pytest.mark.parametrize("data", MALFORMED, ids=range(len(MALFORMED)))
def test_bytes_that_are_no_json_are_told_apart(data: bytes) -> None:
    """Also where the fault comes behind a field that does not fit; the text tells how much came, not what."""
    with pytest.raises(MalformedJsonError, match="expected JSON of Service, got"):
        Service.from_json(data)


def test_error_about_text_does_not_carry_the_text() -> None:
    """Python's own error about bytes that are no text has all of them in its repr."""
    with pytest.raises(MalformedJsonError) as caught:
        Service.from_json(b'{"metadata":{"name":"hunter2\xff"}}')
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert "hunter2" not in str(caught.value)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON)
def test_json_comes_back_as_it_was(value: Any) -> None:
    """Any of it."""
    assert decode(dict[str, Any], encode({"value": value})) == {"value": value}


@given(st.binary(max_size=40) | JSON.map(encode))
def test_whatever_comes_is_an_object_or_an_error_of_ours(data: bytes) -> None:
    """Nothing else leaves the decoder."""
    with contextlib.suppress(DecodeError):
        assert isinstance(Service.from_json(data), Service)


@given(st.builds(ServiceSpec, maybe=st.none() | st.integers(0, 9), ports=st.lists(st.just(ZERO), max_size=2)))
def test_builtins_and_back_is_the_same(spec: ServiceSpec) -> None:
    """In the wire's own names."""
    assert from_builtins(ServiceSpec, to_builtins(spec)) == spec


@pytest.mark.parametrize(
    "value", [object(), {"a": {1j}}, "\ud800", {(1, 2): 3}], ids=["object", "complex", "surrogate", "tuple"]
)
def test_value_that_json_cannot_hold_is_refused(value: Any) -> None:
    """Before anything is sent."""
    with pytest.raises(InvalidValueError, match="expected a value that JSON can hold"):
        encode(value)


@pytest.mark.parametrize(
    ("value", "place", "fault"),
    [
        (object(), "$", "got object"),
        ({"a": [1, {"b": 1j}]}, "$.a[1].b", "got complex"),
        ({"a": {"b": {(1, 2): 3}}}, "$.a.b", "got tuple"),
        (Replica(name="x", spec=ReplicaSpec(modes=["a", cast(Any, "\ud800")])), "$.spec.modes[1]", "surrogates"),
        (Replica(name="x", labels={"a": cast(Any, object())}), "$.metadata.labels.a", "got object"),
        (ManagedFields(subresource=cast(Any, 1j)), "$.subresource", "got complex"),
        ([ManagedFields(), 1j], "$[1]", "got complex"),
    ],
    ids=["itself", "list", "keys", "text", "label", "raw", "after unset"],
)
def test_error_about_what_json_cannot_hold_names_the_place(value: Any, place: str, fault: str) -> None:
    """In the wire's names, and not the value: it may be a secret."""
    with pytest.raises(InvalidValueError) as caught:
        encode(value)
    text = str(caught.value)
    assert text.startswith("expected a value that JSON can hold: ")
    assert text.endswith(f" - at `{place}`")
    assert fault in text


def test_value_that_holds_itself_is_refused() -> None:
    """It has no end."""
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(InvalidValueError):
        encode(endless)
