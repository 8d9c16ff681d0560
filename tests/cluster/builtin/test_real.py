"""What was recorded still holds."""

from __future__ import annotations

import json
from typing import Any

import pytest

import rig
from cluster.builtin.recording import DATA, Server, record
from cluster.builtin.test_answers import comparable, told

Json = dict[str, Any]


def _recorded(name: str) -> list[Json]:
    found: list[Json] = json.loads((DATA / f"{name}.json").read_bytes())
    return found


def _shape(entry: Json) -> Json:
    value = comparable(entry["object"])
    value["metadata"].pop("creationTimestamp", None)
    return {
        "object": value if value["kind"] not in {"Job", "PersistentVolume"} else None,
        "warnings": entry.get("warnings"),
    }


def _causes(entry: Json) -> Json:
    causes = sorted([field, reason, told(message)] for field, reason, message in entry.get("causes", ()))
    return {"code": entry["code"], "causes": causes, "warnings": entry.get("warnings"), "is": entry.get("generation")}


@pytest.mark.real
def test_the_real_server_answers_as_recorded() -> None:
    """The real server returns the recorded objects, warnings and causes, random values and times aside; it needs its own cluster."""
    with rig.running() as cluster:
        now = record(Server(cluster))
    assert [_shape(each) for each in now["answers"]] == [_shape(each) for each in _recorded("answers")]
    assert [_causes(each) for each in now["refusals"]] == [_causes(each) for each in _recorded("refusals")]
