"""A TCP proxy on loopback that lets things go wrong below TLS, where no transport of ours can reach.

It passes bytes on without looking at them, so a client on the other side still verifies the server's certificate:
`reached_through` gives it the proxy's address and everything else as before.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import msgspec

from navarch._base.clock import Clock, SystemClock
from navarch.client import Client, Config, Options, RetryPolicy
from navarch.client.http import HttpTransport
from rig import ports

_CHUNK = 65536


@dataclass
class _Connection:
    """Both ends of one connection. Once it is silent it stays so: what comes is swallowed, until a side closes it."""

    writers: list[asyncio.StreamWriter]
    silent: bool = False


class FaultyProxy:
    """The proxy; `async with proxy_to(server)` runs one. Everything happens in the event loop of the test."""

    def __init__(self, host: str, target: int, clock: Clock, port: int) -> None:
        self.delay = 0.0
        """Seconds that each piece of data waits, in each direction."""
        self.throttle = 0
        """Bytes a second per connection and direction; 0 is no limit."""
        self.accepted = 0
        """How many connections there have been."""
        self.port = port
        """Where it listens; stays the same when it is refused and opened again."""
        self._target = host, target
        self._clock = clock
        self._swallows = False
        self._server: asyncio.Server | None = None
        self._open: dict[asyncio.Task[None], _Connection] = {}

    @property
    def open(self) -> int:
        """How many connections are open right now."""
        return len(self._open)

    async def pass_through(self) -> None:
        """All is well again for new connections and for those that were only slow."""
        self.delay, self.throttle, self._swallows = 0.0, 0, False
        await self.listen()

    async def refuse(self) -> None:
        """New connections are refused; those that are open stay."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def cut_all(self) -> None:
        """Resets every connection that is open."""
        for connection in self._open.values():
            for writer in connection.writers:
                writer.transport.abort()

    def silence_all(self) -> None:
        """Every open connection is half open from now on, for good; new ones pass."""
        for connection in self._open.values():
            connection.silent = True

    def black_hole(self) -> None:
        """Every open connection is half open for good, and so is each new one until all is well again."""
        self.silence_all()
        self._swallows = True

    async def listen(self) -> None:
        """Takes new connections, if it does not already."""
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)

    async def close(self) -> None:
        """Ends everything."""
        await self.refuse()
        tasks = list(self._open)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.accepted += 1
        connection = self._open[task] = _Connection([writer], self._swallows)
        try:
            await self._joined(reader, connection)
        except (asyncio.CancelledError, OSError):
            pass  # the end of a connection is no news, and asyncio would log it
        finally:
            for each in connection.writers:
                each.transport.abort()
            del self._open[task]

    async def _joined(self, reader: asyncio.StreamReader, connection: _Connection) -> None:
        upstream_reader, upstream = await asyncio.open_connection(*self._target)
        connection.writers.append(upstream)
        async with _first_ends_all() as group:
            group.create_task(self._pipe(reader, upstream, connection))
            group.create_task(self._pipe(upstream_reader, connection.writers[0], connection))

    async def _pipe(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: _Connection) -> None:
        """Until one side is done: TLS ends both directions at once, so the other need not be waited for.

        A silent connection does not pass on even that its server is gone.
        """
        while data := await reader.read(self._next_size()):
            await self._clock.sleep(self.delay + (len(data) / self.throttle if self.throttle else 0.0))
            if not connection.silent:
                writer.write(data)
                await writer.drain()
        if not connection.silent or writer is not connection.writers[0]:
            raise ConnectionResetError("one side is done")

    def _next_size(self) -> int:
        """With a throttle, a tenth of a second at a time."""
        return max(self.throttle // 10, 1) if self.throttle else _CHUNK


@contextlib.asynccontextmanager
async def _first_ends_all() -> AsyncIterator[asyncio.TaskGroup]:
    """A group whose first failure cancels the rest, raised as itself."""
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except* OSError as errors:
        raise errors.exceptions[0] from None


@contextlib.asynccontextmanager
async def proxy_to(server: str, clock: Clock | None = None) -> AsyncIterator[FaultyProxy]:
    """A proxy in front of the server with that URL; gone, with all of its connections, at the end of the block."""
    parts = urlsplit(server)
    assert parts.hostname is not None
    with ports.reserved(1) as (port,):  # nobody else takes it while new connections are refused
        proxy = FaultyProxy(parts.hostname, parts.port or 443, clock or SystemClock(), port)
        await proxy.listen()
        try:
            yield proxy
        finally:
            await proxy.close()


def reached_through(proxy: FaultyProxy, config: Config) -> Config:
    """The same server, credentials and trust by way of the proxy; its certificate must still be for the real host."""
    parts = urlsplit(config.server)
    return msgspec.structs.replace(
        config,
        server=f"{parts.scheme}://127.0.0.1:{proxy.port}",
        tls_server_name=config.tls_server_name or parts.hostname or "",
    )


def connected(config: Config, namespace: str, *, retry: RetryPolicy | None = None) -> Client:
    """A client by real sockets."""
    return Client(HttpTransport(config, SystemClock()), Options(namespace=namespace, retry=retry or RetryPolicy()))
