"""A regular expression costs what its program and the text allow, and a request has a budget for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from security.test_cel_cost import (
    ADMISSION,
    CALL_LIMIT,
    CPU_SECONDS,
    CRDS,
    MAPS,
    OUT_OF_BUDGET,
    THINGS,
    World,
    bind,
    config_map,
    definition,
    thing,
    validating,
)

LARGE_PROGRAMS = {
    "optional parts": "(a?){990}b",
    "optional parts, written out": "a?" * 2000 + "b",
    "any characters": "(.?){900}b",
    "nested counts": "((((a?a?a?a?){4}){4}){4}){3}b",
    "stars": "(?:a*c*)" * 500 + "b",
    "states that cannot be told apart": "(a|c)*a((a|c){900}(a|c){900})?b",
}
TEXT = "ac" * 66_000


@pytest.fixture
def world() -> Iterator[World]:
    with asyncio.Runner() as runner:
        made = World(runner)
        runner.run(made.cluster.__aenter__())
        yield made
        runner.run(made.cluster.__aexit__(None, None, None))


def assert_refused(sent: tuple[int, dict[str, Any], float]) -> None:
    status, answer, seconds = sent
    assert (status, answer["reason"]) == (413, "RequestEntityTooLarge"), answer
    assert "regular expressions" in answer["message"]
    assert seconds < CPU_SECONDS


@pytest.mark.parametrize("pattern", LARGE_PROGRAMS.values(), ids=LARGE_PROGRAMS.keys())
def test_large_program_does_not_meet_a_long_text(world: World, pattern: str) -> None:
    """The product of both is charged; either alone is served."""
    world.define(definition({"type": "string", "pattern": pattern}))
    assert_refused(world.send("POST", THINGS, thing(TEXT)))
    status, answer, _ = world.send("POST", THINGS, thing("ab"))
    assert status == 201, answer


def test_large_program_does_not_meet_many_texts(world: World) -> None:
    """The budget is one for the whole request."""
    item = {"type": "string", "pattern": LARGE_PROGRAMS["optional parts"]}
    world.define(definition({"type": "array", "items": item}))
    assert_refused(world.send("POST", THINGS, thing(["a" * 1000] * 500)))


def test_many_patterns_do_not_meet_one_text(world: World) -> None:
    """Each part of a junctor is charged."""
    parts = [{"pattern": f"(a?){{300}}b{number}"} for number in range(100)]
    world.define(definition({"type": "string", "anyOf": parts}))
    assert_refused(world.send("POST", THINGS, thing("a" * 10_000)))


def test_patch_of_a_status_is_charged_too(world: World) -> None:
    """Whichever subresource the text comes through."""
    crd = definition({"type": "string"})
    version = crd["spec"]["versions"][0]
    version["subresources"] = {"status": {}}
    version["schema"]["openAPIV3Schema"]["properties"]["status"] = {
        "type": "object",
        "properties": {"text": {"type": "string", "pattern": LARGE_PROGRAMS["optional parts"]}},
    }
    world.define(crd)
    world.create(THINGS, thing("a"))
    path = f"{THINGS}/victim/status"
    status, stored, _ = world.send("GET", path)
    assert status == 200, stored
    assert_refused(world.send("PUT", path, stored | {"status": {"text": TEXT}}))


def test_default_of_a_crd_is_charged(world: World) -> None:
    """It meets its pattern when the CRD is created."""
    schema = {"type": "string", "pattern": LARGE_PROGRAMS["optional parts"], "default": TEXT + "b"}
    assert_refused(world.send("POST", CRDS, definition(schema)))


@pytest.mark.parametrize("pattern", ["\\pL{{30}}{}", "\\pL{{100}}{}", "(a?){{900}}{}"])
def test_very_many_patterns_of_a_crd_are_refused(world: World, pattern: str) -> None:
    """Their compilation takes up to a hundredth of a second each, also of those that become too large."""
    fields = {f"f{number}": {"type": "string", "pattern": pattern.format(number)} for number in range(2000)}
    assert_refused(world.send("POST", CRDS, definition({"type": "object", "properties": fields})))


def test_very_long_pattern_is_invalid(world: World) -> None:
    """RE2 would take quadratic time."""
    status, answer, seconds = world.send("POST", CRDS, definition({"type": "string", "pattern": "a?" * 30_000}))
    assert (status, answer["reason"]) == (422, "Invalid"), answer
    assert "expected at most 4096 characters" in answer["message"]
    assert seconds < 1


def test_very_many_patterns_of_a_policy_are_refused(world: World) -> None:
    """A short constant of an expression may take long to compile, too."""
    parts = [f"'a'.matches('\\\\pL{{30}}{number}')" for number in range(500)]
    policy = validating(validations=[{"expression": " || ".join(parts)}])
    assert_refused(world.send("POST", f"{ADMISSION}/validatingadmissionpolicies", policy))


@pytest.mark.parametrize("pattern", LARGE_PROGRAMS.values(), ids=LARGE_PROGRAMS.keys())
@pytest.mark.parametrize("given", ["constant", "computed"])
def test_policy_that_matches_a_large_program_is_stopped(world: World, pattern: str, given: str) -> None:
    """Its cost grows with the program, not only with the pattern."""
    shown = f"'{pattern}'" if given == "constant" else f"('{pattern}' + object.data['end'])"
    expression = f"object.data['text'].matches({shown}) || true"
    bind(world, validating(validations=[{"expression": expression}]))
    data = {"data": {"text": TEXT, "end": "d"}}
    status, answer, seconds = world.send("POST", MAPS, config_map() | data)
    assert status == 422, answer
    assert CALL_LIMIT in answer["message"] or OUT_OF_BUDGET in answer["message"]
    assert seconds < CPU_SECONDS


def test_usual_patterns_are_served(world: World) -> None:
    """Thousands of names and long texts are far below the budget."""
    name = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
    names = {"type": "array", "items": {"type": "string", "pattern": name, "maxLength": 253}}
    text = {"type": "string", "pattern": "^(.|\\n)+$"}
    world.define(definition({"type": "object", "properties": {"names": names, "text": text}}))
    world.create(THINGS, thing({"names": ["a-name.example.com"] * 5000, "text": "line\n" * 50_000}))
