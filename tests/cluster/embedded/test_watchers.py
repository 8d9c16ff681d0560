"""Watchers that are slow, dead or gone: no harm to others, and nothing is left of them."""

from __future__ import annotations

import asyncio
import ctypes
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import navarch.cluster.embedded.http_connection
import navarch.cluster.embedded.responses
from navarch._base.clock import SystemClock
from navarch.client import Client, Config
from navarch.cluster.embedded.cluster import EmbeddedCluster
from navarch.cluster.embedded.credentials import ClusterAuthority, server_context
from navarch.cluster.embedded.http_server import HttpServer
from navarch.k8s.core.v1 import ConfigMap
from wire import Wire

MAPS = "/api/v1/namespaces/default/configmaps"
EVENTS = 2000
TEXT = "v" * 10_000
SECONDS = 60.0
MOST_WAITING = 2 * 2**20
"""Bytes that may wait for one reader in this process; all events together are ten times as many."""
MANY = 100
_SO_ATTACH_FILTER = 26
_DROP_ALL = struct.pack("HBBI", 0x06, 0, 0, 0)


class Served:
    """A cluster behind HTTPS in the test's own loop, so that its connections can be looked at."""

    def __init__(self, cluster: EmbeddedCluster, http: HttpServer, authority: ClusterAuthority) -> None:
        self.cluster = cluster
        self.client: Client = cluster.client()
        self._http = http
        self._wire = Wire(Config(server=http.url, ca_data=authority.pair.certificate, token=cluster.token))

    @property
    def transports(self) -> list[asyncio.Transport]:
        """Of the connections that are open."""
        assert self._http._web is not None
        found = [each.transport for each in self._http._web.connections]
        return [each for each in found if each is not None and not each.is_closing()]

    def watches(self, stage: str) -> int:
        """How many have begun (`ResponseStarted`) or ended (`ResponseComplete`)."""
        return len(self.cluster.audit.records(verb="watch", stage=stage))

    async def watching(self, stack: ExitStack) -> ssl.SSLSocket:
        """A connection on which a watch has begun, of somebody who reads nothing."""
        before = self.watches("ResponseStarted")
        connection = await asyncio.to_thread(stack.enter_context, self._opened())
        await until(lambda: self.watches("ResponseStarted") > before, "the watch to begin")
        return connection

    @contextmanager
    def _opened(self) -> Iterator[ssl.SSLSocket]:
        with self._wire.connected() as connection:
            connection.sendall(self._wire.head(f"GET {MAPS}?watch=1"))
            yield connection


@pytest.fixture
def probes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Peers that are gone are noticed after a second or two instead of a minute."""
    quick = {"TCP_KEEPIDLE": 1, "TCP_KEEPINTVL": 1, "TCP_KEEPCNT": 1, "TCP_USER_TIMEOUT": 1000}
    monkeypatch.setattr(navarch.cluster.embedded.http_connection, "_PROBES", quick)


@pytest.fixture
async def served(request: pytest.FixtureRequest) -> AsyncIterator[Served]:
    if "probes" in request.fixturenames:
        request.getfixturevalue("probes")
    async with EmbeddedCluster() as cluster:
        authority = ClusterAuthority.make(cluster.clock)
        context = server_context(authority, authority.server_pair(cluster.clock))
        async with HttpServer(cluster.server, context) as http:
            yield Served(cluster, http, authority)


async def until(holds: Callable[[], bool], what: str) -> None:
    clock = SystemClock()
    end = clock.monotonic() + SECONDS
    while not holds():
        assert clock.monotonic() < end, f"expected {what} within {SECONDS:g} s"
        await clock.sleep(0.01)


async def test_watcher_that_reads_nothing_harms_no_other(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Thousands of events reach whoever reads, little waits for whoever does not, who is cut off in the end."""
    monkeypatch.setattr(navarch.cluster.embedded.responses, "_WRITE_SECONDS", 1.0)
    most, seen = 0, list[str]()
    with ExitStack() as stack:
        await served.watching(stack)
        async with served.client.watch(ConfigMap) as events:
            for number in range(EVENTS):
                await served.client.create(ConfigMap(name=f"c-{number}", data={"k": TEXT}))
                most = max([most, *(each.get_write_buffer_size() for each in served.transports)])
            async with asyncio.timeout(SECONDS):
                while len(seen) < EVENTS:
                    seen.append((await anext(events)).object.name)
        assert seen == [f"c-{number}" for number in range(EVENTS)]
        assert most < MOST_WAITING
        await until(lambda: not served.transports, "the watcher to be cut off")
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize("writes", [0, 3], ids=["nothing happens", "something happens"])
@pytest.mark.usefixtures("probes")
async def test_watcher_that_is_gone_without_a_word_is_noticed(served: Served, writes: int) -> None:
    """Its machine answers nothing any more: neither to what is sent, nor to the question whether it is there."""
    with ExitStack() as stack:
        deafen(await served.watching(stack))
        for number in range(writes):
            await served.client.create(ConfigMap(name=f"c-{number}"))
        await until(lambda: served.watches("ResponseComplete") == 1, "the watcher to be given up")


def deafen(connection: socket.socket) -> None:
    """Lets the kernel drop every packet that comes for it, before anything is acknowledged."""
    code = ctypes.create_string_buffer(_DROP_ALL)
    program = struct.pack("HL", 1, ctypes.addressof(code))
    try:
        connection.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)
    except PermissionError:  # from Linux 6.18 on, for TCP
        pytest.skip("this kernel lets root alone drop the packets of a connection")


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_many_watchers_that_leave_leave_nothing(served: Served) -> None:
    """No connection, no watch, no task, no open file."""
    tasks, files = len(asyncio.all_tasks()), open_files()
    with ExitStack() as stack:
        for _ in range(MANY):
            await served.watching(stack)
        await served.client.create(ConfigMap(name="seen-by-all"))
        assert len(served.transports) == MANY
    await until(lambda: served.watches("ResponseComplete") == MANY, "every watch to end")
    await until(lambda: not served.transports, "every connection to be closed")
    await until(lambda: len(asyncio.all_tasks()) <= tasks, "every task to end")
    await until(lambda: open_files() <= files, "every file to be closed")
    assert len(served.cluster._assembled._watches) == 0
