"""Updates at a steady rate, each with the time at which it was sent: `python -m runtimes.load COUNT RATE SECONDS`.

Objects are updated in turns, so that none is updated again before everybody has seen it. With BENCH_CHURN every tenth is
deleted and made anew instead.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field

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


@dataclass(frozen=True, slots=True)
class Pace:
    """When each update is due, and when there are no more."""

    rate: float
    seconds: float
    began: float = field(default_factory=time.monotonic)
    turns: Iterator[int] = field(default_factory=itertools.count)

    async def due(self) -> AsyncIterator[int]:
        """The next number as soon as it is due; several may ask."""
        while time.monotonic() < self.began + self.seconds:
            turn = next(self.turns)
            await asyncio.sleep(self.began + turn / self.rate - time.monotonic())
            yield turn


async def _send(client: Client, pace: Pace, count: int) -> None:
    churn = bool(os.environ.get("BENCH_CHURN"))
    async for turn in pace.due():
        number = turn % count
        await (_renew if churn and number % 10 == 0 else _update)(client, number)


async def main(count: int, rate: float, seconds: float) -> None:
    async with connect() as client:
        pace = Pace(rate, seconds)
        async with asyncio.TaskGroup() as group:
            for _ in range(_SENDERS):
                group.create_task(_send(client, pace, count))
        took, sent = time.monotonic() - pace.began, next(pace.turns)
    report_run(took, sent, rate=sent / took)


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])))
