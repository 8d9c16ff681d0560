"""Snapshots that somebody has made: each ends in one clear error, at a cost that does not depend on what the file says."""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from etcd_operator.backup.snapshot_store import DamagedSnapshotError
from etcd_operator.backup.snapshots import check
from etcd_operator.declaration import etcd_operator
from etcd_operator.kinds import GROUP
from etcd_operator.restore import EtcdRestore
from navarch.api import Dynamic
from navarch.testing import Cluster
from security.tenant_servers import with_checksum
from snapshot_files import a_snapshot

PAGE = 4096
SECONDS = 60.0
BRANCH, LEAF = 1, 2


def meta(number: int, *, root: int = 2, size: int = PAGE, transaction: int | None = None) -> bytes:
    head = struct.pack("<QHHI", number, 4, 0, 0)
    tail = struct.pack("<IIIIQQQQQQ", 0xED0CDAED, 2, size, 0, root, 0, 0, 3, transaction or number, 0)
    return (head + tail).ljust(PAGE, b"\0")


def page(number: int, flags: int, count: int, body: bytes = b"") -> bytes:
    return (struct.pack("<QHHI", number, flags, count, 0) + body).ljust(PAGE, b"\0")


def branch(number: int, *below: int) -> bytes:
    return page(number, BRANCH, len(below), b"".join(struct.pack("<IIQ", 0, 0, each) for each in below))


def bucket(number: int, root: int) -> bytes:
    """A leaf with the bucket `key`, whose tree begins at that page."""
    return page(number, LEAF, 1, struct.pack("<IIII", 1, 16, 3, 16) + b"key" + struct.pack("<QQ", root, 0))


def leaf(number: int, key: bytes, *, count: int = 1, position: int = 16, size: int | None = None) -> bytes:
    element = struct.pack("<IIII", 0, position, len(key) if size is None else size, 0)
    return page(number, LEAF, count, element + key)


def revision(number: int) -> bytes:
    return struct.pack(">QcQ", number, b"_", 0)


def file_of(*pages: bytes) -> bytes:
    return with_checksum(meta(0) + meta(1) + b"".join(pages))


def chain(length: int, last: bytes) -> bytes:
    return b"".join(branch(2 + each, 3 + each) for each in range(length)) + last


