"""The etcd operator on the embedded cluster, with real members: how fast it is, what it needs, what is lost.

About five minutes.
"""

from __future__ import annotations

import asyncio
import time
from datetime import datetime

from crash import kill
from etcd_clusters import OPERATOR, Etcds, running
from measuring import Report, Row, console, row, within
from navarch._base.clock import SystemClock
from writer import Writer

NODES = 3
KILLS, LOSSES, ROUNDS = 3, 2, 2
CLUSTERS = 10
ELECTION_SECONDS = 1.0
"""etcd's own; the clusters are left as they come."""
SETTLED_SECONDS = 6.0
"""etcd takes a new member only when its voters have been connected for five seconds."""
WATCHED_SECONDS = 60.0


def main() -> None:
    """Starts a cluster with the operator, measures, reports."""
    report = Report("etcd")
    report.rows += asyncio.run(_measured())
    report.publish()


async def _measured() -> list[Row]:
    async with running(NODES) as etcds:
        return [*await _formed(etcds), *await _hurt(etcds), *await _many(etcds)]


async def _formed(etcds: Etcds) -> list[Row]:
    """From the request until all serve; each round is a new cluster, the least counts."""
    three = min([await _formed_once(etcds, 3) for _ in range(ROUNDS)])
    five = await _formed_once(etcds, 5)
    return [
        within("three members serve after `kubectl apply`", "s", three, 12, {}),
        within("five members serve after `kubectl apply`", "s", five, 30, {}),
    ]


async def _formed_once(etcds: Etcds, size: int) -> float:
    with console.status(f"a cluster of {size} forms"):
        began = time.monotonic()
        await etcds.apply("formed", size)
        await etcds.serves("formed", size)
        took = time.monotonic() - began
        await etcds.delete("formed")
    return took


async def _hurt(etcds: Etcds) -> list[Row]:
    """A cluster of three is written to all along, while its leader is killed and disks are lost; the worst counts."""
    await etcds.apply("hurt", 3)
    await etcds.serves("hurt", 3)
    writer = Writer(lambda: etcds.endpoints("hurt"))
    async with writer.writing():
        gaps = [await _killed(etcds, writer) for _ in range(KILLS)]
        returns = [await _disk_lost(etcds) for _ in range(LOSSES)]
    lost = len(await writer.missing())
    written = float(len(writer.acknowledged))
    await etcds.delete("hurt")
    return [
        within(
            "longest time without a write after the leader was killed",
            "election time-outs",
            max(gaps) / ELECTION_SECONDS,
            3,
            {},
        ),
        within("a member that has lost its disk votes again", "s", max(returns), 15, {}),
        row("acknowledged writes lost", "writes", float(lost), {"acknowledged": written}, 0.0, beside="acknowledged"),
    ]


async def _killed(etcds: Etcds, writer: Writer) -> float:
    """The longest time without a write, in seconds, until all members are there again."""
    with console.status("the leader is killed"):
        leader = await etcds.leader("hurt")
        writer.longest_gap = 0.0
        kill(leader)
        await SystemClock().sleep(3 * ELECTION_SECONDS)
        await etcds.leader("hurt")
        return writer.longest_gap


async def _disk_lost(etcds: Etcds) -> float:
    with console.status("a disk is lost"):
        leader = await etcds.leader("hurt")
        await SystemClock().sleep(SETTLED_SECONDS)
        began = time.monotonic()
        await etcds.lose_disk("hurt", leader)
        await etcds.serves("hurt", 3)
        return time.monotonic() - began


async def _many(etcds: Etcds) -> list[Row]:
    """What many healthy clusters cost."""
    names = [f"many-{number}" for number in range(CLUSTERS)]
    with console.status(f"{CLUSTERS} clusters"):
        for name in names:
            await etcds.apply(name, 3)
        for name in names:
            await etcds.serves(name, 3)
        calls = await _calls(etcds)
    _, peak = etcds.operator.memory()
    each = calls / CLUSTERS * 60 / WATCHED_SECONDS
    return [
        within(f"peak memory of the operator with {CLUSTERS} clusters of three", "MB", peak, 100, {}),
        within("API calls a minute of a healthy cluster, lease renewals aside", "calls", each, 5, {"of all": calls}),
    ]


async def _calls(etcds: Etcds) -> float:
    """How often the operator has asked the API server for anything but its Lease."""
    clock = SystemClock()
    began = clock.now()
    await clock.sleep(WATCHED_SECONDS)
    return float(_asked(etcds, began))


def _asked(etcds: Etcds, since: datetime) -> int:
    records = etcds.cluster.audit.records(user=OPERATOR, stage="")
    begun = {record.audit_id for record in records if record.when >= since and record.resource != "leases"}
    return len(begun)


if __name__ == "__main__":
    main()
