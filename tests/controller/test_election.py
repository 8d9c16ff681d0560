"""One leader at a time, and always one soon."""

import asyncio
import logging
from datetime import timedelta

import pytest

from election_world import LEASE, RETRY, world
from navarch.controller.election import ElectionOptions
from navarch.errors import InvalidValueError


async def test_first_candidate_leads_and_writes_what_client_go_writes() -> None:
    """The record has every field that other electors read."""
    async with world() as here:
        first = await here.leader()
        assert here.spec == {
            "holderIdentity": "first",
            "leaseDurationSeconds": 15,
            "leaseTransitions": 0,
            "acquireTime": "2030-01-01T00:00:00.020000Z",
            "renewTime": "2030-01-01T00:00:00.020000Z",
        }
        assert first.terms == ["begun"]


async def test_leader_renews_and_its_deadline_counts_from_when_it_sent() -> None:
    """Not from when the answer came: the others may have seen the renewal at the earliest when it was sent."""
    async with world() as here:
        first = here.add("first")
        first.network.latency = 0.4
        await here.until_leads(first, within=3)
        assert first.election.deadline == pytest.approx(first.clock.monotonic() - 0.8 + 10, abs=0.06)
        await here.clock.advance(60)
        assert first.election.fence.remaining() > 10 - RETRY - 1
        assert here.spec["leaseTransitions"] == 0
        assert first.terms == ["begun"]


async def test_second_candidate_stands_by_and_asks_nothing_while_the_watch_brings_renewals() -> None:
    """A standby costs the server one watch."""
    async with world() as here:
        await here.leader_and_standby(10)
        asked = len(here.server.requests)
        await here.clock.advance(60)
        assert here.leaders == ["first"]
        methods = {request.method for request in here.server.requests[asked:]}
        assert methods == {"PUT"}


async def test_successor_takes_over_within_one_lease_after_a_kill() -> None:
    """Counted from the kill; it does not have to wait for anything else."""
    async with world() as here:
        first, second = await here.leader_and_standby(7)
        first.pause()
        seconds = await here.until_leads(second, within=LEASE + RETRY)
        assert LEASE - RETRY - 1 < seconds <= LEASE + 0.2
        assert here.spec["holderIdentity"] == "second"
        assert here.spec["leaseTransitions"] == 1


async def test_successor_takes_over_at_once_after_a_clean_stop() -> None:
    """The Lease is given back, and the standby sees it by its watch."""
    async with world() as here:
        first, second = await here.leader_and_standby(20)
        first.stop()
        assert await here.until_leads(second, within=2) < 0.3
        assert first.terms == ["begun", "ended"]
        assert second.terms == ["begun"]


async def test_release_can_be_left_out() -> None:
    """Then the successor waits for the lease to end."""
    async with world() as here:
        first = await here.leader(release_on_stop=False)
        second = here.add("second")
        await here.clock.advance(5)
        first.stop()
        assert await here.until_leads(second, within=LEASE + RETRY) > 10


async def test_claim_whose_answer_never_came_is_given_back_too() -> None:
    """A process that is stopped in the middle of its first claim leaves no Lease behind."""
    async with world() as here:
        first = here.add("first")
        first.network.latency = 1.0
        await here.clock.advance(3.5)
        assert here.spec["holderIdentity"] == "first"
        assert not first.election.leading
        first.stop()
        await here.clock.advance(10)
        assert "holderIdentity" not in here.spec


async def test_cut_off_leader_stops_at_its_deadline_and_the_other_begins_after_it() -> None:
    """The work is cancelled, the process goes on as a candidate."""
    async with world() as here:
        first, second = await here.leader_and_standby(7)
        first.cut_off()
        deadline = first.election.deadline
        await here.clock.advance(deadline - first.clock.monotonic() - 0.05)
        assert here.leaders == ["first"]
        await here.clock.advance(0.1)
        assert here.leaders == []
        assert first.terms == ["begun", "ended"]
        await here.until_leads(second, within=LEASE)
        first.reconnect()
        await here.clock.advance(30)
        assert here.leaders == ["second"]
        second.stop()
        await here.until_leads(first, within=2)
        assert first.terms == ["begun", "ended", "begun"]


async def test_paused_leader_may_not_write_when_it_goes_on() -> None:
    """Not even before it has noticed anything."""
    async with world() as here:
        first, second = await here.leader_and_standby(7)
        first.pause()
        await here.until_leads(second, within=LEASE + RETRY)
        assert not first.election.leading
        first.resume()
        await here.clock.advance(1)
        assert here.leaders == ["second"]
        assert first.terms == ["begun", "ended"]
        assert first.election.holder == "second"


@pytest.mark.parametrize("faults", [["refused"] * 3, ["answer lost"] * 3, ["late"], ["late", "refused"]])
async def test_leader_outlives_failed_renewals(faults: list[str]) -> None:
    """As long as one succeeds before the deadline."""
    async with world() as here:
        first = await here.leader()
        first.network.faults = faults
        await here.clock.advance(30)
        assert here.leaders == ["first"]
        assert first.terms == ["begun"]


async def test_time_of_day_does_not_matter() -> None:
    """Neither the holder's nor the candidate's, wherever they jump."""
    async with world() as here:
        first = await here.leader()
        second = here.add("second")
        for hours in (-40_000, 40_000, 0):
            first.clock.wrong_by, second.clock.wrong_by = timedelta(hours=hours), timedelta(hours=-hours)
            await here.clock.advance(20)
            assert here.leaders == ["first"]
        first.pause()
        assert await here.until_leads(second, within=LEASE + RETRY) > 10


async def test_transitions_are_logged_once_each(caplog: pytest.LogCaptureFixture) -> None:
    """With who holds the Lease."""
    caplog.set_level(logging.INFO, "navarch.controller")
    async with world() as here:
        first, _ = await here.leader_and_standby(20)
        first.stop()
        await here.clock.advance(20)
        assert [record.getMessage() for record in caplog.records if record.name == "navarch.controller"] == [
            "lease default/lock: first leads",
            "lease default/lock: second stands by; held by first",
            "lease default/lock: first has given the Lease back",
            "lease default/lock: second leads",
        ]


async def test_wait_until_leading_returns_when_it_is_so() -> None:
    """And at once from then on."""
    async with world() as here:
        first = here.add("first")
        waiting = here.group.create_task(first.election.wait_until_leading())
        await asyncio.sleep(0)  # noqa: TID251 - one turn, so that it waits
        assert not waiting.done()
        await here.until_leads(first, within=1)
        await here.clock.settle()
        assert waiting.done()


async def test_fractions_of_a_second_are_rounded_up_for_the_others() -> None:
    """They wait longer than the holder counts, never shorter."""
    async with world() as here:
        await here.leader(lease_seconds=2.5, renew_deadline=2.0, retry_seconds=0.3)
        assert here.spec["leaseDurationSeconds"] == 3


@pytest.mark.parametrize(
    "times",
    [
        {"lease_seconds": 10.0},
        {"renew_deadline": 3.0},
        {"retry_seconds": 0.0},
    ],
)
def test_times_that_cannot_be_safe_are_refused(times: dict[str, float]) -> None:
    """The deadline must come before the end of the lease, with time for a second try."""
    with pytest.raises(InvalidValueError, match="the defaults are 2, 10 and 15"):
        ElectionOptions(name="lock", **times)  # type: ignore[arg-type]
