"""Objects of every kind, as the real server stored, showed and refused them."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from cluster.builtin.preparing import cells, created, replaced, resource_of
from cluster.builtin.record import DATA, cases, comparable, manifests, told

Json = dict[str, Any]

ANSWERS: list[Json] = json.loads((DATA / "answers.json").read_bytes())
REFUSALS: list[Json] = json.loads((DATA / "refusals.json").read_bytes())
ROWS: list[Json] = json.loads((DATA / "rows.json").read_bytes())
JUDGED = frozenset({200, 201, 422})
"""The rest is for those who judge before a strategy does: the core and admission."""


def _title(value: Json) -> str:
    return f"{value['kind']}-{value['metadata'].get('name', '')}"


@pytest.mark.parametrize(
    ("sent", "answer"), [*zip(manifests(), ANSWERS, strict=True)], ids=[_title(each) for each in manifests()]
)
def test_a_new_object_is_stored_as_the_real_server_stores_it(sent: Json, answer: Json) -> None:
    """Normal form, defaults, fields that the server sets, and warnings are the recorded ones."""
    metadata = answer["object"]["metadata"]
    value, faults, warnings = created(sent, metadata["creationTimestamp"], metadata["uid"])
    assert not faults
    assert comparable(value) == comparable(answer["object"])
    assert warnings == answer["warnings"]


@pytest.mark.parametrize("answer", ANSWERS, ids=[_title(each["object"]) for each in ANSWERS])
def test_a_new_object_has_the_row_that_the_real_server_shows(answer: Json) -> None:
    """The cells are those of `kubectl get -o wide`."""
    assert cells(answer["object"]) == answer["cells"]


@pytest.mark.parametrize("answer", ROWS, ids=[_title(each["object"]) for each in ROWS])
def test_an_object_with_a_status_has_the_row_that_the_real_server_shows(answer: Json) -> None:
    """The cells that depend on the status are the recorded ones."""
    assert cells(answer["object"]) == answer["cells"]


@pytest.mark.parametrize(
    ("case", "answer"), [*zip(cases(), REFUSALS, strict=True)], ids=[str(i) for i in range(len(REFUSALS))]
)
def test_an_object_is_refused_as_the_real_server_refuses_it(case: Json, answer: Json) -> None:
    """Every cause has the recorded field, reason and message; nothing is refused that the real server accepts."""
    if answer["code"] not in JUDGED:
        return
    sent = {name: part for name, part in case.items() if name != "update"}
    value, faults, warnings = replaced(sent, case["update"]) if "update" in case else created(sent)
    expected = {(field, reason, told(message)) for field, reason, message in answer.get("causes", ())}
    assert {(fault.field, fault.reason, told(fault.message)) for fault in faults} == expected
    if not expected:
        assert warnings == answer.get("warnings", [])
        assert value["metadata"].get("generation", 0) == answer.get("generation", 0)


@pytest.mark.parametrize("answer", ANSWERS, ids=[_title(each["object"]) for each in ANSWERS])
def test_what_was_stored_is_left_as_it_is_by_defaults(answer: Json) -> None:
    """An object that is sent back unchanged does not change."""
    value = copy.deepcopy(answer["object"])
    resource_of(value).strategy.default(value)
    assert value == answer["object"]