HOSTILE: dict[str, bytes] = {
    "nothing": b"",
    "zeros": with_checksum(bytes(8 * PAGE)),
    "text": with_checksum(b"hello" * 5000),
    "cut off": file_of(bucket(2, 3))[: 2 * PAGE],
    "no pages": with_checksum(meta(0) + meta(1)),
    "a branch of itself": file_of(branch(2, 2)),
    "a branch of itself, often": file_of(branch(2, *[2] * 250)),
    "two branches of each other": file_of(branch(2, *[3] * 250), branch(3, *[2] * 250)),
    "a tree that doubles": file_of(*(branch(2 + n, 3 + n, 3 + n) for n in range(60)), branch(62, 2, 2)),
    "too deep": file_of(chain(3000, leaf(3002, b"a"))),
    "keys too deep": file_of(bucket(2, 3), *(branch(3 + n, 4 + n) for n in range(3000)), leaf(3003, revision(7))),
    "keys of themselves": file_of(bucket(2, 3), branch(3, 3)),
    "keys at the root": file_of(bucket(2, 2)),
    "a page beyond": file_of(branch(2, 1 << 40)),
    "a page that overflows": file_of(branch(2, (1 << 64) - 1)),
    "a root that overflows": with_checksum(meta(0, root=(1 << 64) - 1) + meta(1, root=(1 << 64) - 1) + branch(2, 2)),
    "a bucket that overflows": file_of(bucket(2, (1 << 64) - 1)),
    "pages without a size": with_checksum(meta(0, size=0) + meta(1, size=0) + bucket(2, 3)),
    "pages of four gigabytes": with_checksum(meta(0, size=(1 << 32) - 1) + meta(1, size=(1 << 32) - 1) + bucket(2, 3)),
    "pages of three bytes": with_checksum(meta(0, size=3) + meta(1, size=3) + bucket(2, 3)),
    "a branch without pages": file_of(bucket(2, 3), branch(3)),
    "more elements than there are": file_of(page(2, LEAF, 0xFFFF, b"\xff" * 64)),
    "long keys that overlap": file_of(page(2, LEAF, 250, struct.pack("<IIII", 0, 16, 0xFFFF_FFF0, 0) * 250)),
    "a key beyond": file_of(bucket(2, 3), leaf(3, revision(7), position=0xFFFF_FFFF)),
    "a key that is none": file_of(bucket(2, 3), leaf(3, b"hello")),
    "a key of another form": file_of(bucket(2, 3), leaf(3, b"0123456789abcdefg")),
    "a value that is no bucket": file_of(page(2, LEAF, 1, struct.pack("<IIII", 0, 16, 3, 16) + b"key" + bytes(16))),
    "a bucket without a head": file_of(page(2, LEAF, 1, struct.pack("<IIII", 1, 16, 3, 2) + b"key" + bytes(16))),
    "another bucket": file_of(page(2, LEAF, 1, struct.pack("<IIII", 1, 16, 3, 16) + b"kex" + struct.pack("<QQ", 3, 0))),
    "a revision that is none": file_of(bucket(2, 3), leaf(3, revision(0))),
    "a revision beyond all": file_of(bucket(2, 3), leaf(3, revision((1 << 64) - 1))),
    "a negative revision": file_of(bucket(2, 3), leaf(3, revision(1 << 63))),
    "a freelist in the place of a page": file_of(page(2, 0x10, 1)),
    "a page with the number of another": file_of(bucket(2, 3), leaf(9, revision(7))),
}
MANIFESTS: dict[str, bytes] = {
    "nested": b'{"object":' + b"[" * 60_000,
    "no text": b'{"object":"\xff\xfe"}',
    "without a zone": b'{"object":"a","sha256":"","size":1,"revision":7,"version":"3.5.1",'
    b'"taken":"2026-01-01T00:00:00","verified":"structure"}',
    "a version of many digits": b'{"object":"a","sha256":"","size":1,"revision":7,"version":"' + b"9" * 5000 + b'.1.1",'
    b'"taken":"2026-01-01T00:00:00Z","verified":"structure"}',
    "too large": b" " * (1 << 20),
}


def restore(path: str, name: str) -> Dynamic:
    spec = {"etcdCluster": {"name": "example"}, "local": {"path": path}}
    return Dynamic({"apiVersion": f"{GROUP}/v1beta2", "kind": "EtcdRestore", "metadata": {"name": name}, "spec": spec})


def example() -> Dynamic:
    spec = {"size": 1, "paused": True}
    return Dynamic(
        {"apiVersion": f"{GROUP}/v1beta2", "kind": "EtcdCluster", "metadata": {"name": "example"}, "spec": spec}
    )


async def refused(cluster: Cluster, name: str, words: str) -> None:
    """Returns when the operator has said so, and touched nothing."""
    found = await cluster.eventually(
        lambda: cluster.get(EtcdRestore, name),
        lambda each: words in each.status.reason,
        timeout=SECONDS,
        what=f"{name}: {words}",
    )
    assert found.status.phase == ""


@pytest.mark.cluster(controllers=False)
@pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.long)])
async def test_hostile_snapshots_are_refused_in_a_sentence(
    cluster: Cluster, tmp_path: Path, caplog: pytest.LogCaptureFixture, every: int
) -> None:
    """Each file in a store, by a restore that names it: the status says what is wrong, and no log has a traceback."""
    folder = tmp_path / "default"
    folder.mkdir()
    async with cluster.run(etcd_operator(backups=tmp_path)):
        await cluster.create(example())
        for number, content in enumerate([*HOSTILE.values()][::every]):
            (folder / f"{number}.db").write_bytes(content)
            await cluster.create(restore(f"{number}.db", f"hostile-{number}"))
            await refused(cluster, f"hostile-{number}", "the snapshot")
        good = a_snapshot(folder / "good.db")
        for number, content in enumerate([*MANIFESTS.values()][::every]):
            (folder / f"m{number}.db").write_bytes(good.path.read_bytes())
            (folder / f"m{number}.db.manifest.json").write_bytes(content)
            await cluster.create(restore(f"m{number}.db", f"manifest-{number}"))
            await refused(cluster, f"manifest-{number}", "the manifest of the snapshot is invalid")
    assert "Traceback" not in caplog.text


