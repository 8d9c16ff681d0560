"""Snapshots as files: taken from a member, checked, and verified with etcdutl."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final, Literal

from etcd_operator.backup.bolt import revision_of
from etcd_operator.backup.snapshot_store import BackupError, DamagedSnapshotError
from etcd_operator.connector import ConnectedEtcd
from etcd_operator.versions import EtcdVersion
from navarch.errors import EtcdError, InvalidValueError
from navarch.etcd import MemberStatus

Verification = Literal["restored", "structure"]
"""How a snapshot was verified: etcdutl restored it, or its checksum and pages were read."""
_VERSION: Final = re.compile(rb"etcdutl version: ([0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9})")
_SECONDS: Final = 600.0
"""Limits etcdutl: a crafted file could keep it busy forever."""
_WORDS: Final = 1 << 16


def find_etcdutl() -> Path | None:
    """Returns the etcdutl on the PATH, if there is one."""
    found = shutil.which("etcdutl")
    return Path(found) if found else None


class SnapshotVerifier:
    """Verifies snapshots by restoring them with etcdutl; without it, only their structure is checked."""

    def __init__(self, program: Path | None) -> None:
        self._program = program
        self._version: EtcdVersion | None = None

    async def verified(self, snapshot: Snapshot) -> Verification:
        """Returns how the snapshot was verified; raises `DamagedSnapshotError` if a restore does not reach its revision."""
        if self._program is None or not await self._reads(self._program, snapshot.version):
            return "structure"
        data = snapshot.path.with_suffix(".trial")
        try:
            async with asyncio.timeout(_SECONDS):
                code, _ = await _ran(self._program, "snapshot", "restore", str(snapshot.path), f"--data-dir={data}")
                revision = await asyncio.to_thread(_revision, data) if code == 0 else 0
        except TimeoutError:
            raise DamagedSnapshotError(
                f"the snapshot cannot be verified: etcdutl takes longer than {_SECONDS:g} s"
            ) from None
        finally:
            await asyncio.to_thread(shutil.rmtree, data, ignore_errors=True)
        if revision != snapshot.revision:
            raise DamagedSnapshotError(
                "the snapshot cannot be restored: the data that etcdutl restores does not reach its revision"
            )
        return "restored"

    async def _reads(self, program: Path, version: str) -> bool:
        """Reports whether etcdutl is new enough for the snapshot."""
        if self._version is None:
            code, said = await _ran(program, "version")
            found = _VERSION.search(said) if code == 0 else None
            self._version = EtcdVersion.of(found[1].decode()) if found else EtcdVersion(0, 0, 0)
        return bool(version) and EtcdVersion.of(version)[:2] <= self._version[:2]


def _revision(data: Path) -> int:
    database = data / "member" / "snap" / "db"
    return revision_of(database) if database.exists() else 0


async def _ran(program: Path, *arguments: str) -> tuple[int, bytes]:
    """Runs the program; returns its exit code and the start of its output. Cancellation kills it.

    It reads an untrusted file, so it gets none of the operator's environment, which may hold credentials.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            program,
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={"PATH": os.defpath},
        )
    except OSError:
        return -1, b""
    assert process.stdout is not None
    try:
        said = await process.stdout.read(_WORDS)
        while await process.stdout.read(_WORDS):
            continue
        await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, said


MAX_BYTES: Final = 16 << 30
"""The default limit of a snapshot: twice the database size that etcd recommends at most."""

_DIGEST: Final = hashlib.sha256().digest_size
_PIECE: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A checked snapshot file; `sha256` is the hash of the whole file."""

    path: Path
    sha256: str
    size: int
    revision: int
    version: str = ""
    cluster: str = ""
    """The id of the etcd cluster that it was taken from, if known."""


async def take(reached: ConnectedEtcd, path: Path, *, max_bytes: int = MAX_BYTES) -> Snapshot:
    """Takes a snapshot of the member with the highest revision; raises `BackupError`.

    The error never quotes an endpoint that is not the operator's own pod: it may be any server of the operator's network.
    """
    etcd = reached.etcd
    try:
        endpoint, status = await _best(reached)
        _refuse_of_others(f"{status.header.cluster_id:x}", reached)
        with _opened(path) as file:
            async for piece in etcd.maintenance.snapshot(endpoint):
                file.write(piece)
                require_size(file.tell(), max_bytes)
    except EtcdError as error:
        said = f": {error}" if reached.is_own else ": the endpoint refused, closed the connection, or is not etcd"
        raise BackupError(f"etcd sent no snapshot{said}") from None
    taken = await asyncio.to_thread(check, path, version=_version(status.version))
    return replace(taken, cluster=f"{status.header.cluster_id:x}")


def require_size(size: int, max_bytes: int) -> None:
    """Raises `DamagedSnapshotError` for a snapshot above the limit."""
    if size > max_bytes:
        message = f"the snapshot is larger than {max_bytes} bytes"
        raise DamagedSnapshotError(f"{message}: raise ETCD_OPERATOR_MAX_SNAPSHOT of the operator if that is intended")


def _refuse_of_others(identity: str, reached: ConnectedEtcd) -> None:
    """Raises `BackupError` for a cluster of another namespace: the author of the backup may have no access to it."""
    if identity in reached.foreign:
        raise BackupError(
            "the endpoint is a member of an EtcdCluster in another namespace: create the EtcdBackup there"
        )


def _version(text: str) -> str:
    """Returns the version that etcd reports; empty if it is invalid."""
    try:
        EtcdVersion.of(text)
    except InvalidValueError:
        return ""
    return text


async def _best(reached: ConnectedEtcd) -> tuple[str, MemberStatus]:
    said = await asyncio.gather(*map(reached.etcd.maintenance.status, reached.endpoints), return_exceptions=True)
    answers = {
        endpoint: status
        for endpoint, status in zip(reached.endpoints, said, strict=True)
        if not isinstance(status, BaseException)
    }
    if not answers:
        raise BackupError("no member answers")
    own = _own(answers, reached.identity)
    if reached.ready - answers.keys() and not any(status.leader for status in own.values()):
        raise BackupError(
            "the members that answer have no leader, and other ready members do not answer: they may have newer data"
        )
    endpoint = max(own, key=lambda each: (own[each].header.revision, each))
    return endpoint, own[endpoint]


def _own(answers: Mapping[str, MemberStatus], identity: str) -> dict[str, MemberStatus]:
    """Returns the answers of the expected cluster; raises `BackupError` if there are none."""
    own = {each: status for each, status in answers.items() if identity in {"", f"{status.header.cluster_id:x}"}}
    if not own:
        other = min(f"{status.header.cluster_id:x}" for status in answers.values())
        raise BackupError(f"the members that answer belong to etcd cluster {other}, expected {identity}")
    return own


def _opened(path: Path) -> BinaryIO:
    return path.open("wb")


def check(path: Path, *, version: str = "") -> Snapshot:
    """Checks a snapshot file: its checksum (the last 32 bytes) and the revision of its database.

    Raises `DamagedSnapshotError`.
    """
    size = path.stat().st_size
    inner, whole, last = hashlib.sha256(), hashlib.sha256(), b""
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            whole.update(piece)
            together = last + piece
            inner.update(together[:-_DIGEST])
            last = together[-_DIGEST:]
    if size <= _DIGEST or inner.digest() != last:
        raise DamagedSnapshotError(f"the snapshot of {size} bytes is truncated or changed: its checksum is wrong")
    return Snapshot(path, whole.hexdigest(), size, revision_of(path), version)
