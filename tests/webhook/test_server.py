"""The HTTPS server of webhooks: what it serves, what it refuses, and how long it waits."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from certificates import sign
from navarch._base.clock import Clock, ManualClock, SystemClock, settle
from navarch.observe.metrics import WebhookMetrics
from navarch.webhook import server
from navarch.webhook.http_connection import ReviewConnection
from navarch.webhook.http_request import LONGEST_HEAD
from navarch.webhook.router import Route, WebhookAnswer, WebhookRouter
from navarch.webhook.server import WebhookListener

PATH = "/validate/check.example.com"
LARGEST = 1000
_SECONDS = 10.0


class ReviewLog:
    """A webhook that notes the bodies it gets and returns them; while `gate` is closed it waits."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.reached = asyncio.Event()

    async def answer(self, body: bytes) -> WebhookAnswer:
        self.bodies.append(body)
        self.reached.set()
        await self.gate.wait()
        return WebhookAnswer(200, b"<%b>" % body)

    def router(self, clock: Clock) -> WebhookRouter:
        return WebhookRouter({PATH: Route(self.answer, LARGEST, WebhookMetrics(PATH))}, clock)


class RecordedTransport(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.state = "open"
        self.is_reading_paused = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def close(self) -> None:
        self.state = "closed"

    def abort(self) -> None:
        self.state = "aborted"

    def pause_reading(self) -> None:
        self.is_reading_paused = True

    def resume_reading(self) -> None:
        self.is_reading_paused = False


class Wire:
    """A connection without a socket, at a clock that stands still."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.log = ReviewLog()
        self.transport = RecordedTransport()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._listener = WebhookListener(self.log.router(self.clock), self.clock, context, "127.0.0.1", 0)
        self.connection = ReviewConnection(self._listener, self.clock.monotonic)
        self.connection.connection_made(self.transport)

    async def send(self, *pieces: bytes) -> None:
        """Delivers the pieces one after the other, and lets the answers be written."""
        for piece in pieces:
            self.connection.data_received(piece)
            await settle()

    async def pass_time(self, seconds: float) -> None:
        """Moves the time on, and ends what is late, as the listener does."""
        await self.clock.advance(seconds)
        if self.connection.due <= self.clock.monotonic():
            self.connection.expire()

    @property
    def status(self) -> int:
        """Returns the status of the only answer."""
        assert self.transport.written.count(b"HTTP/1.1 ") == 1, self.transport.written
        return int(self.transport.written.split(b" ", 2)[1])

    @property
    def message(self) -> str:
        """Returns what the only answer says; it is a Status."""
        said = json.loads(self.transport.written.partition(b"\r\n\r\n")[2])
        assert (said["kind"], said["status"], said["code"]) == ("Status", "Failure", self.status)
        return str(said["message"])


@pytest.fixture
async def wire() -> Wire:
    return Wire()


def request(body: bytes, *headers: str, path: str = PATH, method: str = "POST", version: str = "HTTP/1.1") -> bytes:
    lines = [f"{method} {path}?timeout=10s {version}", "Host: 127.0.0.1", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join((*lines, "", "")).encode() + body


def chunked(*pieces: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    head = f"POST {PATH} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    return head + b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + end


async def test_connection_is_kept_for_the_next_review(wire: Wire) -> None:
    """An answer has its length, and leaves the connection open."""
    await wire.send(request(b"one"))
    await wire.send(request(b"two"))
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\n<%b>"
    assert wire.transport.written == answer % b"one" + answer % b"two"
    assert wire.transport.state == "open"


async def test_review_may_arrive_byte_by_byte(wire: Wire) -> None:
    """Nothing depends on how the bytes are cut, in a body of known length and in chunks."""
    for whole in (request(b"review"), chunked(b"rev", b"iew", end=b"0;last\r\nX-Trailer: 1\r\n\r\n")):
        for position in range(len(whole)):
            wire.connection.data_received(whole[position : position + 1])
        await settle()
    assert wire.log.bodies == [b"review", b"review"]


async def test_pipelined_reviews_are_answered_in_order(wire: Wire) -> None:
    """Requests that come before the answer wait for it, and at some point are not read any more."""
    wire.log.gate.clear()
    await wire.send(request(b"one") + request(b"two") + chunked(b"three"))
    assert wire.log.bodies == [b"one"]
    await wire.send(*[request(b"x" * LARGEST)] * 20)
    assert wire.transport.is_reading_paused
    wire.log.gate.set()
    await settle()
    assert wire.log.bodies[:3] == [b"one", b"two", b"three"]
    assert len(wire.log.bodies) == 23
    assert not wire.transport.is_reading_paused
    assert wire.transport.written.index(b"<one>") < wire.transport.written.index(b"<two>")


async def test_client_that_does_not_read_is_not_answered_further(wire: Wire) -> None:
    """While answers pile up no further review is worked on; after ten seconds the connection is given up."""
    wire.connection.pause_writing()
    await wire.send(request(b"one"))
    assert wire.log.bodies == []
    await wire.pass_time(11)
    assert wire.transport.state == "aborted"


async def test_client_that_reads_again_is_answered(wire: Wire) -> None:
    """What arrived meanwhile is worked on."""
    wire.connection.pause_writing()
    await wire.send(request(b"one"))
    wire.connection.resume_writing()
    await settle()
    assert wire.log.bodies == [b"one"]


async def test_client_that_expects_to_continue_is_told_so(wire: Wire) -> None:
    """The body is asked for, once the head is known to be good."""
    head, body = request(b"review", "Expect: 100-continue")[:-6], b"review"
    await wire.send(head)
    assert wire.transport.written == b"HTTP/1.1 100 Continue\r\n\r\n"
    await wire.send(body)
    assert wire.transport.written.endswith(b"<review>")


async def test_body_that_is_too_large_is_not_asked_for(wire: Wire) -> None:
    """A client that expects to continue is refused before it sends the body."""
    await wire.send(request(b"x" * (LARGEST + 1), "Expect: 100-continue")[: -LARGEST - 1])
    assert wire.status == 413
    assert f"at most {LARGEST} bytes" in wire.message


@pytest.mark.parametrize(
    "sent",
    [
        request(b"one", "Connection: close"),
        request(b"one", "Connection: keep-alive", "connection: Close"),
        request(b"one", "Connection: close", version="HTTP/1.0"),
        request(b"one", version="HTTP/1.0"),
    ],
)
async def test_connection_is_closed_if_the_client_wishes(wire: Wire, sent: bytes) -> None:
    """The answer says that it is the last."""
    await wire.send(sent + request(b"two"))
    assert wire.log.bodies == [b"one"]
    assert b"\r\nConnection: close\r\n" in wire.transport.written
    assert wire.transport.state == "closed"
    await wire.pass_time(10)
    assert wire.transport.state == "aborted", "a client that does not read kept the connection"


async def test_old_client_may_keep_its_connection(wire: Wire) -> None:
    """HTTP/1.0 with keep-alive."""
    await wire.send(request(b"one", "Connection: Keep-Alive, TE", version="HTTP/1.0"))
    assert wire.transport.state == "open"


@pytest.mark.parametrize(
    ("sent", "status", "words"),
    [
        (request(b"", method="GET"), 405, "expected POST, got GET"),
        (
            request(b"", path="/elsewhere"),
            404,
            f"a webhook of this replica ({PATH}), got /elsewhere; in a rolling update",
        ),
        (b"hello\r\n\r\n", 400, "head of an HTTP request"),
        (b"POST  / HTTP/1.1\r\n\r\n", 400, "head of an HTTP request"),
        (b"POST https://a/b HTTP/1.1\r\n\r\n", 400, "head of an HTTP request"),
        (request(b"", version="HTTP/2.0"), 505, "expected HTTP/1.1, got HTTP/2.0"),
        (request(b"", "no colon"), 400, "head of an HTTP request"),
        (request(b"", "name : value"), 400, "head of an HTTP request"),
        (request(b"", "a: b\r\n folded"), 400, "head of an HTTP request"),
        (request(b"", "a: b\nc: d"), 400, "head of an HTTP request"),
        (request(b"", "a: \0"), 400, "head of an HTTP request"),
        (request(b"", "content-length: 1"), 400, "got two that differ"),
        (request(b"", "Transfer-Encoding: chunked"), 400, "got both"),
        (chunked(b"a").replace(b"chunked", b"gzip, chunked"), 501, "expected Transfer-Encoding chunked"),
        (request(b"").replace(b"Length: 0", b"Length: -1"), 400, "expected a number as Content-Length, got -1"),
        (request(b"").replace(b"Length: 0", b"Length: " + b"9" * 16), 400, "expected a number as Content-Length"),
        (request(b"", "Expect: a miracle"), 417, "got a miracle"),
        (request(b"x" * (LARGEST + 1)), 413, f"at most {LARGEST} bytes at {PATH}"),
        (chunked(b"x" * LARGEST, b"x"), 413, f"at most {LARGEST} bytes"),
        (chunked(end=b"-1\r\n"), 400, "expected the size of a chunk"),
        (chunked(end=b"1" * 2000), 400, "expected the size of a chunk, got a longer line"),
        (chunked(end=b"1\r\nab\r\n"), 400, "expected the end of a chunk"),
        (chunked(end=b"0\r\n" + b"A: b\r\n" * LONGEST_HEAD), 431, "bytes of trailers"),
        (request(b"", f"a: {'b' * LONGEST_HEAD}"), 431, f"a head of at most {LONGEST_HEAD} bytes"),
        (b"a" * LONGEST_HEAD, 431, f"a head of at most {LONGEST_HEAD} bytes"),
    ],
)
async def test_request_that_is_not_served_is_refused(wire: Wire, sent: bytes, status: int, words: str) -> None:
    """The answer is a Status that says why. What else the client sends is dropped, and the connection ends soon."""
    await wire.send(sent)
    assert (wire.status, words in wire.message) == (status, True), wire.transport.written
    assert b"\r\nConnection: close\r\n" in wire.transport.written
    await wire.send(request(b"more"))
    assert wire.log.bodies == []
    assert wire.transport.state == "open", "the client would lose the answer"
    await wire.pass_time(1)
    assert wire.transport.state == "aborted"


@pytest.mark.parametrize(
    ("sent", "what"),
    [(request(b"")[:20], "head"), (request(b"review")[:-1], "review"), (chunked(b"review")[:-4], "review")],
)
async def test_client_that_stalls_is_refused(wire: Wire, sent: bytes, what: str) -> None:
    """A part of a request is waited for ten seconds, however often a byte arrives."""
    await wire.send(sent[:-1])
    await wire.pass_time(9)
    await wire.send(sent[-1:])
    assert wire.transport.written == b""
    await wire.pass_time(1)
    assert wire.status == 408
    assert f"expected the whole {what} within 10 s" in wire.message
    await wire.pass_time(1)
    assert wire.transport.state == "aborted"


async def test_idle_connection_is_closed(wire: Wire) -> None:
    """An API server keeps connections open; one of which nothing was heard for two minutes is closed."""
    await wire.send(request(b"one"))
    await wire.pass_time(119)
    assert wire.transport.state == "open"
    await wire.pass_time(1)
    assert wire.transport.state == "aborted"


async def test_function_that_is_slow_keeps_its_connection(wire: Wire) -> None:
    """The time of a function is limited by its own timeout, not by that of the connection."""
    wire.log.gate.clear()
    await wire.send(request(b"one"))
    await wire.pass_time(1000)
    wire.log.gate.set()
    await settle()
    assert wire.transport.written.endswith(b"<one>")


async def test_answer_for_a_lost_connection_is_dropped(wire: Wire) -> None:
    """The function may end after its client."""
    wire.log.gate.clear()
    await wire.send(request(b"one"))
    wire.connection.connection_lost(None)
    wire.log.gate.set()
    await settle()
    assert wire.transport.written == b""


@asynccontextmanager
async def served(
    folder: Path, log: ReviewLog, clock: Clock | None = None
) -> AsyncIterator[tuple[WebhookListener, ssl.SSLContext]]:
    """Yields a server on a socket, and how a client trusts it."""
    clock = clock or SystemClock()
    authority = sign("ca")
    pair = sign("server", authority)
    (folder / "tls.crt").write_bytes(pair.pem)
    (folder / "tls.key").write_bytes(pair.key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    async with WebhookListener(log.router(clock), clock, context, "127.0.0.1", 0) as listener:
        yield listener, ssl.create_default_context(cadata=authority.pem.decode())


class ReviewClient:
    """A client on a socket; every wait is bounded."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, listener: WebhookListener, trusted: ssl.SSLContext | None) -> ReviewClient:
        async with asyncio.timeout(_SECONDS):
            return cls(*await asyncio.open_connection("127.0.0.1", listener.port, ssl=trusted))

    def write(self, data: bytes) -> None:
        self._writer.write(data)

    async def answer(self) -> bytes:
        """Returns the body of the next answer."""
        async with asyncio.timeout(_SECONDS):
            head = await self._reader.readuntil(b"\r\n\r\n")
            length = int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0])
            return await self._reader.readexactly(length)

    async def rest(self) -> bytes:
        """Returns what comes until the server closes the connection."""
        async with asyncio.timeout(_SECONDS):
            return await self._reader.read()

    def close(self) -> None:
        self._writer.transport.abort()


