"""Probes speak the health protocol of gRPC."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from navarch.cluster.nodes.pods.grpc_health import grpc_fault


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def _answer(message: bytes) -> bytes:
    """Headers, one message, trailers; with settings and a ping before, which a client answers."""
    body = b"\x00" + struct.pack(">I", len(message)) + message
    return b"".join(
        [
            _frame(4, 0, 0, b""),
            _frame(6, 0, 0, b"12345678"),
            _frame(1, 4, 1, b"\x88"),
            _frame(0, 0, 1, body),
            _frame(1, 5, 1, b"\x88"),
        ]
    )


@asynccontextmanager
async def _server(answer: bytes, asked: bytearray) -> AsyncIterator[tuple[str, int]]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.extend(await reader.read(65536))
        writer.write(answer)
        writer.close()
        served.set()

    served = asyncio.Event()
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()
        await served.wait()


@pytest.mark.parametrize(
    ("answer", "fault"),
    ids=["serving", "not serving", "unknown", "no such service", "no gRPC"],
    argvalues=[
        (_answer(b"\x08\x01"), None),
        (_answer(b"\x08\x02"), 'service unhealthy (responded with "NOT_SERVING")'),
        (_answer(b""), 'service unhealthy (responded with "UNKNOWN")'),
        (
            _frame(4, 0, 0, b"") + _frame(1, 5, 1, b"\x88"),
            "error: this server does not implement the grpc health protocol",
        ),
        (b"HTTP/1.1 400", "error: health rpc probe failed: connection closed"),
    ],
)
async def test_answers_are_understood(answer: bytes, fault: str | None) -> None:
    """A serving service is healthy; every other answer is reported in Kubernetes' words."""
    asked = bytearray()
    async with _server(answer, asked) as address:
        reader, writer = await asyncio.open_connection(*address)
        try:
            async with asyncio.timeout(30):
                found = await grpc_fault(reader, writer, "my.Service")
        finally:
            writer.close()
    assert found == fault or (found is not None and fault is not None and found.startswith(fault))
    assert asked.startswith(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    assert b"/grpc.health.v1.Health/Check" in asked
    assert asked.endswith(b"\x00\x00\x00\x00\x0c\x0a\x0amy.Service")