@pytest.mark.cluster(controllers=False)
async def test_a_snapshot_that_is_too_large_is_not_fetched_to_its_end(cluster: Cluster, tmp_path: Path) -> None:
    """A file with a hole in it costs nobody a disk: no more than the limit is read of it."""
    folder = tmp_path / "backups" / "default"
    folder.mkdir(parents=True)
    with (folder / "sparse.db").open("wb") as file:
        file.truncate(1 << 40)
    async with cluster.run(etcd_operator(backups=tmp_path / "backups", max_snapshot_bytes=1 << 20)):
        await cluster.create(example())
        await cluster.create(restore("sparse.db", "sparse"))
        await refused(cluster, "sparse", "larger than 1048576 bytes")


def mutated(content: bytes, rng: random.Random) -> bytes:
    """A few bytes are others, numbers are extreme, pieces are moved or gone."""
    data = bytearray(content)
    for _ in range(rng.randint(1, 8)):
        at = rng.randrange(len(data))
        match rng.randrange(6):
            case 0:
                data[at] = rng.randrange(256)
            case 1:
                number = rng.choice((0, 1, 2, 3, 0xFFFF, 0xFFFF_FFFF, 1 << 31))
                data[at : at + 4] = struct.pack("<I", number)
            case 2:
                data[at : at + 8] = struct.pack("<Q", rng.choice((0, 2, 1 << 31, 1 << 63, (1 << 64) - 1)))
            case 3:
                data[at : at + 2] = struct.pack("<H", rng.choice((0, 1, 2, 0xFFFF)))
            case 4:
                length = rng.randrange(1, 64)
                data[at : at + length] = data[-length:]
            case _:
                del data[at : at + rng.randrange(1, 256)]
        if not data:
            return b"x"
    return bytes(data)


def interesting(content: bytes, rng: random.Random) -> bytes:
    """Where the heads of pages, their elements and the keys are."""
    data = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at = rng.choice((0, PAGE, 2 * PAGE)) + rng.randrange(0, 112, 2)
        data[at : at + 2] = struct.pack("<H", rng.choice((0, 1, 2, 3, 16, 0x7FFF, 0xFFFF, rng.randrange(1 << 16))))
    return bytes(data)


@pytest.mark.parametrize("change", [mutated, interesting])
@pytest.mark.parametrize("seed", range(4))
def test_whatever_becomes_of_a_snapshot_it_is_read_or_refused(
    tmp_path: Path, seed: int, change: Callable[[bytes, random.Random], bytes]
) -> None:
    """A thousand files, each with a right checksum: a revision that can be, or the one error."""
    rng = random.Random(seed)
    path = tmp_path / "snapshot.db"
    a_snapshot(path)
    content = path.read_bytes()[:-32]
    for _ in range(1000):
        path.write_bytes(with_checksum(change(content, rng)))
        with suppress(DamagedSnapshotError):
            assert 0 < check(path).revision <= 1 << 62


SHAPES: dict[str, Callable[[int], bytes]] = {
    "branches of each other": lambda n: file_of(*(branch(2 + k, *[2 + (k + 1) % n] * 250) for k in range(n))),
    "a deep tree": lambda n: file_of(chain(n, leaf(n + 2, b"a"))),
    "many buckets": lambda n: file_of(branch(2, *range(3, 3 + min(n, 250))), *(bucket(3 + k, 3 + k) for k in range(n))),
    "keys as long as the file": lambda n: file_of(
        branch(2, *range(3, 3 + n)),
        *(page(3 + k, LEAF, 4, struct.pack("<IIII", 1, 16, PAGE * (n - k - 1), 0) * 4) for k in range(n)),
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_cost_of_a_hostile_snapshot_grows_with_its_size_alone(tmp_path: Path, shape: str) -> None:
    """Process time of files with 50 and 200 pages: at most eight times as much, best of three."""
    path = tmp_path / "snapshot.db"

    def cost(pages: int) -> float:
        path.write_bytes(SHAPES[shape](pages))
        best = float("inf")
        for _ in range(3):
            began = time.process_time()
            for _ in range(10):
                with pytest.raises(DamagedSnapshotError):
                    check(path)
            best = min(best, time.process_time() - began)
        return best

    assert cost(200) <= 8 * cost(50)
