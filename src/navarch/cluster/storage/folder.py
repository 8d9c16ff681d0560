"""The folder of a file storage: its lock, its snapshots and its logs.

    lock                          locked by the process that uses the storage; contains its process id
    00000000000000000042.snapshot the values of all keys at revision 42
    00000000000000000042.log      the writes after revision 42
    mark                          the name and the length of the last log

A file gets its name when it is complete; a snapshot replaces the logs and snapshots before it. A log that is missing, or
shorter than its mark, is an error: another process has removed or truncated it.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from navarch.cluster.storage.history import FIRST_REVISION, HistoryLimits
from navarch.cluster.storage.memory import KeyspaceState
from navarch.cluster.storage.protocol import StorageError, Stored
from navarch.cluster.storage.records import (
    HEADER,
    DamagedStorageError,
    RecordOperation,
    WriteRecord,
    encode,
    frame,
    read_frames,
    read_records,
)

_SNAPSHOT, _LOG, _UNFINISHED = ".snapshot", ".log", ".unfinished"
_LOCK = "lock"
_FRAME_SIZE = 2**20

_logger = logging.getLogger(__name__)


class LockedError(StorageError):
    """Another process has the store open."""


def lock(folder: Path) -> int:
    """Makes the folder if need be, and takes it for this process; closing what this returns gives it back."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.read(file, 32).decode("ascii", "replace").strip() or "unknown"
        os.close(file)
        raise LockedError(
            f"expected nobody else to have {folder} open, but the process with id {owner} has; end it first"
        ) from None
    os.ftruncate(file, 0)
    os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
    return file


def lock_again(folder: Path, file: int) -> int:
    """The lock, taken anew if somebody has removed its file: another process could have the folder by now. Raises
    `LockedError` then.
    """
    held = os.fstat(file)
    with contextlib.suppress(FileNotFoundError):
        named = (folder / _LOCK).stat()
        if (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino):
            return file
    taken = lock(folder)
    os.close(file)
    return taken


def recover(folder: Path, limits: HistoryLimits) -> tuple[KeyspaceState, Path]:
    """Reads the folder; returns its state and the current log. Raises `DamagedStorageError`."""
    _remove_unfinished(folder)
    snapshots, logs = _numbered(folder, _SNAPSHOT), _numbered(folder, _LOG)
    newest = max(snapshots, default=None)
    _require_marked(folder, logs, newest or 0)
    state = KeyspaceState(limits) if newest is None else _read_snapshot(snapshots[newest], limits)
    needed = [number for number in sorted(logs) if newest is None or number >= newest]
    for number in needed:
        _replay(logs[number], number, state, is_last=number == needed[-1])
    _remove_before(folder, newest or 0)
    if needed:
        return state, logs[needed[-1]]
    if newest is None:
        return state, create_log(folder, FIRST_REVISION)
    raise StorageError(
        f"expected {log_path(folder, newest)}, which belongs to the snapshot of that name; it is missing"
    )


def log_path(folder: Path, revision: int) -> Path:
    """The log of what was written after that revision."""
    return folder / f"{revision:020d}{_LOG}"


def mark_path(folder: Path) -> Path:
    """Returns the file that holds the length of the last log."""
    return folder / "mark"


def mark_of(log: Path, size: int) -> bytes:
    """Returns the content of the mark, of constant length, so that one write replaces it."""
    return f"{log.name} {size:020d}\n".encode()


def _require_marked(folder: Path, logs: Mapping[int, Path], snapshot: int) -> None:
    """Raises `DamagedStorageError` if the log is shorter than it was, or gone; a mark that cannot be read says nothing."""
    if not mark_path(folder).is_file():
        return
    try:
        name, size = mark_path(folder).read_text(encoding="ascii").split()
        number, expected = int(name.removesuffix(_LOG)), int(size)
    except ValueError:
        return
    if number < snapshot:  # which stands for that log
        return
    path = logs.get(number) or log_path(folder, number)
    found = path.stat().st_size if path.is_file() else 0
    if found < expected:
        raise DamagedStorageError(path, found, f"expected the {expected} bytes that were written to it")


def rewrite(folder: Path, items: Iterable[Stored], revision: int) -> Path:
    """Makes the folder hold these items, whatever was done to it; returns the log to go on with."""
    path = create_log(folder, revision)
    write_snapshot(folder, items, revision)
    return path


