"""What a store on disk promises beyond its process."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from cluster.storage import acknowledging_writer
from cluster.storage.watching import failure, take
from navarch.cluster.storage.file import FileOptions, FileStorage
from navarch.cluster.storage.folder import LockedError
from navarch.cluster.storage.framing import DamagedError
from navarch.cluster.storage.protocol import ChangedError, CompactedError, StorageError, Stored

KILLS = 20
SECONDS = 240.0


@asynccontextmanager
async def opened(folder: Path, *, snapshot_after: int = 2**20) -> AsyncIterator[FileStorage]:
    storage = await FileStorage.open(folder, FileOptions(snapshot_after=snapshot_after))
    try:
        yield storage
    finally:
        await storage.close()


async def written(folder: Path, *keys: str) -> Path:
    """Writes the keys one after the other; the log."""
    async with opened(folder) as storage:
        for key in keys:
            await storage.put(key, key.encode(), expected=0)
    return the_log(folder)


def files(folder: Path, suffix: str = "") -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.name.endswith(suffix))


def the_log(folder: Path) -> Path:
    (log,) = files(folder, ".log")
    return log


def watch_the_disk(monkeypatch: pytest.MonkeyPatch, look: Callable[[], object]) -> list[object]:
    """What could be seen each time the disk was waited for."""
    seen: list[object] = []
    wait = os.fdatasync

    def looking(file: int) -> None:
        seen.append(look())
        wait(file)

    monkeypatch.setattr(os, "fdatasync", looking)
    return seen


async def keys_of(folder: Path) -> list[str]:
    async with opened(folder) as storage:
        return [item.key for item in (await storage.page("")).items]


async def test_everything_is_there_after_opening_again(tmp_path: Path) -> None:
    """Values, revisions, deletions, and the past that the log still has."""
    async with opened(tmp_path) as storage:
        first = await storage.put("/a", b"1", expected=0)
        second = await storage.put("/b", b"2", expected=0)
        third = await storage.delete("/a", expected=first)
    async with opened(tmp_path) as storage:
        assert await storage.page("") == ([Stored("/b", b"2", second)], third, 0)
        assert len((await storage.page("", revision=second)).items) == 2
        async with storage.watch("", after=second) as watcher:
            assert [event.previous for event in await take(watcher, 1)] == [Stored("/a", b"1", first)]
        assert await storage.put("/a", b"3", expected=0) == third + 1


async def test_what_was_forgotten_stays_forgotten(tmp_path: Path) -> None:
    """A revision that was refused once is not served again."""
    async with opened(tmp_path) as storage:
        first = await storage.put("/a", b"1", expected=0)
        second = await storage.put("/b", b"2", expected=0)
        await storage.compact(second)
    async with opened(tmp_path) as storage:
        with pytest.raises(CompactedError):
            await storage.page("", revision=first)


async def test_a_snapshot_takes_the_place_of_the_log(tmp_path: Path) -> None:
    """The folder does not grow with every change of the same key, and one more opening changes nothing."""
    value = b"x" * 1000
    async with opened(tmp_path, snapshot_after=10_000) as storage:
        revision = 0
        for _ in range(200):
            revision = await storage.put("/a", value, expected=revision)
    for _ in range(2):
        assert sum(path.stat().st_size for path in files(tmp_path)) < 50_000
        async with opened(tmp_path, snapshot_after=10_000) as storage:
            assert await storage.get("/a") == Stored("/a", value, revision)
    assert [path.suffix for path in files(tmp_path)] == [".log", ".snapshot", ""]


async def test_writes_that_come_together_share_one_wait_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand writers at once do not wait a thousand times."""
    async with opened(tmp_path) as storage:
        waits = watch_the_disk(monkeypatch, lambda: None)
        await asyncio.gather(*(storage.put(f"/{number}", b"", expected=0) for number in range(1000)))
    assert len(waits) < 10


