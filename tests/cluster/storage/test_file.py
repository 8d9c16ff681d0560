"""What a store on disk promises beyond its process."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import resource
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from cluster.storage import acknowledging_writer
from cluster.storage.watching import take
from navarch.cluster.storage.file import FileOptions, FileStorage
from navarch.cluster.storage.folder import LockedError
from navarch.cluster.storage.protocol import ChangedError, CompactedError, StorageError, Stored, WriteError
from navarch.cluster.storage.records import DamagedStorageError

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
    assert [path.name.lstrip("0123456789") for path in files(tmp_path)] == [".log", ".snapshot", "lock", "mark"]


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


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS], ids=errno.errorcode.__getitem__)
async def test_a_disk_that_fails_refuses_writes_until_it_works_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """What was acknowledged can be read, watches go on, and what was refused is nowhere, also after opening again."""

    def broken(file: int) -> None:
        raise OSError(number, os.strerror(number))

    async with opened(tmp_path) as storage:
        first = await storage.put("/a", b"", expected=0)
        async with storage.watch("/", after=first) as watcher:
            with monkeypatch.context() as patch:
                patch.setattr(os, "fdatasync", broken)
                for key in ("/b", "/c"):
                    with pytest.raises(WriteError, match=os.strerror(number)):
                        await storage.put(key, b"", expected=0)
                with pytest.raises(WriteError):
                    await storage.probe()
                assert os.strerror(number) in (storage.fault or "")
                assert await storage.revision() == first
            assert await storage.put("/b", b"later", expected=0) == first + 1
            assert storage.fault is None
            assert [event.value for event in await take(watcher, 1)] == [b"later"]
        assert await storage.get("/c") is None
    assert await keys_of(tmp_path) == ["/a", "/b"]


async def test_a_write_that_depends_on_one_that_failed_is_refused_with_it(tmp_path: Path) -> None:
    """Neither with a revision that nobody else got, nor with a conflict with what is not there."""
    async with opened(tmp_path) as storage:
        with no_room(the_log(tmp_path)):
            results = await asyncio.gather(
                storage.put("/a", b"1", expected=0),
                storage.put("/a", b"2", expected=2),
                storage.put("/a", b"3", expected=0),
                return_exceptions=True,
            )
        assert [type(result) for result in results] == [WriteError] * 3
        assert await storage.put("/a", b"4", expected=0) == 2
    assert await keys_of(tmp_path) == ["/a"]


@contextmanager
def no_room(log: Path) -> Iterator[None]:
    """The log can grow by five bytes, and every other file by as much."""
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size + 5, usual[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)


async def test_a_write_that_had_no_room_leaves_nothing(tmp_path: Path) -> None:
    """What was begun is cut off before the next write; a process that is killed before that finds the same."""
    copy = tmp_path / "copy"
    async with opened(tmp_path / "store") as storage:
        await storage.put("/a", b"", expected=0)
        log = the_log(tmp_path / "store")
        size = log.stat().st_size
        with no_room(log), pytest.raises(WriteError, match="File too large"):
            await storage.put("/b", b"x" * 100, expected=0)
        assert log.stat().st_size == size + 5
        shutil.copytree(tmp_path / "store", copy)
        await storage.probe()
        await storage.put("/c", b"", expected=0)
    assert await keys_of(tmp_path / "store") == ["/a", "/c"]
    assert await keys_of(copy) == ["/a"]


async def test_a_snapshot_that_has_no_room_holds_up_nothing(tmp_path: Path) -> None:
    """Its remains take no room; it is written later."""
    async with opened(tmp_path, snapshot_after=4000) as storage:
        for number in range(20):
            await storage.put(f"/{number:02d}", b"x" * 150, expected=0)
        with no_room(the_log(tmp_path)):
            refused = 0
            for number in range(20, 40):
                try:
                    await storage.put(f"/{number:02d}", b"x" * 150, expected=0)
                except WriteError:
                    refused += 1
        assert refused
        assert not files(tmp_path, ".unfinished")
        for number in range(50, 120):
            await storage.put(f"/{number:02d}", b"x" * 150, expected=0)
        await storage.probe()
    assert files(tmp_path, ".snapshot")
    assert len(await keys_of(tmp_path)) == 110 - refused


def _remove(log: Path) -> None:
    log.unlink()


def _remove_all(log: Path) -> None:
    shutil.rmtree(log.parent)


def _cut(log: Path) -> None:
    os.truncate(log, log.stat().st_size // 2)


def _add(log: Path) -> None:
    with log.open("ab") as file:
        file.write(b"something else")


def _replace(log: Path) -> None:
    log.rename(log.with_suffix(".old"))
    log.write_bytes(b"something else")


@pytest.mark.parametrize("harm", [_remove, _remove_all, _cut, _add, _replace])
async def test_files_that_somebody_else_harmed_are_written_anew(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    """While the store is open it has everything in memory: nothing acknowledged is lost, and writes go on."""
    folder = tmp_path / "store"
    async with opened(folder) as storage:
        for key in ("/a", "/b", "/c"):
            await storage.put(key, key.encode(), expected=0)
        harm(the_log(folder))
        with pytest.raises(WriteError, match="another process"):
            await storage.put("/d", b"", expected=0)
        revision = await storage.put("/d", b"", expected=0)
        assert storage.fault is None
    async with opened(folder) as storage:
        assert [item.key for item in (await storage.page("")).items] == ["/a", "/b", "/c", "/d"]
        assert await storage.revision() == revision


async def test_a_folder_that_another_process_has_taken_is_left_to_it(tmp_path: Path) -> None:
    """Somebody removed the files and opened the store again: the first one writes nothing into it."""
    folder = tmp_path / "store"
    async with opened(folder) as storage:
        await storage.put("/a", b"", expected=0)
        shutil.rmtree(folder)
        async with opened(folder) as other:
            await other.put("/b", b"", expected=0)
            for _ in range(2):
                with pytest.raises(WriteError):
                    await storage.put("/c", b"", expected=0)
            assert "has; end it first" in (storage.fault or "")
            assert [item.key for item in (await other.page("")).items] == ["/b"]
    assert await keys_of(folder) == ["/b"]


async def test_a_log_that_was_cut_off_or_taken_away_is_an_error(tmp_path: Path) -> None:
    """Wherever it was cut: what was acknowledged is not dropped in silence."""
    log = await written(tmp_path, "/a", "/b")
    whole = log.read_bytes()
    for size in range(len(whole)):
        log.write_bytes(whole[:size])
        with pytest.raises(DamagedStorageError, match="is damaged at byte"):
            await FileStorage.open(tmp_path)
    log.unlink()
    with pytest.raises(DamagedStorageError, match="is damaged at byte 0: expected the"):
        await FileStorage.open(tmp_path)
    log.write_bytes(whole)
    assert await keys_of(tmp_path) == ["/a", "/b"]


async def test_a_write_that_did_not_end_is_cut_off(tmp_path: Path) -> None:
    """Wherever it broke off: what came before is there, and the store goes on from there."""
    log = await written(tmp_path, "/a")
    before, mark = log.read_bytes(), (tmp_path / "mark").read_bytes()
    await written(tmp_path, "/b")
    whole = log.read_bytes()
    for size in range(len(before), len(whole)):
        log.write_bytes(whole[:size])
        (tmp_path / "mark").write_bytes(mark)
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
        with pytest.raises(DamagedStorageError, match=f"{log.name} is damaged at byte {begin}: ") as found:
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
    with pytest.raises(DamagedStorageError, match="is damaged at byte"):
        await FileStorage.open(tmp_path)


async def test_a_missing_log_is_an_error(tmp_path: Path) -> None:
    """A folder from which a file was taken does not pass for a whole one."""
    async with opened(tmp_path, snapshot_after=1) as storage:
        await storage.put("/a", b"value", expected=0)
        await storage.put("/b", b"value", expected=0)
    the_log(tmp_path).unlink()
    with pytest.raises(DamagedStorageError, match=r"\.log is damaged at byte 0: expected the \d+ bytes"):
        await FileStorage.open(tmp_path)
    (tmp_path / "mark").unlink()
    with pytest.raises(StorageError, match=r"\.log, which belongs to the snapshot of that name; it is missing"):
        await FileStorage.open(tmp_path)


async def test_a_foreign_file_is_not_overwritten(tmp_path: Path) -> None:
    """A file of that name which this store has not written stays as it is."""
    log = await written(tmp_path, "/a")
    log.write_bytes(b"something else altogether" * 3)
    with pytest.raises(DamagedStorageError, match="expected a file that this store has written"):
        await FileStorage.open(tmp_path)
    assert log.read_bytes() == b"something else altogether" * 3


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
