"""The ways to an initial list, each object being kept as the cache keeps it: `python -m runtimes.lists whole|stream|pages`."""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator

import uvloop

from navarch import ALL, Client, connect
from navarch.cache import Entry, entry_of
from navarch.client import WatchOptions
from reporting import report_run
from widgets import Widget


async def whole(client: Client) -> AsyncIterator[Entry]:
    """As one answer, which is split as it arrives."""
    async with client.list(Widget, namespace=ALL).body() as body:
        while (listed := await body.next()) is not None:
            for each in listed:
                yield entry_of(each.data, each.head)


async def stream(client: Client) -> AsyncIterator[Entry]:
    """As the first events of a watch (`sendInitialEvents`)."""
    async with client.watch(Widget, namespace=ALL, options=WatchOptions(bookmarks=True, initial=True)) as watch:
        while watch.in_initial:
            event = await anext(watch)
            if event.type != "BOOKMARK":
                yield entry_of(event.data, event.head)


async def pages(client: Client) -> AsyncIterator[Entry]:
    """Page by page."""
    found = client.list(Widget, namespace=ALL).pages()
    while (page := await found.next()) is not None:
        for data in page:
            yield entry_of(data)


async def main() -> None:
    way = {"whole": whole, "stream": stream, "pages": pages}[sys.argv[1]]
    async with connect() as client:
        began = time.perf_counter()
        found = [entry async for entry in way(client)]
        report_run(time.perf_counter() - began, len(found))


if __name__ == "__main__":
    uvloop.run(main())
