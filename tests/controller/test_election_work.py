"""The work that a leader does: it begins with its term, and the Lease waits for its end."""

from __future__ import annotations

import pytest

from election_world import LEASE, RETRY, world


async def test_lease_is_given_back_only_after_the_work_has_ended() -> None:
    """And until then it may still write."""
    async with world() as here:
        first = here.add("first")
        first.farewell_seconds = 3.0
        await here.until_leads(first, within=1)
        second = here.add("second")
        await here.clock.advance(5)
        first.stop()
        await here.clock.advance(2.5)
        assert here.leaders == ["first"]
        assert await here.until_leads(second, within=2) < 1
        assert first.terms == ["begun", "ended"]


async def test_lease_is_kept_if_the_work_does_not_end(caplog: pytest.LogCaptureFixture) -> None:
    """Better nobody for a while than two."""
    async with world() as here:
        first = here.add("first")
        first.farewell_seconds = 8.0
        await here.until_leads(first, within=1)
        second = here.add("second")
        await here.clock.advance(5)
        first.stop()
        assert await here.until_leads(second, within=LEASE + RETRY) > 8
        assert "did not end in time" in caplog.text


async def test_only_run_is_cancelled_and_the_work_ends_too() -> None:
    """Work must not outlive the election that allows it."""
    async with world() as here:
        first = await here.leader()
        assert first.running is not None
        first.running.cancel()
        await here.clock.advance(0.1)
        assert first.terms == ["begun", "ended"]
        assert "holderIdentity" not in here.spec


async def test_work_that_fails_ends_lead() -> None:
    """Its error is raised as it is."""

    async def work() -> None:
        raise LookupError("broken")

    async with world() as here:
        first = await here.leader()
        with pytest.raises(LookupError, match="broken"):
            await first.election.lead(work)


async def test_work_that_returns_is_not_begun_again_in_the_same_term() -> None:
    """A term has one run."""
    runs: list[float] = []

    async with world() as here:

        async def work() -> None:
            runs.append(here.clock.monotonic())

        first = here.add("first")
        task = here.group.create_task(first.election.lead(work))
        await here.until_leads(first, within=1)
        await here.clock.advance(30)
        assert len(runs) == 1
        first.cut_off()
        await here.clock.advance(30)
        first.reconnect()
        await here.until_leads(first, within=LEASE)
        await here.clock.settle()
        assert len(runs) == 2
        task.cancel()


async def test_process_whose_work_does_not_end_is_no_candidate_until_it_does() -> None:
    """Two terms at once in one process would be two leaders."""
    async with world() as here:
        first = here.add("first")
        first.farewell_seconds = 60.0
        await here.until_leads(first, within=1)
        first.cut_off()
        await here.clock.advance(15)
        first.reconnect()
        await here.clock.advance(30)
        assert here.leaders == []
        assert first.terms == ["begun"]
        await here.until_leads(first, within=60)
        await here.clock.settle()
        assert first.terms == ["begun", "ended", "begun"]
        first.farewell_seconds = 0.0
