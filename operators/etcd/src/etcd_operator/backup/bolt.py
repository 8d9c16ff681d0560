"""Reads from etcd's database file how far it goes. etcd keeps it with bbolt: a tree of pages, two of which say where it begins."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Final

from etcd_operator.backup.faults import DamagedError

__all__ = ["revision_of"]

_HEADER: Final = struct.Struct("<QHHI")
_META: Final = struct.Struct("<IIIIQQQQQQ")
_BRANCH: Final = struct.Struct("<IIQ")
_LEAF: Final = struct.Struct("<IIII")
_MAGIC: Final = 0xED0CDAED
_IS_BRANCH: Final = 1
_IS_LEAF: Final = 2
_PAGE_SIZES: Final = (4096, 8192, 16384, 65536)
_DEEPEST: Final = 64


def revision_of(path: Path) -> int:
    """The newest revision in the file; raises `DamagedError` if that is no database of etcd."""
    try:
        with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
            return _Tree(data).revision()
    except (struct.error, ValueError, IndexError) as error:
        raise DamagedError("the snapshot is no database of etcd") from error


class _Tree:
    """The pages of one file."""

    def __init__(self, data: mmap) -> None:
        self._data = data
        self._size, self._root = _beginning(data)

    def revision(self) -> int:
        """That of the last key: keys are revisions, in order."""
        for name, value in self._leaves(self._root * self._size):
            if name == b"key":
                return self._last(value)
        raise DamagedError("the snapshot has no keys of etcd in it")

    def _last(self, bucket: int) -> int:
        (page,) = struct.unpack_from("<Q", self._data, bucket)
        place = page * self._size if page else bucket + 16
        for _ in range(_DEEPEST):
            _, flags, count, _ = _HEADER.unpack_from(self._data, place)
            if flags & _IS_LEAF:
                return self._newest(place, count)
            _, _, page = _BRANCH.unpack_from(self._data, place + 16 + 16 * (count - 1))
            place = page * self._size
        raise DamagedError("the snapshot's pages lead to each other")

    def _newest(self, place: int, count: int) -> int:
        if not count:
            return 1
        at = place + 16 + 16 * (count - 1)
        _, position, _, _ = _LEAF.unpack_from(self._data, at)
        (revision,) = struct.unpack_from(">Q", self._data, at + position)
        return int(revision)

    def _leaves(self, place: int) -> Iterator[tuple[bytes, int]]:
        """Names, and where their values are, in all leaves below a page."""
        _, flags, count, _ = _HEADER.unpack_from(self._data, place)
        for at in range(place + 16, place + 16 + 16 * count, 16):
            if flags & _IS_BRANCH:
                yield from self._leaves(_BRANCH.unpack_from(self._data, at)[2] * self._size)
            else:
                _, position, length, _ = _LEAF.unpack_from(self._data, at)
                start = at + position
                yield self._data[start : start + length], start + length


def _beginning(data: mmap) -> tuple[int, int]:
    """The size of pages, and the first page of the newer of the two trees."""
    found = []
    for place in (0, *_PAGE_SIZES):
        if len(data) >= place + 16 + _META.size:
            magic, _, size, _, root, _, _, _, transaction, _ = _META.unpack_from(data, place + 16)
            if magic == _MAGIC:
                found.append((transaction, size, root))
    if not found:
        raise DamagedError("the snapshot is no database of etcd")
    _, size, root = max(found)
    return size, root
