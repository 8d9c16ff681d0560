"""Custom kinds answer as a real API server did."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cluster.custom.asking import held
from cluster.custom.script import CONVERSATIONS
from cluster.custom.serving import serving

DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize("name", CONVERSATIONS)
async def test_answers_are_those_of_a_real_server(name: str) -> None:
    """Every answer of a conversation about CRDs and their objects is what the real server said, ids and times aside."""
    expected = json.loads((DATA / f"{name}.json").read_text())
    async with serving() as ask:
        answers = json.loads(json.dumps(await held(ask, CONVERSATIONS[name])))
    assert list(answers) == list(expected)
    different = {step: (answer, expected[step]) for step, answer in answers.items() if answer != expected[step]}
    assert not different
