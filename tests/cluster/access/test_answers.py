"""The answers of the real server, word for word."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

import rig
from cluster.access.asking import Conversation, compared
from cluster.access.miniature import Miniature
from cluster.access.real import RealServer
from cluster.access.script import steps
from navarch._base.clock import SystemClock

RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "data/answers.json").read_bytes())
PATIENCE_SECONDS = 60.0


def test_every_step_has_a_name_of_its_own() -> None:
    """Step names are unique, so that one recorded answer stands for one request."""
    names = [step.name for step in steps()]
    assert len(names) == len(set(names))
    assert set(names) == set(RECORDED)


async def test_answers_what_the_real_server_answered() -> None:
    """Every refusal, review and TokenRequest of the script is the recorded one."""
    conversation, differences = Conversation(Miniature()), {}
    for step in steps():
        answer = list(compared(step, await conversation.take(step)))
        if answer != RECORDED[step.name]:
            differences[step.name] = (answer, RECORDED[step.name])
    assert not differences


@pytest.mark.real
async def test_the_recorded_answers_are_the_real_ones(rig_cluster: rig.Cluster) -> None:
    """The real server still answers so, tokens signed by our own code included; its caches may need a moment."""
    clock, differences = SystemClock(), {}
    with contextlib.closing(RealServer(rig_cluster)) as server:
        conversation = Conversation(server)
        for step in steps():
            deadline = clock.monotonic() + PATIENCE_SECONDS
            while (answer := list(compared(step, await conversation.take(step)))) != RECORDED[step.name]:
                made_something = answer[0] < 300 and not step.path.endswith("reviews")
                if clock.monotonic() > deadline or made_something:
                    differences[step.name] = (answer, RECORDED[step.name])
                    break
                await clock.sleep(0.2)
    assert not differences
