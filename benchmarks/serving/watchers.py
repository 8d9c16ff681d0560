"""Watches all widgets many times over: `python -m serving.watchers WATCHERS`.

Says "ready" when all watch. From then on it notes how long after each update, whose time is in the object, each of them
is told; it ends when its input does. What comes is not decoded: the server is measured, not the client.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import AsyncIterator

import uvloop

from navarch import ALL, connect, load
from navarch._base.clock import SystemClock
from navarch.client import Request
from navarch.client.http import HttpTransport
from reporting import report_run
from widgets import GROUP, PLURAL, VERSION, Widget

_TIME = re.compile(rb'"note":"(\d{19})"')

Delays = dict[int, int]
"""How long after an update its watcher was told, by the time of the update; both in nanoseconds."""


async def main(watchers: int) -> None:
    began, transport = time.perf_counter(), HttpTransport(load(), SystemClock())
    try:
        found = sorted(await _delays(transport, watchers))
    finally:
        await transport.close()
    report_run(time.perf_counter() - began, len(found), p50=_percentile(found, 50), p99=_percentile(found, 99))


async def _delays(transport: HttpTransport, watchers: int) -> list[int]:
    """Of all watchers, from when they are ready until the input ends."""
    ended, request = asyncio.Event(), await _request()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), ended.set)
    answers = [await transport.send(request) for _ in range(watchers)]
    delays: list[Delays] = [{} for _ in answers]
    async with asyncio.TaskGroup() as group:
        pairs = zip(answers, delays, strict=True)
        tasks = [group.create_task(_follow(answer.chunks(), noted)) for answer, noted in pairs]
        print("ready", flush=True)
        await ended.wait()
        for task in tasks:
            task.cancel()
    return [delay for noted in delays for delay in noted.values()]


async def _request() -> Request:
    """A watch from now on."""
    async with connect() as client:
        version = (await client.list(Widget, namespace=ALL)).resource_version
    query = {"watch": "true", "resourceVersion": version, "timeoutSeconds": "3600"}
    return Request(method="GET", path=f"/apis/{GROUP}/{VERSION}/{PLURAL}", query=query, long_lived=True)


async def _follow(chunks: AsyncIterator[bytes], noted: Delays) -> None:
    """Reads as long as it is left alone; a watch that ends is a failure."""
    rest = b""
    async for chunk in chunks:
        now = time.time_ns()
        lines, newline, rest = (rest + chunk).rpartition(b"\n")
        for found in _TIME.findall(lines) if newline else ():
            noted[int(found)] = now - int(found)
    raise RuntimeError("expected a watch that goes on, got the end of one")


def _percentile(found: list[int], percent: int) -> float:
    return found[(len(found) - 1) * percent // 100] / 1e6


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))
