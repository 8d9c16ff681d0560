"""The format of logs and snapshots: records, in frames that show whether they were written completely.

A file begins with `HEADER`. A frame has a mark, the length of its payload and a checksum that also covers the position of the
frame in the file, so that no bytes inside a payload pass for a frame.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

from navarch.cluster.storage.protocol import StorageError

HEADER = b"navarch1"

_MARK = b"NVFR"
_FRAME_HEAD = struct.Struct("<4sII")
_PLACE = struct.Struct("<QI")


class DamagedStorageError(StorageError):
    """A file of the storage is damaged; names the file and the offset."""

    def __init__(self, path: Path, offset: int, what: str) -> None:
        super().__init__(f"{path} is damaged at byte {offset}: {what}; restore the folder from a copy")
        self.path = path
        self.offset = offset


class Frame(NamedTuple):
    """A payload, and where in the file its frame begins and ends."""

    begin: int
    end: int
    payload: memoryview


def frame(payload: bytes, offset: int) -> bytes:
    """The frame of that payload for that place in the file."""
    return _FRAME_HEAD.pack(_MARK, len(payload), _checksum(payload, offset)) + payload


def read_frames(path: Path, data: bytes, *, may_be_torn: bool) -> Iterator[Frame]:
    """The frames of a file.

    What follows the last intact frame is left out if the file may be torn, that is if its last write may not have
    ended. Raises `DamagedStorageError` for everything else that is no frame.
    """
    if data[: len(HEADER)] != HEADER:
        raise DamagedStorageError(path, 0, "expected a file that this store has written")
    offset = len(HEADER)
    while offset < len(data):
        found = _intact(data, offset)
        if found is None:
            _require_torn(path, data, offset, may_be_torn=may_be_torn)
            return
        yield found
        offset = found.end


def _require_torn(path: Path, data: bytes, offset: int, *, may_be_torn: bool) -> None:
    """Of the last write nothing else can follow: an intact frame further on means that this one was damaged later."""
    if not may_be_torn:
        raise DamagedStorageError(path, offset, "expected an intact record")
    place = data.find(_MARK, offset + 1)
    while place >= 0:
        if _intact(data, place):
            raise DamagedStorageError(path, offset, f"expected an intact record, there is another one at byte {place}")
        place = data.find(_MARK, place + 1)


def _intact(data: bytes, offset: int) -> Frame | None:
    if len(data) - offset < _FRAME_HEAD.size:
        return None
    mark, length, checksum = _FRAME_HEAD.unpack_from(data, offset)
    begin = offset + _FRAME_HEAD.size
    payload = memoryview(data)[begin : begin + length]
    if mark != _MARK or len(payload) != length or checksum != _checksum(payload, offset):
        return None
    return Frame(offset, begin + length, payload)


def _checksum(payload: bytes | memoryview, offset: int) -> int:
    return zlib.crc32(payload, zlib.crc32(_PLACE.pack(offset, len(payload))))


_RECORD_HEAD = struct.Struct("<BQII")


class RecordOperation(IntEnum):
    """The kind of a record."""

    PUT = 1
    DELETE = 2
    COMPACT = 3
    END = 4  # of a snapshot; its revision is the snapshot's


class WriteRecord(NamedTuple):
    """One write; `key` and `value` are empty where the operation has none."""

    operation: RecordOperation
    revision: int
    key: str = ""
    value: bytes = b""


def encode(record: WriteRecord) -> bytes:
    """The record as bytes."""
    operation, revision, key, value = record
    name = key.encode("utf-8", "surrogatepass")
    return b"".join((_RECORD_HEAD.pack(operation, revision, len(name), len(value)), name, value))


def read_records(payload: memoryview) -> Iterator[WriteRecord]:
    """The records of a payload that is known to be intact."""
    offset = 0
    while offset < len(payload):
        operation, revision, key_size, value_size = _RECORD_HEAD.unpack_from(payload, offset)
        key_end = offset + _RECORD_HEAD.size + key_size
        key = str(payload[offset + _RECORD_HEAD.size : key_end], "utf-8", "surrogatepass")
        offset = key_end + value_size
        yield WriteRecord(RecordOperation(operation), revision, key, bytes(payload[key_end:offset]))
