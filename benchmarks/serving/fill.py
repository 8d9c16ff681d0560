"""Creates widgets, 32 at a time, as fast as the server takes them: `python -m serving.fill COUNT`."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator

import uvloop

from navarch import Client, connect
from reporting import report_run
from widgets import Widget, create, declare, widget

_AT_A_TIME = 32


async def main(count: int) -> None:
    wanted = [widget(number) for number in range(count)]
    async with connect() as client:
        await declare(client)
        first = await create(client, widget(count))
        await client.delete(Widget, first.name, namespace=first.namespace)
        left, began = iter(wanted), time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_A_TIME):
                group.create_task(_create_some(client, left))
        report_run(time.perf_counter() - began, count)


async def _create_some(client: Client, left: Iterator[Widget]) -> None:
    for each in left:
        await client.create(each)


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))
