"""SPDY/3.1: frames, and streams of one connection."""

from __future__ import annotations

import asyncio
import struct
import zlib
from collections.abc import Mapping
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.streams.wires import FakeSocket, SpdyClient, control
from navarch.cluster.server.wire.spdy import (
    DICTIONARY,
    MOST_STREAMS,
    DataFrame,
    FrameDecoder,
    FrameEncoder,
    GoAway,
    Ping,
    RstStream,
    SpdyConnection,
    SpdyError,
    SpdyStream,
    SynStream,
)


class Echo:
    """Accepts streams that have a name, and keeps them."""

    def __init__(self) -> None:
        self.streams: dict[int, SpdyStream] = {}

    def wants(self, headers: Mapping[str, str]) -> bool:
        return "name" in headers

    def begin(self, stream: SpdyStream) -> None:
        self.streams[stream.number] = stream


def test_frames_come_whole_however_they_are_cut() -> None:
    """Byte by byte or all at once."""
    raw = SpdyClient(FakeSocket()).frame(1, {"streamType": "data", "port": "80"})
    raw += (
        FrameEncoder().data(1, b"abc", fin=True)
        + FrameEncoder().ping(5)
        + FrameEncoder().reset(1)
        + FrameEncoder().go_away(1)
    )
    expected = [
        SynStream(1, {"streamtype": "data", "port": "80"}, False),
        DataFrame(1, b"abc", True),
        Ping(5),
        RstStream(1),
        GoAway(),
    ]
    assert list(FrameDecoder().feed(raw)) == expected
    decoder = FrameDecoder()
    assert [frame for byte in raw for frame in decoder.feed(bytes([byte]))] == expected


def test_headers_of_later_streams_refer_to_earlier_ones() -> None:
    """They share one compression."""
    client, decoder = SpdyClient(FakeSocket()), FrameDecoder()
    first, second = client.frame(1, {"name": "x" * 500}), client.frame(3, {"name": "x" * 500})
    assert len(second) < len(first)
    assert [frame for raw in (first, second) for frame in decoder.feed(raw)] == [
        SynStream(1, {"name": "x" * 500}, False),
        SynStream(3, {"name": "x" * 500}, False),
    ]


def test_frames_that_nobody_needs_are_passed_over() -> None:
    """SETTINGS, HEADERS and WINDOW_UPDATE."""
    raw = control(4, bytes(4)) + control(8, bytes(4)) + control(9, bytes(8))
    assert list(FrameDecoder().feed(raw + FrameEncoder().ping(1))) == [Ping(1)]


def _bomb() -> bytes:
    packer = zlib.compressobj(zdict=DICTIONARY)
    packed = packer.compress(struct.pack(">II", 1, 2**20) + bytes(2**20)) + packer.flush(zlib.Z_SYNC_FLUSH)
    return control(1, struct.pack(">IIH", 1, 0, 0) + packed)


@pytest.mark.parametrize(
    "raw",
    [
        struct.pack(">II", 0x80020001, 10) + bytes(10),
        struct.pack(">II", 0x80030001, 2**20),
        control(1, struct.pack(">IIH", 1, 0, 0) + b"no compression"),
        control(1, b""),
        control(3, b""),
        _bomb(),
    ],
    ids=["another version", "large", "not compressed", "no stream", "short", "bomb"],
)
def test_what_is_no_spdy_is_an_error(raw: bytes) -> None:
    """And nothing is kept for what may follow."""
    with pytest.raises(SpdyError):
        list(FrameDecoder().feed(raw))


@given(st.binary(max_size=200))
def test_no_bytes_break_the_decoder(raw: bytes) -> None:
    """There are frames, or there is a `SpdyError`."""
    with suppress(SpdyError):
        list(FrameDecoder().feed(b"\x80\x03\x00\x01" + raw))


async def test_streams_are_accepted_answered_and_finished() -> None:
    """Each direction on its own; a ping comes back."""
    socket, echo = FakeSocket(), Echo()
    client = SpdyClient(socket)
    client.open(1, name="a")
    client.data(1, b"hello", fin=True)
    client.ping(7)
    async with asyncio.TaskGroup() as group:
        group.create_task(SpdyConnection(socket).run(echo))
        assert await client.got() == ("reply", 1, b"", False)
        assert await client.got() == ("ping", 7, b"", False)
        stream = echo.streams[1]
        assert [await stream.receive(), await stream.receive()] == [b"hello", None]
        await stream.send(b"x" * 40_000)
        await stream.finish()
        await stream.finish()
        await stream.send(b"too late")
        client.leave()
    sizes = [(len(data), fin) for _, _, data, fin in [await client.got() for _ in range(3)]]
    assert sizes == [(32768, False), (7232, False), (0, True)]
    assert socket.sent.empty()


async def test_streams_that_are_not_wanted_are_reset() -> None:
    """Without the headers that they need, with a number of the server's, or one that was used."""
    socket, echo = FakeSocket(), Echo()
    client = SpdyClient(socket)
    for number, headers in (
        (1, {}),
        (2, {"name": "even"}),
        (5, {"name": "a"}),
        (3, {"name": "back"}),
        (5, {"name": "b"}),
    ):
        client.open(number, **headers)
    client.leave()
    await SpdyConnection(socket).run(echo)
    kinds = [(kind, number) for kind, number, _, _ in [await client.got() for _ in range(5)]]
    assert kinds == [("reset", 1), ("reset", 2), ("reply", 5), ("reset", 3), ("reset", 5)]


async def test_streams_beyond_the_limit_are_reset() -> None:
    """A client cannot have any number of them open."""
    socket, echo = FakeSocket(), Echo()
    client = SpdyClient(socket)
    for number in range(MOST_STREAMS + 1):
        client.open(2 * number + 1, name="a")
    client.leave()
    await SpdyConnection(socket).run(echo)
    kinds = [(await client.got())[0] for _ in range(MOST_STREAMS + 1)]
    assert kinds == ["reply"] * MOST_STREAMS + ["reset"]


async def test_client_that_breaks_the_protocol_is_told_to_go_away() -> None:
    """And its streams end."""
    socket, echo = FakeSocket(), Echo()
    client = SpdyClient(socket)
    client.open(1, name="a")
    socket.coming.put_nowait(struct.pack(">II", 0x80020006, 4) + bytes(4))
    async with asyncio.timeout(30):
        await SpdyConnection(socket).run(echo)
    assert [(await client.got())[:2], (await client.got())[:2]] == [("reply", 1), ("go away", 1)]
    assert await echo.streams[1].receive() is None
