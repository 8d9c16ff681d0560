"""Requests one after another, and their answers without what differs from run to run."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from navarch._base.clock import SystemClock

__all__ = ["MERGE", "TABLE", "Ask", "Json", "Step", "held"]

Json = dict[str, Any]
Ask = Callable[..., Awaitable[tuple[int, Json]]]
MERGE = "application/merge-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
_TRIES = 6000


@dataclass(frozen=True)
class Step:
    """One request. With `change` its body is what is at `path` now, changed. With `until` it is asked again until then."""

    name: str
    method: str
    path: str
    body: Any = None
    media_type: str = "application/json"
    accept: str = "application/json"
    change: Callable[[Json], object] | None = None
    until: Callable[[int, Json], bool] | None = None


async def held(ask: Ask, steps: list[Step]) -> dict[str, Any]:
    """Returns the normalised answer to each step; a step without a name only waits, and is not recorded."""
    answers: dict[str, Any] = {}
    for step in steps:
        answer = await _asked(ask, step)
        if step.name:
            answers[step.name] = normal(*answer)
    return answers


async def _asked(ask: Ask, step: Step) -> tuple[int, Json]:
    clock, body = SystemClock(), step.body
    if step.change is not None:
        _, body = await ask("GET", step.path.split("?")[0])
        step.change(body)
    for _ in range(_TRIES):
        answer = await ask(step.method, step.path, body, media_type=step.media_type, accept=step.accept)
        if step.until is None or step.until(*answer):
            return answer
        await clock.sleep(0.01)
    raise AssertionError(f"expected {step.name} in time, got {answer}")


_VARYING = {"uid": "a uid", "resourceVersion": "a version", "creationTimestamp": "a time"}
_VARYING |= {"deletionTimestamp": "a time", "lastTransitionTime": "a time", "time": "a time"}
_AGE = re.compile(r"\d+[smhdy](\d+[smhd])?")


def normal(code: int, answer: Json) -> Json:
    """An answer without ids, times, descriptions of columns, and the order in which faults were found."""
    if answer.get("kind") == "Status":
        return {"code": code, **_status(answer)}
    if answer.get("kind") == "Table":
        return {"code": code, "columns": [_column(each) for each in answer["columnDefinitions"]], **_rows(answer)}
    return {"code": code, "object": _normal(answer)} if answer else {"code": code}


def _status(answer: Json) -> Json:
    details = answer.get("details", {})
    causes = sorted(details.get("causes", ()), key=str)
    said = answer.get("message", "") if len(causes) < 2 else answer["message"].partition(" is invalid: ")[0]
    found = {"message": said, "reason": answer.get("reason", ""), "causes": causes}
    found |= {name: details[name] for name in ("name", "group", "kind") if name in details}
    return {name: value for name, value in found.items() if value}


def _column(column: Json) -> Json:
    return {name: value for name, value in column.items() if name != "description"}


def _rows(answer: Json) -> Json:
    rows = [
        ["an age" if isinstance(cell, str) and _AGE.fullmatch(cell) else cell for cell in row["cells"]]
        for row in answer["rows"]
    ]
    return {"rows": rows}


def _normal(value: Any) -> Any:
    if isinstance(value, list):
        return [_normal(item) for item in value]
    if not isinstance(value, dict):
        return value
    made = {key: _VARYING[key] if key in _VARYING and item else _normal(item) for key, item in value.items()}
    if isinstance(value.get("managedFields"), list):
        made["managedFields"] = sorted(made["managedFields"], key=lambda each: json.dumps(each, sort_keys=True))
    return made