async def test_reviews_are_served_over_tls(tmp_path: Path) -> None:
    """Two reviews over one connection; the second is larger than what one read returns."""
    log = ReviewLog()
    async with served(tmp_path, log) as (listener, trusted):
        client = await ReviewClient.connect(listener, trusted)
        client.write(request(b"one"))
        assert await client.answer() == b"<one>"
        client.write(request(b"x" * LARGEST))
        assert await client.answer() == b"<%b>" % (b"x" * LARGEST)
        client.close()


async def test_refusal_reaches_a_client_that_still_sends(tmp_path: Path) -> None:
    """A body that is too large is not read to its end, and yet the client gets the answer and not a reset."""
    async with served(tmp_path, ReviewLog()) as (listener, trusted):
        client = await ReviewClient.connect(listener, trusted)
        client.write(request(b"x" * 5_000_000))
        assert b"expected a review of at most 1000 bytes" in await client.answer()
        client.close()


async def test_plain_http_is_not_served(tmp_path: Path) -> None:
    """A client without TLS is disconnected, and no function is called."""
    log = ReviewLog()
    async with served(tmp_path, log) as (listener, _):
        client = await ReviewClient.connect(listener, None)
        client.write(request(b"one"))
        assert b"HTTP/1.1" not in await client.rest()
        client.close()
    assert log.bodies == []