async def test_nobody_sees_a_write_before_it_is_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in a read, not in a watch, and not in the refusal of the next writer."""
    async with opened(tmp_path) as storage:
        seen = watch_the_disk(monkeypatch, lambda: storage._state.get("/a"))
        first, second = await asyncio.gather(
            storage.put("/a", b"1", expected=0), storage.put("/a", b"2", expected=0), return_exceptions=True
        )
        assert seen == [None]
        assert isinstance(second, ChangedError)
        assert second.current == ("/a", b"1", first) == await storage.get("/a")


async def test_writes_of_one_key_may_follow_each_other_without_waiting(tmp_path: Path) -> None:
    """The condition of a write counts those before it that are still on their way."""
    async with opened(tmp_path) as storage:
        revision = await storage.revision()
        results = await asyncio.gather(
            storage.put("/a", b"1", expected=0),
            storage.put("/a", b"2", expected=revision + 1),
            storage.delete("/a", expected=revision + 2),
            storage.put("/a", b"3", expected=0),
        )
        assert tuple(results) == (revision + 1, revision + 2, revision + 3, revision + 4)
    async with opened(tmp_path) as storage:
        assert await storage.get("/a") == Stored("/a", b"3", revision + 4)


async def test_closing_waits_for_writes_that_were_begun(tmp_path: Path) -> None:
    """They are acknowledged, and on disk."""
    storage = await FileStorage.open(tmp_path)
    async with asyncio.TaskGroup() as tasks:
        writes = [tasks.create_task(storage.put(f"/{number}", b"", expected=0)) for number in range(3)]
        await asyncio.wait(writes, timeout=0)
        await storage.close()
    assert await keys_of(tmp_path) == ["/0", "/1", "/2"]


async def test_a_disk_that_fails_refuses_every_further_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is on disk is unknown then; what was acknowledged before can be read, and is there after opening again."""

    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async with opened(tmp_path) as storage:
        await storage.put("/a", b"", expected=0)
        async with storage.watch("/", after=await storage.revision()) as watcher:
            with monkeypatch.context() as patch:
                patch.setattr(os, "fdatasync", full)
                with pytest.raises(StorageError, match="No space left on device; mend that"):
                    await storage.put("/b", b"", expected=0)
            with pytest.raises(StorageError, match="No space left"):
                await storage.put("/c", b"", expected=0)
            assert "No space left" in str(await failure(watcher))
        assert await storage.get("/a") is not None
    assert "/a" in await keys_of(tmp_path)


async def test_a_write_that_did_not_end_is_cut_off(tmp_path: Path) -> None:
    """Wherever it broke off: what came before is there, and the store goes on from there."""
    log = await written(tmp_path, "/a", "/b")
    whole = log.read_bytes()
    begin = len(whole) - len(whole.split(b"NVFR")[-1]) - 4
    for size in range(begin, len(whole)):
        log.write_bytes(whole[:size])
        async with opened(tmp_path) as storage:
            assert [item.key for item in (await storage.page("")).items] == ["/a"]
            assert await storage.put("/c", b"", expected=0) == 3
        assert await keys_of(tmp_path) == ["/a", "/c"]


async def test_a_last_write_that_left_only_zeros_is_cut_off(tmp_path: Path) -> None:
    """Some file systems grow a file before they write into it."""
    log = await written(tmp_path, "/a")
    with log.open("ab") as file:
        file.write(bytes(5000))
    assert await keys_of(tmp_path) == ["/a"]


async def test_a_damaged_record_is_an_error_that_names_the_place(tmp_path: Path) -> None:
    """Whichever byte of it it is: nothing that was acknowledged is dropped in silence."""
    log = await written(tmp_path, "/a", "/b", "/c")
    whole = log.read_bytes()
    begin, end = (len(b"NVFR".join(whole.split(b"NVFR")[:count])) for count in (2, 3))
    for place in range(begin, end):
        log.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        with pytest.raises(DamagedError, match=f"{log.name} is damaged at byte {begin}: ") as found:
            await FileStorage.open(tmp_path)
        assert (found.value.path, found.value.offset) == (log, begin)
    log.write_bytes(whole)
    assert await keys_of(tmp_path) == ["/a", "/b", "/c"]


