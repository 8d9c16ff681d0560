"""CRDs looked at as the API server would; the same tables are put to a real one by the conformance tests."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from example_counts import examples
from navarch.schema import crd, definition_faults
from schema import kinds
from schema.definitions import BAD, BAD_BUT_TAKEN, GOOD, manifest


@pytest.mark.parametrize("case", BAD)
def test_a_bad_definition_has_a_fault_with_a_remedy(case: str) -> None:
    """The message says what was expected and what came, the remedy what to do."""
    faults = definition_faults(BAD[case])
    assert faults
    for fault in faults:
        assert fault.field.split(".")[0] in {"spec", "metadata"}
        assert fault.message.startswith("expected ")
        assert ", got " in fault.message
        assert fault.remedy


@pytest.mark.parametrize("case", [*GOOD, *BAD_BUT_TAKEN])
def test_a_definition_that_a_server_takes_has_no_fault(case: str) -> None:
    """However odd it is."""
    assert definition_faults((GOOD | BAD_BUT_TAKEN)[case]) == []


def test_a_definition_that_becomes_bad_has_a_fault() -> None:
    """A schema that was found sound once is not taken for sound after a change."""
    definition = manifest()
    assert definition_faults(definition) == []
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"] = {"type": "nothing"}
    assert definition_faults(definition)
    schema["properties"]["spec"] = {"type": "object"}
    assert definition_faults(definition) == []


def places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a document but its root."""
    for key, inner in document.items() if isinstance(document, dict) else enumerate(document):
        yield (*path, key)
        if isinstance(inner, dict | list):
            yield from places(inner, (*path, key))


EVERYTHING = crd(kinds.Everything)


@examples(300, derandomize=True, database=None, deadline=None)
@given(
    place=st.sampled_from(list(places(EVERYTHING))),
    value=st.sampled_from(["x", 3, 1.5, True, None, [], ["a"], [None], {}, {"a": 1}, {"a": None}]),
)
def test_any_document_gets_an_answer(place: tuple[Any, ...], value: Any) -> None:
    """Whatever stands in the place of a text, a list or an object is a fault or none, never an exception."""
    document = copy.deepcopy(EVERYTHING)
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    definition_faults(document)


def test_a_document_of_another_form_is_told_where() -> None:
    """Everything else is looked at only if the form is right."""
    document = manifest({"type": "object", "properties": {"size": {"type": ["integer"], "maxLength": True}}})
    document["spec"]["group"] = 3
    size = "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[size]"
    assert [str(fault) for fault in definition_faults(document)] == [
        "spec.group: expected a text, got 3; correct it",
        f"{size}.type: expected a text, got ['integer']; correct it",
        f"{size}.maxLength: expected an integer, got True; correct it",
    ]


def test_a_manifest_is_its_callers_own() -> None:
    """A change to it is not in the next one of the same class."""
    first, second = crd(kinds.Plain), crd(kinds.Plain)
    first["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"].clear()
    assert crd(kinds.Plain) == second


def test_null_is_nothing() -> None:
    """As on the server: a key without a value in YAML is a key that is not there."""
    document = manifest({"type": "object", "properties": {"size": {"type": "integer", "enum": None, "pattern": None}}})
    document["spec"]["names"]["shortNames"] = document["spec"]["conversion"] = None
    assert definition_faults(document) == []