async def test_answer_under_way_is_completed_at_the_end(tmp_path: Path) -> None:
    """The server stops when the last answer is written; idle connections are closed at once."""
    log = ReviewLog()
    log.gate.clear()
    async with asyncio.TaskGroup() as group:
        async with served(tmp_path, log) as (listener, trusted):
            idle = await ReviewClient.connect(listener, trusted)
            busy = await ReviewClient.connect(listener, trusted)
            busy.write(request(b"one"))
            async with asyncio.timeout(_SECONDS):
                await log.reached.wait()

            async def open_gate() -> None:
                assert await idle.rest() == b""
                log.gate.set()

            group.create_task(open_gate())
        assert (await busy.rest()).endswith(b"Connection: close\r\n\r\n<one>")
    idle.close()
    busy.close()


async def test_late_connections_are_found(tmp_path: Path) -> None:
    """The listener looks after the time limits of its connections."""
    clock = ManualClock()
    async with served(tmp_path, ReviewLog(), clock) as (listener, trusted):
        client = await ReviewClient.connect(listener, trusted)
        client.write(request(b"one"))
        await client.answer()
        await clock.advance(121)
        assert await client.rest() == b""
        client.close()


async def test_one_more_connection_takes_the_place_of_an_idle_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients that only connect cannot keep an API server out."""
    monkeypatch.setattr(server, "_MOST_CONNECTIONS", 2)
    async with served(tmp_path, ReviewLog()) as (listener, trusted):
        clients = [await ReviewClient.connect(listener, trusted) for _ in range(3)]
        clients[2].write(request(b"one"))
        assert await clients[2].answer() == b"<one>"
        assert await clients[0].rest() == b""
        for client in clients:
            client.close()
