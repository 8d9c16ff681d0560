"""The embedded server and the real one on random sequences of requests."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import rig
from differential.comparing import running
from differential.fuzzing import failures
from differential.shrinking import shrunk
from differential.steps import Difference, Step

SEED = 1
COUNT = 150


@pytest.mark.real
@pytest.mark.timeout(600)
async def test_both_servers_answer_alike(rig_cluster: rig.Cluster) -> None:
    """Every answer, every object in store and every event is the same, but for the differences that are listed."""
    async with running(rig_cluster) as pair:
        found = [failure async for failure in failures(pair, SEED, range(COUNT))]
    assert not found, "\n\n".join(map(str, found))


async def test_a_failing_sequence_is_shrunk_to_what_matters() -> None:
    """Steps, parameters and fields that do not matter for a difference are left out."""
    steps = [Step("GET", f"/{index}") for index in range(8)]
    steps[5] = Step("POST", "/5", (("dryRun", "All"), ("force", "true")), {"a": [1, 2], "b": {"c": 3, "d": 4}})

    async def attempt(tried: Sequence[Step]) -> Difference | None:
        for index, step in enumerate(tried):
            if step.method == "POST" and ("force", "true") in step.query and (step.body or {}).get("b", {}).get("c"):
                return Difference(index, "status", "200", "400")
        return None

    shorter, difference = await shrunk(steps, Difference(5, "status", "200", "400"), attempt)
    assert shorter == [Step("POST", "/5", (("force", "true"),), {"b": {"c": 3}})]
    assert difference.step == 0
