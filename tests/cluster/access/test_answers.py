"""The answers of the real server, word for word."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cluster.access.asking import Conversation, compared
from cluster.access.miniature import Miniature
from cluster.access.script import steps

RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "data/answers.json").read_bytes())


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
