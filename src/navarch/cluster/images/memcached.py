"""A memcached for machines that have none: the text protocol, as much of it as clients use, in memory.

Runs by itself, with nothing but the standard library: `python memcached.py -l 127.0.0.1 -p 11211 -m 64`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import time
from collections import OrderedDict
from typing import Final, NamedTuple

VERSION: Final = "1.6.0-navarch"
_LONGEST_KEY: Final = 250
_LARGEST_VALUE: Final = 1024 * 1024
_MONTH: Final = 60 * 60 * 24 * 30
_CLIENT_ERROR: Final = b"CLIENT_ERROR bad data chunk\r\n"


class CacheItem(NamedTuple):
    """One value. `ends` is the moment after which it is gone; 0 stands for never."""

    flags: int
    value: bytes
    ends: float
    unique: int


class CacheItems:
    """All values; those that were used longest ago make room for new ones."""

    def __init__(self, megabytes: int) -> None:
        self._items: OrderedDict[bytes, CacheItem] = OrderedDict()
        self._room = megabytes * 1024 * 1024
        self._unique = 0
        self.bytes = 0
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._items)

    def get(self, key: bytes) -> CacheItem | None:
        """The value, if there is one whose time is not over."""
        item = self._items.get(key)
        if item is not None and item.ends and item.ends <= _now():
            self.delete(key)
            return None
        if item is not None:
            self._items.move_to_end(key)
        return item

    def put(self, key: bytes, flags: int, value: bytes, ends: float) -> None:
        """Takes the value in the place of the one before."""
        self.delete(key)
        self._unique += 1
        self._items[key] = CacheItem(flags, value, ends, self._unique)
        self.bytes += len(key) + len(value)
        while self.bytes > self._room:
            self.delete(next(iter(self._items)))
            self.evictions += 1

    def delete(self, key: bytes) -> bool:
        """Whether there was such a value."""
        item = self._items.pop(key, None)
        if item is not None:
            self.bytes -= len(key) + len(item.value)
        return item is not None

    def clear(self) -> None:
        """Forgets all."""
        self._items.clear()
        self.bytes = 0


class Memcached:
    """The commands. Each gives its answer, or None if there is none to give."""

    def __init__(self, items: CacheItems) -> None:
        self._items = items
        self._began = _now()
        self._counts = {"cmd_get": 0, "cmd_set": 0, "get_hits": 0, "get_misses": 0, "total_connections": 0}
        self._connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers one client until it leaves."""
        self._connections += 1
        self._counts["total_connections"] += 1
        try:
            while line := await reader.readline():
                words = line.split()
                if words == [b"quit"]:
                    break
                writer.write(await self._answer(words, reader))
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, ValueError):
            pass
        finally:
            self._connections -= 1
            writer.close()

    async def _answer(self, words: list[bytes], reader: asyncio.StreamReader) -> bytes:
        if not words:
            return b"ERROR\r\n"
        command, *rest = words
        if command in {b"set", b"add", b"replace", b"append", b"prepend", b"cas"}:
            answer = await self._store(command, rest, reader)
        else:
            answer = self._other(command, rest)
        return b"" if rest and rest[-1] == b"noreply" else answer

    async def _store(self, command: bytes, rest: list[bytes], reader: asyncio.StreamReader) -> bytes:
        try:
            key, flags, seconds, size = rest[0], int(rest[1]), int(rest[2]), int(rest[3])
        except (IndexError, ValueError):
            return b"CLIENT_ERROR bad command line format\r\n"
        data = await reader.readexactly(size + 2)
        if size > _LARGEST_VALUE:
            return b"SERVER_ERROR object too large for cache\r\n"
        if not data.endswith(b"\r\n") or len(key) > _LONGEST_KEY:
            return _CLIENT_ERROR
        self._counts["cmd_set"] += 1
        unique = int(rest[4]) if command == b"cas" else 0
        return self._stored(command, key, CacheItem(flags, data[:-2], _ends(seconds), unique))

    def _stored(self, command: bytes, key: bytes, new: CacheItem) -> bytes:
        known = self._items.get(key)
        if command == b"cas" and known is None:
            return b"NOT_FOUND\r\n"
        if command == b"cas" and known is not None and known.unique != new.unique:
            return b"EXISTS\r\n"
        if (known is not None) == (command == b"add") and command in {b"add", b"replace", b"append", b"prepend"}:
            return b"NOT_STORED\r\n"
        if known is not None and command in {b"append", b"prepend"}:
            value = known.value + new.value if command == b"append" else new.value + known.value
            new = known._replace(value=value)
        self._items.put(key, new.flags, new.value, new.ends)
        return b"STORED\r\n"

    def _other(self, command: bytes, rest: list[bytes]) -> bytes:
        match command:
            case b"get" | b"gets":
                return self._get(rest, with_unique=command == b"gets")
            case b"delete" if rest:
                return b"DELETED\r\n" if self._items.delete(rest[0]) else b"NOT_FOUND\r\n"
            case b"incr" | b"decr" if len(rest) >= 2:
                return self._add(rest[0], rest[1], sign=1 if command == b"incr" else -1)
            case b"touch" if len(rest) >= 2:
                return self._touch(rest[0], int(rest[1]))
            case b"flush_all":
                self._items.clear()
                return b"OK\r\n"
            case b"stats":
                return b"" if rest else self._stats()
            case b"version":
                return f"VERSION {VERSION}\r\n".encode()
            case b"verbosity":
                return b"OK\r\n"
        return b"ERROR\r\n"

    def _get(self, keys: list[bytes], *, with_unique: bool) -> bytes:
        found = []
        for key in keys:
            self._counts["cmd_get"] += 1
            item = self._items.get(key)
            self._counts["get_misses" if item is None else "get_hits"] += 1
            if item is not None:
                unique = b" %d" % item.unique if with_unique else b""
                found.append(b"VALUE %b %d %d%b\r\n%b\r\n" % (key, item.flags, len(item.value), unique, item.value))
        return b"".join([*found, b"END\r\n"])

    def _add(self, key: bytes, amount: bytes, *, sign: int) -> bytes:
        item = self._items.get(key)
        if item is None:
            return b"NOT_FOUND\r\n"
        if not item.value.isdigit() or not amount.isdigit():
            return b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"
        number = max(int(item.value) + sign * int(amount), 0) % (1 << 64)
        self._items.put(key, item.flags, b"%d" % number, item.ends)
        return b"%d\r\n" % number

    def _touch(self, key: bytes, seconds: int) -> bytes:
        item = self._items.get(key)
        if item is None:
            return b"NOT_FOUND\r\n"
        self._items.put(key, item.flags, item.value, _ends(seconds))
        return b"TOUCHED\r\n"

    def _stats(self) -> bytes:
        own = {
            "pid": os.getpid(),
            "uptime": int(_now() - self._began),
            "version": VERSION,
            "curr_items": len(self._items),
            "bytes": self._items.bytes,
            "evictions": self._items.evictions,
            "curr_connections": self._connections,
        }
        lines = [f"STAT {name} {value}\r\n" for name, value in (own | self._counts).items()]
        return "".join([*lines, "END\r\n"]).encode()