async def test_a_damaged_snapshot_is_an_error(tmp_path: Path) -> None:
    """Nothing of it can be missing."""
    async with opened(tmp_path, snapshot_after=1) as storage:
        await storage.put("/a", b"value", expected=0)
        await storage.put("/b", b"value", expected=0)
    (snapshot, *_) = files(tmp_path, ".snapshot")
    snapshot.write_bytes(snapshot.read_bytes()[:-1])
    with pytest.raises(DamagedError, match="is damaged at byte"):
        await FileStorage.open(tmp_path)


async def test_a_missing_log_is_an_error(tmp_path: Path) -> None:
    """A folder from which a file was taken does not pass for a whole one."""
    async with opened(tmp_path, snapshot_after=1) as storage:
        await storage.put("/a", b"value", expected=0)
        await storage.put("/b", b"value", expected=0)
    the_log(tmp_path).unlink()
    with pytest.raises(StorageError, match=r"\.log, which belongs to the snapshot of that name; it is missing"):
        await FileStorage.open(tmp_path)


async def test_a_foreign_file_is_not_overwritten(tmp_path: Path) -> None:
    """A file of that name which this store has not written stays as it is."""
    log = await written(tmp_path, "/a")
    log.write_bytes(b"something else altogether")
    with pytest.raises(DamagedError, match="expected a file that this store has written"):
        await FileStorage.open(tmp_path)
    assert log.read_bytes() == b"something else altogether"


async def test_a_snapshot_that_did_not_end_is_removed(tmp_path: Path) -> None:
    """It has not got its name yet, and the log still has everything."""
    await written(tmp_path, "/a")
    (tmp_path / "00000000000000000002.snapshot.unfinished").write_bytes(b"navar")
    assert await keys_of(tmp_path) == ["/a"]
    assert not files(tmp_path, ".unfinished")


async def test_a_second_process_is_told_who_has_the_store(tmp_path: Path) -> None:
    """By its process id; afterwards the folder is free again."""
    async with opened(tmp_path):
        with pytest.raises(LockedError, match=f"the process with id {os.getpid()} has; end it first"):
            await FileStorage.open(tmp_path)
    assert await keys_of(tmp_path) == []


async def test_only_the_owner_can_read_the_files(tmp_path: Path) -> None:
    """There are Secrets in them."""
    folder = tmp_path / "store"
    await written(folder, "/a")
    assert folder.stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir())


@asynccontextmanager
async def writers(folder: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        acknowledging_writer.__file__,
        str(folder),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin
    try:
        yield process
    finally:
        process.stdin.close()
        await process.communicate()


async def acknowledged_before_the_end(process: asyncio.subprocess.Process, prefix: str, count: int) -> set[str]:
    """Has a process write, kills it when it has acknowledged so many; all that it acknowledged."""
    assert process.stdin
    assert process.stdout
    process.stdin.write(f"{prefix}\n".encode())
    writer = int(await process.stdout.readline())
    acknowledged = {await process.stdout.readline() for _ in range(count)}
    os.kill(writer, signal.SIGKILL)
    while (line := await process.stdout.readline()) != b"end\n":
        acknowledged.add(line)
    return {line.decode().strip() for line in acknowledged}


async def test_nothing_acknowledged_is_lost_by_kill_9(tmp_path: Path) -> None:
    """Twenty times in the middle of a thousand writes, snapshots included; each time the store serves again."""
    rng = random.Random(9)
    acknowledged: set[str] = set()
    async with asyncio.timeout(SECONDS), writers(tmp_path) as process:
        for kill in range(KILLS):
            acknowledged |= await acknowledged_before_the_end(process, f"/{kill:02d}/", rng.randrange(1, 900))
            async with opened(tmp_path) as storage:
                stored = {item.key: item.value for item in (await storage.page("")).items}
            assert acknowledged <= stored.keys(), f"lost after kill {kill}: {sorted(acknowledged - stored.keys())}"
            assert all(value == key.encode() * 50 for key, value in stored.items())
    assert len(files(tmp_path, ".snapshot")) == 1
