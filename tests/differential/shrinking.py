"""The shortest sequence that still shows a difference."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from differential.steps import OWN, Difference, Step

Attempt = Callable[[Sequence[Step]], Awaitable[Difference | None]]
"""What a sequence shows, in a place where nothing was before."""


async def shrunk(steps: Sequence[Step], difference: Difference, attempt: Attempt) -> tuple[list[Step], Difference]:
    """Fewer and smaller steps with a difference of the same sort, found by leaving out one thing after the other."""
    best, shown = list(steps), difference
    improved = True
    while improved:
        improved = False
        for candidate in _smaller(best):
            found = await attempt(candidate)
            if found is not None and _sort(found) == _sort(difference):
                best, shown, improved = candidate, found, True
                break
    return best, shown


def _sort(difference: Difference) -> str:
    """Where it is, but for the places in lists and the index of the step."""
    return re.sub(r"\[\d+\]", "", difference.where)


def _smaller(steps: list[Step]) -> Iterator[list[Step]]:
    """First without half of the steps, then without one, then with a smaller one."""
    for size in (len(steps) // 2, len(steps) // 4, 1):
        for start in range(0, len(steps), size) if size else ():
            yield steps[:start] + steps[start + size :]
    for index, step in enumerate(steps):
        for smaller in _smaller_steps(step):
            yield [*steps[:index], smaller, *steps[index + 1 :]]


def _smaller_steps(step: Step) -> Iterator[Step]:
    for index, parameter in enumerate(step.query):
        if parameter != OWN and not _is_needed(step, parameter):
            yield replace(step, query=step.query[:index] + step.query[index + 1 :])
    if step.body is not None:
        for body in _smaller_values(step.body):
            yield replace(step, body=body)


def _is_needed(step: Step, parameter: tuple[str, str]) -> bool:
    """Definitions are not to be stored."""
    return parameter == ("dryRun", "All") and "/customresourcedefinitions" in step.path


def _smaller_values(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for name in value:
            yield {other: value[other] for other in value if other != name}
        for name in value:
            yield from ({**value, name: smaller} for smaller in _smaller_values(value[name]))
    elif isinstance(value, list):
        for index in range(len(value)):
            yield value[:index] + value[index + 1 :]
        for index, item in enumerate(value):
            yield from ([*value[:index], smaller, *value[index + 1 :]] for smaller in _smaller_values(item))
