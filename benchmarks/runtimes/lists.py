"""The ways to an initial list, each object being kept as the cache keeps it: `python -m runtimes.lists stream|pages|one`."""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator

import uvloop

from navarch import ALL, Client, connect
from navarch.cache import entry_of
from navarch.client import WatchOptions
from reporting import report_run
from widgets import Widget


async def stream(client: Client) -> AsyncIterator[bytes]:
    """As the first events of a watch (`sendInitialEvents`)."""
    async with client.watch(Widget, namespace=ALL, options=WatchOptions(bookmarks=True, initial=True)) as watch:
        while watch.in_initial:
            event = await anext(watch)
            if event.type != "BOOKMARK":
                yield event.data


async def pages(client: Client) -> AsyncIterator[bytes]:
    """Page by page."""
    found = client.list(Widget, namespace=ALL).pages()
    while (page := await found.next()) is not None:
        for data in page:
            yield data


async def one(client: Client) -> AsyncIterator[bytes]:
    """As one answer, from the server's cache."""
    found = client.list(Widget, namespace=ALL, page_size=0, resource_version="0").pages()
    while (page := await found.next()) is not None:
        for data in page:
            yield data


async def main() -> None:
    way = {"stream": stream, "pages": pages, "one": one}[sys.argv[1]]
    async with connect() as client:
        began = time.perf_counter()
        found = [entry_of(data) async for data in way(client)]
        report_run(time.perf_counter() - began, len(found))


if __name__ == "__main__":
    uvloop.run(main())