def _now() -> float:
    return time.time_ns() / 1e9


def _ends(seconds: int) -> float:
    """As the protocol has it: up to a month is from now on, more is a date, less than nothing is over already."""
    if seconds == 0:
        return 0.0
    return _now() + seconds if seconds <= _MONTH else float(seconds)


async def run(address: str, port: int, megabytes: int) -> None:
    """Serves until it is told to end."""
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    server = await asyncio.start_server(Memcached(CacheItems(megabytes)).serve, address, port)
    await ended.wait()
    server.close()


def main() -> None:
    """Takes those options of memcached that say where it listens and how much it keeps; others are for another one."""
    options = argparse.ArgumentParser(prog="memcached")
    options.add_argument("-l", "--listen", default="127.0.0.1")
    options.add_argument("-p", "--port", type=int, default=11211)
    options.add_argument("-m", "--memory-limit", type=int, default=64)
    known, ignored = options.parse_known_args()
    if ignored:
        print(f"memcached: left out: {' '.join(ignored)}", file=sys.stderr)  # noqa: T201 - a program of its own
    try:
        asyncio.run(run(known.listen, known.port, known.memory_limit))
    except OSError as error:
        sys.exit(f"failed to listen on TCP port {known.port}: {error.strerror or error}")


if __name__ == "__main__":
    main()
