"""`FileStorage`: a storage in a folder, which acknowledges a write when it is on disk.

Writes queue while the disk is busy; then all of them are written together with one fsync. Reads do not see them before
that, so that a crash cannot lose a write that was read.

A write that cannot be made durable, because the disk is full, broken or read-only, fails; reads and watches continue, and the
next write tries again. If another process removes or changes the files, they are written again from memory.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from navarch._base.tasks import acquire
from navarch._base.threads import ThreadPool
from navarch.cluster.storage.folder import lock, lock_again, recover, rewrite, write_snapshot
from navarch.cluster.storage.history import HistoryLimits
from navarch.cluster.storage.memory import KeyspaceState, StateReader, require_revision
from navarch.cluster.storage.protocol import ChangedError, StorageError, Stored, WriteError
from navarch.cluster.storage.records import RecordOperation, WriteRecord, encode
from navarch.cluster.storage.write_ahead_log import DisplacedError, WriteAheadLog

T = TypeVar("T")

_logger = logging.getLogger(__name__)


class FileOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`snapshot_after`: bytes of log after which a snapshot is due; never less than the last snapshot's own size."""

    history: HistoryLimits = HistoryLimits()
    snapshot_after: int = 64 * 2**20


_USUAL_OPTIONS = FileOptions()


class _Write:
    """A record in the line, and who waits for it."""

    __slots__ = ("done", "record")

    def __init__(self, record: WriteRecord) -> None:
        self.record = record
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def result(self) -> Stored | None:
        """The value of the key after the write."""
        _, revision, key, value = self.record
        return Stored(key, value, revision) if self.record.operation is RecordOperation.PUT else None


