"""The memcached server of the image answers as memcached does."""

from __future__ import annotations

import asyncio

import pytest

from navarch.cluster.images.memcached import CacheItems, Memcached


async def _answers(memcached: Memcached, asked: bytes) -> bytes:
    """All that comes back for what is asked, over a connection of its own."""
    server = await asyncio.start_server(memcached.serve, "127.0.0.1", 0)
    async with server, asyncio.timeout(30):
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(asked + b"quit\r\n")
        found = await reader.read()
        writer.close()
        return found


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (b"get a\r\n", b"END\r\n"),
        (b"set a 5 0 2\r\nhi\r\nget a b\r\n", b"STORED\r\nVALUE a 5 2\r\nhi\r\nEND\r\n"),
        (b"set a 0 0 2 noreply\r\nhi\r\nget a\r\n", b"VALUE a 0 2\r\nhi\r\nEND\r\n"),
        (b"add a 0 0 1\r\n1\r\nadd a 0 0 1\r\n2\r\n", b"STORED\r\nNOT_STORED\r\n"),
        (b"replace a 0 0 1\r\n1\r\n", b"NOT_STORED\r\n"),
        (
            b"set a 0 0 1\r\nb\r\nappend a 0 0 1\r\nc\r\nprepend a 0 0 1\r\na\r\nget a\r\n",
            b"STORED\r\n" * 3 + b"VALUE a 0 3\r\nabc\r\nEND\r\n",
        ),
        (b"set a 0 0 1\r\n5\r\nincr a 2\r\ndecr a 10\r\nincr b 1\r\n", b"STORED\r\n7\r\n0\r\nNOT_FOUND\r\n"),
        (
            b"set a 0 0 1\r\nx\r\nincr a 1\r\n",
            b"STORED\r\nCLIENT_ERROR cannot increment or decrement non-numeric value\r\n",
        ),
        (b"set a 0 0 1\r\nx\r\ndelete a\r\ndelete a\r\n", b"STORED\r\nDELETED\r\nNOT_FOUND\r\n"),
        (b"set a 0 -1 1\r\nx\r\nget a\r\n", b"STORED\r\nEND\r\n"),
        (b"set a 0 100 1\r\nx\r\ntouch a -1\r\nget a\r\n", b"STORED\r\nTOUCHED\r\nEND\r\n"),
        (
            b"set a 0 0 1\r\nx\r\ngets a\r\ncas a 0 0 1 1\r\ny\r\ncas a 0 0 1 1\r\nz\r\n",
            b"STORED\r\nVALUE a 0 1 1\r\nx\r\nEND\r\nSTORED\r\nEXISTS\r\n",
        ),
        (b"set a 0 0 1\r\nx\r\nflush_all\r\nget a\r\n", b"STORED\r\nOK\r\nEND\r\n"),
        (b"nonsense\r\n\r\nset a\r\n", b"ERROR\r\nERROR\r\nCLIENT_ERROR bad command line format\r\n"),
        (b"version\r\n", b"VERSION 1.6.0-navarch\r\n"),
    ],
)
async def test_commands(asked: bytes, answer: bytes) -> None:
    """The server stores, reads, counts and expires items, and refuses unknown commands."""
    assert await _answers(Memcached(CacheItems(1)), asked) == answer


async def test_stats_count() -> None:
    """`stats` has the numbers that operators read."""
    memcached = Memcached(CacheItems(1))
    await _answers(memcached, b"set a 0 0 1\r\nx\r\nget a b\r\n")
    said = (await _answers(memcached, b"stats\r\n")).decode().splitlines()
    found = dict(line.split(" ", 2)[1:] for line in said if line.startswith("STAT "))
    assert (found["curr_items"], found["get_hits"], found["get_misses"], found["cmd_set"]) == ("1", "1", "1", "1")
    assert (found["curr_connections"], found["total_connections"]) == ("1", "2")


def test_old_values_make_room() -> None:
    """The least recently used item is evicted first."""
    items = CacheItems(1)
    for number in range(20):
        items.put(b"%d" % number, 0, b"x" * 100_000, 0.0)
        items.get(b"0")
    assert items.get(b"0") is not None
    assert items.get(b"1") is None
    assert items.bytes <= 1024 * 1024
    assert items.evictions > 0
