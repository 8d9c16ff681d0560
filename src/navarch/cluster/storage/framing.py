"""Frames: pieces of a file of which one can tell whether they were written completely.

A file begins with `HEADER`. A frame has a mark, the length of its payload and a checksum that also covers the place of
the frame in the file, so that nothing inside a payload passes for a frame.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from navarch.cluster.storage.protocol import StorageError

HEADER = b"navarch1"

_MARK = b"NVFR"
_HEAD = struct.Struct("<4sII")
_PLACE = struct.Struct("<QI")


class DamagedError(StorageError):
    """A file of the store is not as it was written; names the file and the place."""

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
    return _HEAD.pack(_MARK, len(payload), _checksum(payload, offset)) + payload


def read_frames(path: Path, data: bytes, *, may_be_torn: bool) -> Iterator[Frame]:
    """The frames of a file.

    What follows the last intact frame is left out if the file may be torn, that is if its last write may not have
    ended. Raises `DamagedError` for everything else that is no frame.
    """
    if data[: len(HEADER)] != HEADER:
        raise DamagedError(path, 0, "expected a file that this store has written")
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
        raise DamagedError(path, offset, "expected an intact record")
    place = data.find(_MARK, offset + 1)
    while place >= 0:
        if _intact(data, place):
            raise DamagedError(path, offset, f"expected an intact record, there is another one at byte {place}")
        place = data.find(_MARK, place + 1)


def _intact(data: bytes, offset: int) -> Frame | None:
    if len(data) - offset < _HEAD.size:
        return None
    mark, length, checksum = _HEAD.unpack_from(data, offset)
    begin = offset + _HEAD.size
    payload = memoryview(data)[begin : begin + length]
    if mark != _MARK or len(payload) != length or checksum != _checksum(payload, offset):
        return None
    return Frame(offset, begin + length, payload)


def _checksum(payload: bytes | memoryview, offset: int) -> int:
    return zlib.crc32(payload, zlib.crc32(_PLACE.pack(offset, len(payload))))