class FileStorage(StateReader):
    """A `Storage` in a folder. Belongs to one event loop; made by `open`.

    `_state` is what is on disk. `_ahead` has the last write of each key that is in the line or being written, for the
    conditions of writes that come after it. At most one `_job` uses the log at a time.
    """

    def __init__(
        self, state: KeyspaceState, log: WriteAheadLog, folder: Path, lock_file: int, options: FileOptions
    ) -> None:
        super().__init__(state)
        self._log = log
        self._folder = folder
        self._lock_file = lock_file
        self._options = options
        self._last = state.revision
        self._line: list[_Write] = []
        self._ahead: dict[str, _Write] = {}
        self._job: asyncio.Future[None] | None = None
        self._snapshot: asyncio.Future[int] | None = None
        self._snapshot_due = options.snapshot_after
        self._is_displaced = False
        self._fault: str | None = None
        self._threads = ThreadPool("navarch-store", 2)  # its own: nobody else's work holds up the store

    @property
    def fault(self) -> str | None:
        """See `Storage.fault`."""
        return self._state.history.failure or self._fault

    @classmethod
    async def open(cls, folder: Path, options: FileOptions = _USUAL_OPTIONS) -> FileStorage:
        """Takes the folder for this process, and reads what it holds.

        Raises `LockedError` if another process has it, `DamagedStorageError` if something that was acknowledged cannot be read.
        """
        return await acquire(asyncio.to_thread(_open, folder, options), FileStorage.close)

    async def put(self, key: str, value: bytes, *, expected: int) -> int:
        """See `Storage.put`. A cancelled call may still be carried out."""
        await self._require(key, expected, deleting=False)
        return await self._write(WriteRecord(RecordOperation.PUT, self._last + 1, key, value))

    async def delete(self, key: str, *, expected: int) -> int:
        """See `Storage.delete`. A cancelled call may still be carried out."""
        await self._require(key, expected, deleting=True)
        return await self._write(WriteRecord(RecordOperation.DELETE, self._last + 1, key))

    async def compact(self, revision: int) -> None:
        """See `Storage.compact`."""
        if revision > self._last:
            raise StorageError(f"expected a revision up to {self._last}, got {revision}")
        if revision > self._state.history.oldest:
            self._require_usable()
            await self._enqueue(_Write(WriteRecord(RecordOperation.COMPACT, revision)))

    async def probe(self) -> None:
        """See `Storage.probe`: writes a record that says nothing new."""
        self._require_usable()
        await self._enqueue(_Write(WriteRecord(RecordOperation.COMPACT, self._state.history.oldest)))

    async def close(self) -> None:
        """See `Storage.close`. Writes that wait are carried out first; watches end with a `StorageError`."""
        self._state.history.fail("the store was closed")
        self._begin_job()
        while running := [job for job in (self._job, self._snapshot) if job is not None]:
            await asyncio.wait(running)
        if self._lock_file >= 0:
            self._log.close()
            os.close(self._lock_file)
            self._lock_file = -1
            self._threads.close()

    async def _require(self, key: str, expected: int, *, deleting: bool) -> None:
        """Raises `ChangedError`, but not because of a write that could still be lost."""
        self._require_usable()
        write = self._ahead.get(key)
        try:
            require_revision(write.result if write else self._state.get(key), expected, deleting=deleting)
        except ChangedError:
            if write:
                await asyncio.wait((write.done,))
                write.done.result()
            raise

    async def _write(self, record: WriteRecord) -> int:
        self._last = record.revision
        write = self._ahead[record.key] = _Write(record)
        await self._enqueue(write)
        return record.revision

    async def _enqueue(self, write: _Write) -> None:
        """Returns when it is on disk."""
        self._line.append(write)
        if self._job is None and len(self._line) == 1:
            # Whatever is written in the same turn of the loop goes to disk together.
            asyncio.get_running_loop().call_soon(self._begin_job)
        await asyncio.shield(write.done)  # a caller that is cancelled does not decide what becomes of it

    def _begin_job(self) -> None:
        """The next thing to do with the log, if there is any and nothing else is being done."""
        if self._job is not None or (self._is_displaced and self._snapshot is not None):
            return
        if self._is_displaced and not self._state.history.failure:
            items, revision = self._state.items(), self._state.revision
            self._start(partial(self._rewrite, items, revision), self._rewritten)
        elif self._is_snapshot_due():
            revision = self._state.revision
            self._start(partial(self._log.begin_anew, revision), partial(self._log_begun, revision))
        elif self._line:
            batch, self._line = self._line, []
            self._start(partial(_append, self._log, batch), partial(self._written, batch))

    def _start(self, function: Callable[[], None], done: Callable[[asyncio.Future[None]], None]) -> None:
        self._job = self._in_thread(function)
        self._job.add_done_callback(done)

    def _in_thread(self, function: Callable[[], T]) -> asyncio.Future[T]:
        return asyncio.wrap_future(self._threads.submit(function))

    def _written(self, batch: list[_Write], job: asyncio.Future[None]) -> None:
        self._job = None
        if error := job.exception():
            self._refuse([*batch, *self._line], error)
        else:
            self._recovered()
            for write in batch:
                self._take_over(write)
        self._begin_job()

    def _take_over(self, write: _Write) -> None:
        operation, revision, key, value = write.record
        if operation is RecordOperation.COMPACT:
            self._state.compact(revision)
        else:
            self._state.apply(key, value if operation is RecordOperation.PUT else None, revision)
            if self._ahead.get(key) is write:
                del self._ahead[key]
        if not write.done.done():
            write.done.set_result(None)

    def _refuse(self, writes: list[_Write], error: BaseException) -> None:
        """Refuses what could not be written, and what came after it and may depend on it: the store is as it was before."""
        self._failed(error)
        self._line, self._last = [], self._state.revision
        self._ahead.clear()
        for write in writes:
            if not write.done.done():
                write.done.set_exception(WriteError(self._fault or str(error)))
                write.done.exception()  # nobody may wait for it any more

    def _failed(self, error: BaseException) -> None:
        if self._fault is None:
            _logger.error("writing to %s failed: %s; writes fail until one succeeds", self._folder, error)
        self._fault = f"could not write to {self._folder}: {error}"
        self._is_displaced = self._is_displaced or isinstance(error, DisplacedError)

    def _recovered(self) -> None:
        if self._fault is not None:
            _logger.warning("writing to %s succeeds again", self._folder)
            self._fault = None

    def _is_snapshot_due(self) -> bool:
        return self._snapshot is None and self._log.size >= self._snapshot_due and not self._state.history.failure

    def _log_begun(self, revision: int, job: asyncio.Future[None]) -> None:
        """Starts the snapshot of all writes so far; later writes are in the new log."""
        self._job = None
        if error := job.exception():
            _logger.warning("creating a new log in %s failed: %s", self._folder, error)
            self._snapshot_due = self._log.size + self._options.snapshot_after
            self._is_displaced = isinstance(error, DisplacedError)
        else:
            self._snapshot = self._in_thread(partial(write_snapshot, self._folder, self._state.items(), revision))
            self._snapshot.add_done_callback(self._snapshot_written)
        self._begin_job()

    def _snapshot_written(self, snapshot: asyncio.Future[int]) -> None:
        """Without it nothing is lost: the logs before it are still there."""
        self._snapshot = None
        if error := snapshot.exception():
            _logger.warning("writing a snapshot to %s failed: %s", self._folder, error)
        else:
            self._snapshot_due = max(self._options.snapshot_after, snapshot.result())
        self._begin_job()

    def _rewrite(self, items: list[Stored], revision: int) -> None:
        """Writes a snapshot of all items and a new log; runs in a thread."""
        self._lock_file = lock_again(self._folder, self._lock_file)
        log = WriteAheadLog(rewrite(self._folder, items, revision))
        self._log.close()
        self._log = log

    def _rewritten(self, job: asyncio.Future[None]) -> None:
        self._job = None
        if error := job.exception():
            self._refuse(self._line, error)
            return
        self._is_displaced = False
        self._recovered()
        self._begin_job()


def _open(folder: Path, options: FileOptions) -> FileStorage:
    lock_file = lock(folder)
    try:
        state, path = recover(folder, options.history)
        return FileStorage(state, WriteAheadLog(path), folder, lock_file, options)
    except BaseException:
        os.close(lock_file)
        raise


def _append(log: WriteAheadLog, batch: list[_Write]) -> None:
    log.append(b"".join([encode(write.record) for write in batch]))
