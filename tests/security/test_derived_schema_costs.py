"""What a CRD and an object of it are made into costs about as much as they are long: nothing is multiplied unseen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from security.test_cel_cost import CRDS, THINGS, World, definition, thing

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
FLOOR = 0.1
"""CPU seconds below which a ratio says nothing."""


@pytest.fixture
def world() -> Iterator[World]:
    with asyncio.Runner() as runner:
        made = World(runner)
        runner.run(made.cluster.__aenter__())
        yield made
        runner.run(made.cluster.__aexit__(None, None, None))


def assert_proportional(cost: Callable[[int], float], size: int) -> None:
    """Four times the size may cost eight times as much."""
    small, large = cost(size), cost(4 * size)
    assert large <= 8 * max(small, FLOOR), f"{small:.2f} s for {size}, {large:.2f} s for {4 * size}"


def named(plural: str, crd: dict[str, Any]) -> dict[str, Any]:
    crd["metadata"]["name"] = f"{plural}.example.com"
    crd["spec"]["names"] = {"plural": plural, "kind": plural.capitalize()}
    return crd


@pytest.mark.parametrize("junctor", ["not", "allOf", "anyOf", "oneOf"])
def test_nested_junctors_compile_once(world: World, junctor: str) -> None:
    """Each part is compiled for itself, not for each type and again for each part around it."""

    def cost(depth: int) -> float:
        part: dict[str, Any] = {"pattern": "a"}
        for _ in range(depth):
            part = {junctor: part} if junctor == "not" else {junctor: [part]}
        status, answer, seconds = world.send("POST", CRDS, named(f"d{depth}", definition({"type": "string", **part})))
        assert status == 201, answer
        return seconds

    cost(0)
    assert cost(6) <= 8 * max(cost(1), FLOOR)


def test_list_of_openapi_documents_makes_each_of_them_once(world: World) -> None:
    """A CRD with many versions has as many documents; everybody may ask for their list."""
    world.send("GET", "/openapi/v3")
    _, _, before = world.send("GET", "/openapi/v3")
    crd = definition({"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(20)}})
    version = crd["spec"]["versions"][0]
    crd["spec"]["versions"] += [version | {"name": f"v{number}", "storage": False} for number in range(2, 101)]
    world.define(crd)
    status, answer, seconds = world.send("GET", "/openapi/v3")
    assert (status, "apis/example.com/v100" in answer["paths"]) == (200, True)
    assert seconds <= 8 * max(before, FLOOR)


def test_openapi_documents_follow_their_crds(world: World) -> None:
    """What is kept of a document is gone with the schema that it was made from."""
    world.define(definition({"type": "string", "description": "as it was"}))
    _, first, _ = world.send("GET", "/openapi/v3")
    world.define(named("others", definition({"type": "string"})), "/apis/example.com/v1/others")
    _, second, _ = world.send("GET", "/openapi/v3")
    assert first["paths"]["apis/example.com/v1"] != second["paths"]["apis/example.com/v1"]
    assert first["paths"]["apis/apps/v1"] == second["paths"]["apis/apps/v1"]
    _, document, _ = world.send("GET", "/openapi/v3/apis/example.com/v1")
    assert {"com.example.v1.Thing", "com.example.v1.Others"} <= document["components"]["schemas"].keys()


LIST_DEFAULT = {"x": {"type": "array", "items": {"type": "integer"}, "default": [1] * 1000}}
FIELD_DEFAULTS = {f"x{number}": {"type": "integer", "default": 1} for number in range(1000)}
NESTED_DEFAULT = {
    "x": {"type": "array", "items": {"type": "object", "properties": FIELD_DEFAULTS}, "default": [{}]},
}


@pytest.mark.parametrize("properties", [LIST_DEFAULT, FIELD_DEFAULTS, NESTED_DEFAULT], ids=["list", "fields", "nested"])
def test_defaults_count_as_values_of_the_request(world: World, properties: dict[str, Any]) -> None:
    """A short object may have room for many defaults; those that are usual are filled in."""
    world.define(definition({"type": "array", "items": {"type": "object", "properties": properties}}))
    status, answer, _ = world.send("POST", THINGS, thing([{}] * 300))
    assert (status, answer["reason"]) == (413, "RequestEntityTooLarge"), answer
    status, answer, _ = world.send("POST", THINGS, thing([{}] * 10))
    assert status == 201, answer
    assert len(answer["spec"]) == 10
    assert answer["spec"][0]["x"] if "x" in properties else answer["spec"][0]["x0"]


OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def with_columns(paths: list[str]) -> dict[str, Any]:
    crd = definition(OPEN)
    crd["spec"]["versions"][0]["additionalPrinterColumns"] = [
        {"name": f"c{number}", "type": "string", "jsonPath": path} for number, path in enumerate(paths)
    ]
    return crd


def test_column_with_nested_filters_is_empty(world: World) -> None:
    """The kind is served all the same, and filters that are not nested deep work."""
    nested = ".a"
    for _ in range(400):
        nested = f"[?(@{nested})]"
    world.define(with_columns([f".spec{nested}", ".spec.a[?(@.b==2)].c"]))
    world.create(THINGS, thing({"a": [{"b": 1, "c": "x"}, {"b": 2, "c": "y"}]}))
    status, answer, _ = world.send("GET", THINGS, accept=TABLE)
    assert (status, answer["rows"][0]["cells"]) == (200, ["victim", None, "y"])


def test_columns_of_a_row_look_at_a_bounded_number_of_items(world: World) -> None:
    """Each filter would look at the whole list."""
    world.define(with_columns([f".spec.a[?(@.b=={number})]" for number in range(200)]))
    world.create(THINGS, thing({"a": [{"b": -1}] * 15_000}))
    status, answer, seconds = world.send("GET", THINGS, accept=TABLE)
    assert (status, answer["rows"][0]["cells"][1:]) == (200, [None] * 200)
    assert seconds <= 8 * FLOOR


@pytest.mark.parametrize("inside", ["items", "additionalProperties"])
def test_unsupported_values_have_a_bounded_answer(world: World, inside: str) -> None:
    """The supported values are not repeated for each of very many faults; usual enums are told in full."""
    values = [f"value-{number:05}" for number in range(3000)]
    outer = {"items": "array", "additionalProperties": "object"}[inside]
    world.define(definition({"type": outer, inside: {"type": "string", "enum": values}}))

    def cost(faults: int) -> float:
        wrong: Any = ["x"] * faults if outer == "array" else {f"f{number}": "x" for number in range(faults)}
        status, answer, seconds = world.send("POST", THINGS, thing(wrong))
        assert (status, len(answer["details"]["causes"])) == (422, min(faults, 1000))
        assert len(json.dumps(answer)) < 5_000_000
        return seconds

    assert_proportional(cost, 2000)


def test_usual_enum_is_told_in_full(world: World) -> None:
    """Every fault names all values, as Kubernetes does it."""
    world.define(definition({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}))
    status, answer, _ = world.send("POST", THINGS, thing(["x", "y"]))
    messages = [cause["message"] for cause in answer["details"]["causes"]]
    told = 'Unsupported value: "{}": supported values: "a", "b"'
    assert (status, messages) == (422, [told.format("x"), told.format("y")])
