"""Simulated nodes of any cluster: `python -m fleets.nodes COUNT`.

Says "ready" when they have joined and pods can be bound to them, and ends when its input does.
"""

from __future__ import annotations

import asyncio
import sys
import time

import uvloop

from fleets.waiting import until
from navarch import Client, connect
from navarch.cluster.nodes.simulated.nodes import SimulatedNodes
from navarch.k8s.core.v1 import Node
from reporting import report_run


async def main(count: int) -> None:
    began, ended = time.perf_counter(), asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), ended.set)
    async with connect() as client, asyncio.TaskGroup() as group:
        nodes = SimulatedNodes(client, count)
        running = group.create_task(nodes.run())
        await nodes.ready.wait()
        await until(lambda: _are_usable(client), "nodes without taints")
        print("ready", flush=True)
        await ended.wait()
        running.cancel()
    report_run(time.perf_counter() - began, count)


async def _are_usable(client: Client) -> bool:
    """Whether whoever watches over nodes has seen that they are well."""
    return not any([node.spec.taints async for node in client.list(Node)])


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))
