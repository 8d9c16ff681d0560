"""Whatever happens to the replicas, no two may write at the same moment, and somebody leads in the end."""

import asyncio
from datetime import timedelta

import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st

from election_world import LEASE, Replica, World, world
from example_counts import examples
from navarch.client import MergePatch
from navarch.controller.fence import Fence
from navarch.controller.lease import LeaseLock
from navarch.errors import NotFound
from navarch.k8s.coordination.v1 import Lease

FAULTS = ("refused", "answer lost", "late")
DEEDS = ("pause", "resume", "cut off", "reconnect", "stop", "kill", "wrong clock", "touch", *FAULTS)

histories = st.lists(st.tuples(st.sampled_from(DEEDS), st.integers(0, 2), st.integers(1, 120)), min_size=4, max_size=18)


class Witness:
    """Looks at the moment when a fence opens: two can only be open at once from such a moment on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.here: World | None = None
        self.overlaps: list[tuple[float, list[str]]] = []
        self.opened = 0
        opening = Fence.open

        def witnessed(fence: Fence, **moments: float) -> None:
            opening(fence, **moments)
            self._look()

        monkeypatch.setattr(Fence, "open", witnessed)

    def _look(self) -> None:
        self.opened += 1
        assert self.here is not None
        if len(self.here.leaders) > 1:
            self.overlaps.append((self.here.clock.monotonic(), self.here.leaders))


async def do(here: World, deed: str, places: list[Replica], place: int) -> None:
    """One deed to the replica at a place. One that is stopped or killed gets a successor of another name."""
    replica = places[place]
    match deed:
        case "pause":
            replica.pause()
        case "resume":
            replica.resume()
        case "cut off":
            replica.cut_off()
        case "reconnect":
            replica.reconnect()
        case "stop" | "kill":
            replica.stop() if deed == "stop" else replica.pause()
            places[place] = slow(here.add(f"replica-{len(here.replicas)}"))
        case "wrong clock":
            replica.clock.wrong_by += timedelta(hours=7 * (1 - place))
        case "touch":
            await touch(here)
        case fault:
            replica.network.faults += [fault] * 2


def slow(replica: Replica) -> Replica:
    """Requests take long enough for something to happen meanwhile."""
    replica.network.latency = 0.4
    return replica


async def touch(here: World) -> None:
    try:
        label = {"at": f"{here.clock.monotonic():.2f}"}
        await here.server.client().patch(Lease, "lock", MergePatch({"metadata": {"labels": label}}))
    except NotFound:
        return


async def play(history: list[tuple[str, int, int]], witness: Witness) -> None:
    async with world() as here:
        witness.here = here
        places = [slow(here.add(f"replica-{number}")) for number in range(3)]
        for deed, place, tenths in history:
            await do(here, deed, places, place)
            await here.clock.advance(tenths / 10)
            assert len(here.leaders) <= 1
        for replica in places:
            replica.resume()
            replica.reconnect()
        await leader_comes(here)


async def leader_comes(here: World) -> None:
    limit = here.clock.monotonic() + 2 * LEASE
    while not here.leaders:
        assert here.clock.monotonic() < limit, f"expected a leader within {2 * LEASE} s of peace, got none"
        await here.clock.advance(0.5)


@examples(40, phases=(Phase.explicit, Phase.reuse, Phase.generate))  # shrinking would take minutes
@given(history=histories)
def test_no_two_may_write_at_the_same_moment(history: list[tuple[str, int, int]]) -> None:
    """Over pauses, kills, partitions, lost, late and refused requests and wrong clocks."""
    with pytest.MonkeyPatch.context() as patched:
        witness = Witness(patched)
        asyncio.run(play(history, witness))
    assert witness.overlaps == []
    assert witness.opened > 0


async def test_witness_sees_an_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the rule that makes candidates wait, the test above would fail."""
    monkeypatch.setattr(LeaseLock, "seconds_until_free", lambda _lock: 0.0)
    witness = Witness(monkeypatch)
    async with world() as here:
        witness.here = here
        first = await here.leader()
        first.cut_off()
        here.add("second")
        await here.clock.advance(1)
    assert witness.overlaps
