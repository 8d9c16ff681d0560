"""Records: what a frame of the log or of a snapshot is about."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

_HEAD = struct.Struct("<BQII")


class Operation(IntEnum):
    """What a record says."""

    PUT = 1
    DELETE = 2
    COMPACT = 3
    END = 4  # of a snapshot; its revision is the snapshot's


class Record(NamedTuple):
    """One write; `key` and `value` are empty where the operation has none."""

    operation: Operation
    revision: int
    key: str = ""
    value: bytes = b""


def encode(record: Record) -> bytes:
    """The record as bytes."""
    operation, revision, key, value = record
    name = key.encode("utf-8", "surrogatepass")
    return b"".join((_HEAD.pack(operation, revision, len(name), len(value)), name, value))


def read_records(payload: memoryview) -> Iterator[Record]:
    """The records of a payload that is known to be intact."""
    offset = 0
    while offset < len(payload):
        operation, revision, key_size, value_size = _HEAD.unpack_from(payload, offset)
        key_end = offset + _HEAD.size + key_size
        key = str(payload[offset + _HEAD.size : key_end], "utf-8", "surrogatepass")
        offset = key_end + value_size
        yield Record(Operation(operation), revision, key, bytes(payload[key_end:offset]))
