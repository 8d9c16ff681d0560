"""A snapshot as etcd writes it, as small as it can be."""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path

from etcd_operator.backup.snapshots import Snapshot, check

_PAGE = 4096


def a_snapshot(path: Path, revision: int = 7) -> Snapshot:
    """One key at that revision, in a database of three pages with its checksum behind it."""
    key = struct.pack(">QcQ", revision, b"_", 0)
    inside = struct.pack("<QHHI", 0, 2, 1, 0) + struct.pack("<IIII", 0, 16, len(key), 1) + key + b"v"
    bucket = struct.pack("<QQ", 0, 0) + inside
    root = struct.pack("<QHHI", 2, 2, 1, 0) + struct.pack("<IIII", 1, 16, 3, len(bucket)) + b"key" + bucket
    metas = [
        struct.pack("<QHHI", number, 4, 0, 0)
        + struct.pack("<IIIIQQQQQQ", 0xED0CDAED, 2, _PAGE, 0, 2, 0, 0, 3, number, 0)
        for number in range(2)
    ]
    content = b"".join(page.ljust(_PAGE, b"\0") for page in (*metas, root))
    path.write_bytes(content + hashlib.sha256(content).digest())
    return check(path, version="3.5.1")
