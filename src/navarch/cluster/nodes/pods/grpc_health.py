"""A client of `grpc.health.v1.Health/Check`, with the part of HTTP/2 that one call needs."""

from __future__ import annotations

import asyncio
import struct
from typing import Final

_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _GOAWAY = 0, 1, 3, 4, 6, 7
_END_STREAM, _END_HEADERS, _ACK, _PADDED = 1, 4, 1, 8
_SERVING: Final = 1
_STATES: Final = {0: "UNKNOWN", 2: "NOT_SERVING", 3: "SERVICE_UNKNOWN"}
_SAYS: Final = 'service unhealthy (responded with "{}")'


async def grpc_fault(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, service: str) -> str | None:
    """Checks the service over the connection; returns why it is not serving, or None."""
    authority = "{}:{}".format(*writer.get_extra_info("peername")[:2])
    message = _message(service)
    writer.write(
        _PREFACE
        + _frame(_SETTINGS, 0, 0, b"")
        + _frame(_HEADERS, _END_HEADERS, 1, _headers(authority))
        + _frame(_DATA, _END_STREAM, 1, message)
    )
    try:
        body = await _answer(reader, writer)
    except asyncio.IncompleteReadError:
        return "error: health rpc probe failed: connection closed"
    if body is None:
        return "error: this server does not implement the grpc health protocol (grpc.health.v1.Health)"
    status = _status(body)
    return None if status == _SERVING else _SAYS.format(_STATES.get(status, str(status)))


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def _headers(authority: str) -> bytes:
    """Encodes headers as literals without indexing, so that no table is needed."""
    fields = {
        ":method": "POST",
        ":scheme": "http",
        ":path": "/grpc.health.v1.Health/Check",
        ":authority": authority,
        "content-type": "application/grpc",
        "te": "trailers",
        "user-agent": "kube-probe/1.36",
    }
    texts = ((name.encode(), value.encode()) for name, value in fields.items())
    return b"".join(b"\x00" + _text(name) + _text(value) for name, value in texts)


def _text(data: bytes) -> bytes:
    assert len(data) < 127, "longer texts need more than one byte for their length"
    return bytes([len(data)]) + data


def _message(service: str) -> bytes:
    name = service.encode()
    body = b"\x0a" + _varint(len(name)) + name if name else b""
    return b"\x00" + struct.pack(">I", len(body)) + body


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes | None:
    """Returns the data of the answer; None if it has none, as errors do."""
    found = b""
    while True:
        head = await reader.readexactly(9)
        size, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
        payload = await reader.readexactly(size)
        if kind == _SETTINGS and not flags & _ACK:
            writer.write(_frame(_SETTINGS, _ACK, 0, b""))
        elif kind == _PING and not flags & _ACK:
            writer.write(_frame(_PING, _ACK, 0, payload))
        elif kind == _DATA:
            found += payload[1 : -payload[0] or None] if flags & _PADDED else payload
        elif kind in {_RESET, _GOAWAY}:
            return found or None
        if kind in {_DATA, _HEADERS} and flags & _END_STREAM:
            return found or None


def _status(body: bytes) -> int:
    """Returns the field `status` of a HealthCheckResponse; 0 if it is absent."""
    message = body[5:]
    return message[1] if message[:1] == b"\x08" else 0
