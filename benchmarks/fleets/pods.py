"""Creates pods, 32 at a time: `python -m fleets.pods COUNT [ready]`; with `ready` it waits until all are."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator

import uvloop

from fleets.waiting import pod_spec, until_accounts
from navarch import Client, connect
from navarch.client import MetadataOnly, WatchOptions
from navarch.k8s.core.v1 import Pod
from reporting import report_run

_AT_A_TIME = 32


async def main(count: int, *, ready: bool) -> None:
    wanted = [Pod(name=f"pod-{number:05}", labels={"app": "bench"}, spec=pod_spec()) for number in range(count)]
    async with connect() as client:
        await until_accounts(client)
        left, began = iter(wanted), time.perf_counter()
        async with asyncio.TaskGroup() as group:
            if ready:
                group.create_task(_until_running(client, count))
            for _ in range(_AT_A_TIME):
                group.create_task(_create_some(client, left))
        report_run(time.perf_counter() - began, await _ready(client) if ready else count)


async def _create_some(client: Client, left: Iterator[Pod]) -> None:
    for each in left:
        await client.create(each)


async def _until_running(client: Client, count: int) -> None:
    """Simulated pods become ready with the same write with which they become Running; one event for each comes here."""
    seen: set[str] = set()
    running = client.watch(MetadataOnly(Pod), fields="status.phase=Running", options=WatchOptions(initial=True))
    async with running as events:
        async for event in events:
            seen.add(event.head.uid)
            if len(seen) == count:
                return


async def _ready(client: Client) -> int:
    """How many are."""
    conditions = [pod.status.conditions or [] async for pod in client.list(Pod)]
    return sum(any(each.type == "Ready" and each.status == "True" for each in found) for found in conditions)


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), ready="ready" in sys.argv[2:]))
