"""Updates at a steady rate, each with the time at which it was sent: `python -m runtimes.load COUNT RATE SECONDS`.

Objects are updated in turns, so that none is updated again before everybody has seen it. With BENCH_CHURN every tenth is
deleted and made anew instead.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Iterator

import uvloop

from navarch import Client, connect
from navarch.client import MergePatch
from reporting import report_run
from widgets import NAMESPACE, Widget, widget

_SENDERS = 64


async def _update(client: Client, number: int) -> None:
    note = str(time.time_ns())
    await client.patch(Widget, f"widget-{number:05}", MergePatch({"spec": {"note": note}}), namespace=NAMESPACE)


async def _renew(client: Client, number: int) -> None:
    await client.delete(Widget, f"widget-{number:05}", namespace=NAMESPACE)
    await client.create(widget(number, note=str(time.time_ns())))


async def _send(client: Client, turns: Iterator[int], count: int, rate: float, began: float) -> None:
    churn = bool(os.environ.get("BENCH_CHURN"))
    for turn in turns:
        await asyncio.sleep(began + turn / rate - time.monotonic())
        number = turn % count
        await (_renew if churn and number % 10 == 0 else _update)(client, number)


async def main(count: int, rate: float, seconds: float) -> None:
    wanted = int(rate * seconds)
    turns = iter(range(wanted))
    async with connect() as client:
        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for _ in range(_SENDERS):
                group.create_task(_send(client, turns, count, rate, began))
        took = time.monotonic() - began
    report_run(took, wanted, rate=wanted / took)


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])))
