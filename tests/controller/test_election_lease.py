"""An election whose Lease others touch, withhold or take away."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from election_world import KEY, LEASE, RETRY, World, world
from navarch.client import MergePatch
from navarch.k8s.coordination.v1 import Lease


async def change_lease(here: World, patch: dict[str, Any]) -> None:
    await here.server.client().patch(Lease, "lock", MergePatch(patch))
    await here.clock.settle()


async def test_without_the_right_to_watch_the_lease_is_read_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    """Said once; the hand-over takes a few seconds longer."""
    async with world() as here:
        first = await here.leader()
        second = here.add("second")
        second.network.forbidden = True
        await here.clock.advance(130)
        first.stop()
        await here.until_leads(second, within=2 * RETRY)
        told = [record for record in caplog.records if record.levelno >= logging.WARNING]
        assert len(told) == 1
        assert "may not watch" in told[0].getMessage()


async def test_deleted_lease_is_made_anew_by_its_holder() -> None:
    """At once, before a standby may take it."""
    async with world() as here:
        first, _ = await here.leader_and_standby(5)
        await here.server.client().delete(Lease, "lock")
        await here.clock.advance(0.5)
        assert here.spec["holderIdentity"] == "first"
        await here.clock.advance(30)
        assert here.leaders == ["first"]
        assert first.terms == ["begun"]


async def test_deleted_lease_of_a_dead_holder_is_not_taken_before_its_time() -> None:
    """A standby that knew the holder waits as long as it would have without the deletion."""
    async with world() as here:
        first, second = await here.leader_and_standby(5)
        first.pause()
        await here.server.client().delete(Lease, "lock")
        assert await here.until_leads(second, within=LEASE + RETRY) > LEASE - RETRY - 1
        assert here.leaders == ["second"]


async def test_leader_steps_down_at_once_when_somebody_else_is_written_into_the_lease() -> None:
    """The watch brings it; there is no need to wait for the next renewal."""
    async with world() as here:
        first = await here.leader()
        await here.clock.advance(5.1)
        await change_lease(here, {"spec": {"holderIdentity": "a-person"}})
        assert here.leaders == []
        assert first.terms == ["begun", "ended"]
        await here.until_leads(first, within=LEASE + RETRY)


async def test_labels_on_the_lease_are_no_sign_of_life() -> None:
    """A dead holder stays dead, whoever touches its Lease."""
    async with world() as here:
        first, second = await here.leader_and_standby(5)
        first.pause()
        for number in range(7):
            await here.clock.advance(2)
            await change_lease(here, {"metadata": {"labels": {"touched": str(number)}}})
        await here.until_leads(second, within=RETRY)
        assert here.server.objects(Lease)[KEY]["metadata"]["labels"] == {"touched": "6"}


async def test_missing_namespace_is_told_once_and_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    """An operator may come before its namespace."""
    async with world() as here:
        here.server.withdraw(Lease)
        first = here.add("first")
        await here.clock.advance(20)
        told = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
        assert len(told) == 1
        assert "create namespace default" in told[0]
        here.server.serve(Lease)
        await here.until_leads(first, within=2 * RETRY)
