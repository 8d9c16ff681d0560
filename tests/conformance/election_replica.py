"""One replica of an operator, as a process: it counts in a ConfigMap while it leads, and tells what it does.

Each line of its output is JSON: `what` happened, `at` which moment of the machine's monotonic clock, with which `deadline`.
SIGTERM stops it cleanly.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import signal
import sys
from collections.abc import Sequence
from typing import Any

import msgspec

from navarch._base.clock import SystemClock
from navarch.client import Client, MergePatch, Options, Request, Response, Transport, WebSocket, load
from navarch.client.http import HttpTransport
from navarch.controller.election import Election, ElectionOptions
from navarch.controller.fence import FencedTransport
from navarch.errors import NavarchError, NotLeaderError
from navarch.k8s.core.v1 import ConfigMap

CLOCK = SystemClock()


def tell(what: str, **more: Any) -> None:
    sys.stdout.write(json.dumps({"what": what, "at": CLOCK.monotonic(), **more}) + "\n")
    sys.stdout.flush()


class Told:
    """Behind the fence: tells of each write at the moment when it begins."""

    def __init__(self, inner: Transport, election: Election) -> None:
        self._inner = inner
        self._election = election
        self.origin = inner.origin
        self.host = inner.host

    async def send(self, request: Request) -> Response:
        if request.method == "GET":
            return await self._inner.send(request)
        tell("write", deadline=self._election.deadline, lease_ends=self._election.fence.lease_ends)
        answer = await self._inner.send(request)
        tell("written")
        return answer

    async def connect(self, request: Request, protocols: Sequence[str]) -> Response | WebSocket:
        raise NotImplementedError

    async def close(self) -> None:
        await self._inner.close()


async def main(task: dict[str, Any]) -> None:
    config = msgspec.structs.replace(load(task["kubeconfig"]), server=task["server"])
    transport = HttpTransport(config, CLOCK)
    options = Options(namespace=task["namespace"], timeout=1.0)
    chosen = ElectionOptions(name="lock", **task["election"])
    election = Election(Client(transport, options), chosen, CLOCK, random.Random())
    client = Client(FencedTransport(Told(transport, election), election.fence), options)

    async def count(worker: int) -> None:
        """Writes without reading first, and without naming a version: nothing but the fence can hold it up."""
        for number in itertools.count(1):
            data = {f"number-{worker}": str(number), "writer": election.identity, "deadline": str(election.deadline)}
            try:
                await client.patch(ConfigMap, "counter", MergePatch({"data": data}))
            except NotLeaderError:
                tell("refused")
            except NavarchError as error:
                tell("failed", error=str(error))
            await CLOCK.sleep(0.05)

    async def work() -> None:
        tell("leads")
        try:
            async with asyncio.TaskGroup() as workers:
                for worker in range(3):
                    workers.create_task(count(worker))
        finally:
            tell("no longer leads")

    async with client, asyncio.TaskGroup() as group:
        group.create_task(election.run())
        group.create_task(election.lead(work))
        tell("stands")


async def until_terminated(task: dict[str, Any]) -> None:
    running = asyncio.current_task()
    assert running is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, running.cancel)
    try:
        await main(task)
    except asyncio.CancelledError:
        tell("ended")


if __name__ == "__main__":
    asyncio.run(until_terminated(json.loads(sys.argv[1])))
