"""Checks of conditions in the form that all kinds share."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from navarch.cluster.server.kinds.builtin.checks.common import choice, label_name, unique
from navarch.cluster.server.wire.causes import invalid, required
from navarch.cluster.server.wire.request import Json
from navarch.errors import Cause

__all__ = ["check_conditions"]

_STATUSES: Final = ("False", "True", "Unknown")
_REASON: Final = r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON_SENTENCE: Final = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters "
    "or '_,:', and must end with an alphanumeric character or '_' "
    f"(e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', "
    f"regex used for validation is '{_REASON}')"
)


def check_conditions(conditions: Sequence[Json], path: str) -> Iterator[Cause]:
    """What each has to say, and no type twice."""
    yield from unique((each.get("type", ""), f"{path}[{index}].type") for index, each in enumerate(conditions))
    for index, each in enumerate(conditions):
        yield from _check_condition(each, f"{path}[{index}]")


def _check_condition(condition: Json, path: str) -> Iterator[Cause]:
    yield from label_name(condition.get("type", ""), f"{path}.type")
    yield from choice(condition.get("status", ""), f"{path}.status", _STATUSES)
    if condition.get("observedGeneration", 0) < 0:
        yield invalid(
            f"{path}.observedGeneration", condition["observedGeneration"], "must be greater than or equal to zero"
        )
    if not condition.get("lastTransitionTime"):
        yield required(f"{path}.lastTransitionTime")
    if not condition.get("reason"):
        yield required(f"{path}.reason")
    elif not re.fullmatch(_REASON, condition["reason"]):
        yield invalid(f"{path}.reason", condition["reason"], _REASON_SENTENCE)
