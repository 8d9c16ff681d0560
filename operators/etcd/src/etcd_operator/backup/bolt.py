"""Reads the newest revision from etcd's database file, which may be crafted by an attacker.

etcd stores its data with bbolt: a B+ tree of pages, with two meta pages that name its root. The parser reads only the pages
on the path to the last key, each at most once, and checks every number before it uses it. The cost does not depend on the
contents, and an invalid file raises `DamagedSnapshotError`.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from etcd_operator.backup.snapshot_store import DamagedSnapshotError

MAX_REVISION: Final = 1 << 62
"""The limit of a revision: etcd counts with 63 bits, and a restore continues above the snapshot's revision."""
_HEADER: Final = struct.Struct("<QHHI")
_META: Final = struct.Struct("<IIIIQQQQQQ")
_BRANCH: Final = struct.Struct("<IIQ")
_LEAF: Final = struct.Struct("<IIII")
_BUCKET: Final = struct.Struct("<QQ")
_REVISION: Final = struct.Struct(">QcQ")
_MAGIC: Final = 0xED0CDAED
_VERSION: Final = 2
_IS_BRANCH: Final = 1
_IS_LEAF: Final = 2
_IS_BUCKET: Final = 1
_PAGE_SIZES: Final = (4096, 8192, 16384, 32768, 65536)
_MAX_DEPTH: Final = 64
"""The limit of the tree's depth; a deeper tree would exceed any disk."""
_KEYS: Final = b"key"
"""The bucket whose keys are revisions."""


def revision_of(path: Path) -> int:
    """Returns the newest revision in the file; raises `DamagedSnapshotError` if it is not an etcd database."""
    with path.open("rb") as file:
        return _BoltDatabase(_DatabaseFile(file.fileno())).revision()


class _DatabaseFile:
    """The bytes of an open file; reads never leave it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.size = os.fstat(descriptor).st_size

    def read(self, start: int, length: int) -> bytes:
        """Reads bytes; raises `DamagedSnapshotError` outside of the file."""
        if not 0 <= start <= self.size - length:
            raise _damaged("a page points outside of the file")
        content = os.pread(self._descriptor, length, start)
        if len(content) != length:
            raise _damaged("it was truncated during the read")
        return content


@dataclass(frozen=True, slots=True)
class _BoltPage:
    """A page, or an inline bucket inside a value."""

    start: int
    is_leaf: bool
    count: int

    def element(self, index: int) -> int:
        """Returns the offset of an element; all have the same size."""
        return self.start + _HEADER.size + 16 * index


@dataclass(frozen=True, slots=True)
class _LeafElement:
    """An element of a leaf: the offset of its key, the sizes of key and value, and whether the value is a bucket."""

    start: int
    key_size: int
    value_size: int
    is_bucket: bool


class _BoltDatabase:
    """The tree of one file. All methods raise `DamagedSnapshotError`."""

    def __init__(self, data: _DatabaseFile) -> None:
        self._data = data
        self._page_size, self._root = _beginning(data)

    def revision(self) -> int:
        """Returns the revision of the last key: keys are revisions, in order."""
        item = self._found(self._root, _KEYS)
        if not item.is_bucket or item.value_size < _BUCKET.size:
            raise _damaged("its keys are not in a bucket")
        start = item.start + item.key_size
        (root, _) = _BUCKET.unpack(self._data.read(start, _BUCKET.size))
        page = self._page(root) if root else self._header(start + _BUCKET.size)
        return self._newest(self._last(page))

    def _found(self, root: int, name: bytes) -> _LeafElement:
        """Returns the element of that name below a page, by binary search at each level."""
        for page in self._descent(self._page(root), name):
            if page.is_leaf:
                index = self._position(page, name)
                if index < 0:
                    break
                item = self._item(page, index)
                if item.key_size == len(name) and self._data.read(item.start, len(name)) == name:
                    return item
        raise _damaged("it contains no keys of etcd")

    def _last(self, page: _BoltPage) -> _BoltPage:
        """Returns the leaf with the highest keys."""
        for each in self._descent(page, None):
            page = each
        return page

    def _descent(self, page: _BoltPage, name: bytes | None) -> Iterator[_BoltPage]:
        """Yields the pages on the path to that name, or to the last key; refuses a page that comes twice."""
        seen = {page.start}
        yield page
        while not page.is_leaf:
            if not page.count:
                raise _damaged("a branch is empty")
            index = page.count - 1 if name is None else max(0, self._position(page, name))
            (_, _, below) = _BRANCH.unpack(self._data.read(page.element(index), _BRANCH.size))
            page = self._page(below)
            if page.start in seen or len(seen) >= _MAX_DEPTH:
                raise _damaged("its pages form a cycle")
            seen.add(page.start)
            yield page

    def _position(self, page: _BoltPage, name: bytes) -> int:
        """Returns the index of the last element whose key is not above that name; -1 if all are."""
        low, high = 0, page.count
        while low < high:
            middle = (low + high) // 2
            if self._key(page, middle, len(name) + 1) <= name:
                low = middle + 1
            else:
                high = middle
        return low - 1

    def _key(self, page: _BoltPage, index: int, most: int) -> bytes:
        """Returns the first bytes of a key, at most as many as a comparison needs."""
        if page.is_leaf:
            item = self._item(page, index)
            return self._data.read(item.start, min(most, item.key_size))
        place = page.element(index)
        position, size, _ = _BRANCH.unpack(self._data.read(place, _BRANCH.size))
        return self._data.read(place + position, min(most, size))

    def _newest(self, page: _BoltPage) -> int:
        if not page.count:
            return 1
        item = self._item(page, page.count - 1)
        if item.key_size < _REVISION.size:
            raise _damaged("its last key is not a revision")
        revision, separator, _ = _REVISION.unpack(self._data.read(item.start, _REVISION.size))
        if separator != b"_" or not 0 < revision <= MAX_REVISION:
            raise _damaged("its last key is not a revision")
        return int(revision)

    def _item(self, page: _BoltPage, index: int) -> _LeafElement:
        place = page.element(index)
        flags, position, key_size, value_size = _LEAF.unpack(self._data.read(place, _LEAF.size))
        start = place + position
        if start + key_size + value_size > self._data.size:
            raise _damaged("a key points outside of the file")
        return _LeafElement(start, key_size, value_size, is_bucket=bool(flags & _IS_BUCKET))

    def _page(self, number: int) -> _BoltPage:
        return self._header(number * self._page_size, number)

    def _header(self, start: int, number: int = 0) -> _BoltPage:
        own, flags, count, _ = _HEADER.unpack(self._data.read(start, _HEADER.size))
        if own != number or flags not in {_IS_BRANCH, _IS_LEAF}:
            raise _damaged("a page does not match its reference")
        return _BoltPage(start, flags == _IS_LEAF, count)


def _beginning(data: _DatabaseFile) -> tuple[int, int]:
    """Returns the page size and the root page of the newer meta page."""
    found = []
    for place in (0, *_PAGE_SIZES):
        if data.size >= place + _HEADER.size + _META.size:
            content = data.read(place + _HEADER.size, _META.size)
            magic, version, size, _, root, _, _, _, transaction, _ = _META.unpack(content)
            if magic == _MAGIC and version == _VERSION and size in _PAGE_SIZES and place in {0, size}:
                found.append((transaction, size, root))
    if not found:
        raise DamagedSnapshotError("the snapshot is not an etcd database")
    _, size, root = max(found)
    return size, root


def _damaged(why: str) -> DamagedSnapshotError:
    return DamagedSnapshotError(f"the snapshot is not a readable etcd database: {why}")