def create_log(folder: Path, revision: int) -> Path:
    """Makes the log of what will be written after that revision; it is on disk when this returns."""
    path = log_path(folder, revision)
    _write_durably(path, [HEADER])
    return path


def write_snapshot(folder: Path, items: Iterable[Stored], revision: int) -> int:
    """Writes what all keys had at that revision, drops what is no longer needed; the snapshot's size in bytes."""
    size = _write_durably(folder / f"{revision:020d}{_SNAPSHOT}", _snapshot_parts(items, revision))
    _remove_before(folder, revision)
    return size


def _remove_before(folder: Path, revision: int) -> None:
    """Removes what the snapshot of that revision stands for."""
    for suffix in (_SNAPSHOT, _LOG):
        for number, path in _numbered(folder, suffix).items():
            if number < revision:
                path.unlink()


def _remove_unfinished(folder: Path) -> None:
    for path in folder.glob(f"*{_UNFINISHED}"):
        path.unlink()


def _numbered(folder: Path, suffix: str) -> dict[int, Path]:
    """The files of that kind; what only has such a name, and could not be read without end, is none."""
    found = [path for path in folder.iterdir() if path.suffix == suffix and path.stem.isdigit()]
    return {int(path.stem): path for path in found if path.is_file()}


def _read_snapshot(path: Path, limits: HistoryLimits) -> KeyspaceState:
    items: list[Stored] = []
    for found in read_frames(path, path.read_bytes(), may_be_torn=False):
        for record in read_records(found.payload):
            if record.operation is RecordOperation.END:
                return KeyspaceState(limits, items=items, revision=record.revision, oldest=record.revision)
            items.append(Stored(record.key, record.value, record.revision))
    raise DamagedStorageError(path, path.stat().st_size, "expected an end mark")


def _replay(path: Path, number: int, state: KeyspaceState, *, is_last: bool) -> None:
    if number != state.revision:
        raise DamagedStorageError(path, 0, f"expected a log of what came after revision {state.revision}")
    data = path.read_bytes()
    end = len(HEADER)
    for found in read_frames(path, data, may_be_torn=is_last):
        for record in read_records(found.payload):
            if not _redo(record, state):
                raise DamagedStorageError(path, found.begin, f"expected what follows revision {state.revision}")
        end = found.end
    if is_last:
        _cut_off(path, len(data), end)


def _redo(record: WriteRecord, state: KeyspaceState) -> bool:
    """Returns True if the record could follow what was there."""
    if record.operation is RecordOperation.COMPACT:
        state.compact(min(record.revision, state.revision))
        return True
    is_deletion = record.operation is RecordOperation.DELETE
    if record.revision != state.revision + 1 or (is_deletion and state.get(record.key) is None):
        return False
    state.apply(record.key, None if is_deletion else record.value, record.revision)
    return True


def _cut_off(path: Path, size: int, intact: int) -> None:
    """Removes what a last write that did not end has left; nobody was told that it had been done."""
    if size == intact:
        return
    _logger.warning("truncating %d bytes of an incomplete write from %s", size - intact, path)
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.ftruncate(file, intact)
        os.fsync(file)
    finally:
        os.close(file)


def _snapshot_parts(items: Iterable[Stored], revision: int) -> Iterator[bytes]:
    yield HEADER
    offset = len(HEADER)
    for payload in _payloads(items, revision):
        part = frame(payload, offset)
        offset += len(part)
        yield part


def _payloads(items: Iterable[Stored], revision: int) -> Iterator[bytes]:
    payload = bytearray()
    for item in items:
        payload += encode(WriteRecord(RecordOperation.PUT, item.revision, item.key, item.value))
        if len(payload) >= _FRAME_SIZE:
            yield bytes(payload)
            payload.clear()
    yield bytes(payload + encode(WriteRecord(RecordOperation.END, revision)))


def _write_durably(path: Path, parts: Iterable[bytes]) -> int:
    """Writes a file atomically: after a crash it is complete or missing."""
    unfinished = path.with_name(path.name + _UNFINISHED)
    try:
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
            size = file.tell()
        unfinished.rename(path)
    except OSError:
        with contextlib.suppress(OSError):  # it takes room that may be what is missing
            unfinished.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)
    return size


def _sync_folder(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)
