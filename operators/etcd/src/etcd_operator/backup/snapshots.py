"""Snapshots as files: taken from a member, and checked."""

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
from navarch.etcd import Status

Verification = Literal["restored", "structure"]
"""What a snapshot has been through: it was made data of once, or its checksum and its pages were read."""
_VERSION: Final = re.compile(rb"etcdutl version: ([0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9})")
_SECONDS: Final = 600.0
"""A file that somebody has made may keep the tool busy for ever."""
_WORDS: Final = 1 << 16


def find_etcdutl() -> Path | None:
    """The etcdutl of this machine, if there is one."""
    found = shutil.which("etcdutl")
    return Path(found) if found else None


class SnapshotVerifier:
    """Tries snapshots with that etcdutl; without one, they are only looked at."""

    def __init__(self, program: Path | None) -> None:
        self._program = program
        self._version: EtcdVersion | None = None

    async def verified(self, snapshot: Snapshot) -> Verification:
        """How far the snapshot could be tried; raises `DamagedSnapshotError` if no data becomes of it that goes as far."""
        if self._program is None or not await self._reads(self._program, snapshot.version):
            return "structure"
        data = snapshot.path.with_suffix(".trial")
        try:
            async with asyncio.timeout(_SECONDS):
                code, _ = await _ran(self._program, "snapshot", "restore", str(snapshot.path), f"--data-dir={data}")
                revision = await asyncio.to_thread(_revision, data) if code == 0 else 0
        except TimeoutError:
            raise DamagedSnapshotError(
                f"the snapshot cannot be tried: etcdutl takes longer than {_SECONDS:g} s"
            ) from None
        finally:
            await asyncio.to_thread(shutil.rmtree, data, ignore_errors=True)
        if revision != snapshot.revision:
            raise DamagedSnapshotError(
                "the snapshot cannot be restored: etcdutl makes no data of it that goes as far as it"
            )
        return "restored"

    async def _reads(self, program: Path, version: str) -> bool:
        """A tool need not know what a later etcd writes."""
        if self._version is None:
            code, said = await _ran(program, "version")
            found = _VERSION.search(said) if code == 0 else None
            self._version = EtcdVersion.of(found[1].decode()) if found else EtcdVersion(0, 0, 0)
        return bool(version) and EtcdVersion.of(version)[:2] <= self._version[:2]


def _revision(data: Path) -> int:
    database = data / "member" / "snap" / "db"
    return revision_of(database) if database.exists() else 0


async def _ran(program: Path, *arguments: str) -> tuple[int, bytes]:
    """Its exit code and how its words begin; it ends with whoever waits for it.

    It reads what a stranger may have written, and has none of the operator's variables, in which credentials may be.
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
"""The largest snapshot, unless the operator is configured otherwise: twice what etcd advises a database to have."""

_DIGEST: Final = hashlib.sha256().digest_size
_PIECE: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A file that is what etcd wrote; `sha256` is that of the whole file."""

    path: Path
    sha256: str
    size: int
    revision: int
    version: str = ""
    cluster: str = ""
    """The identity of the cluster of etcd that it was taken from, if that is known."""


async def take(reached: ConnectedEtcd, path: Path, *, max_bytes: int = MAX_BYTES) -> Snapshot:
    """A snapshot of the member that knows most; raises `BackupError`.

    What an endpoint says that is no member of a cluster of this Kubernetes is not quoted: it may be any server of the
    operator's network, and the words go to whoever named it.
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
        said = f": {error}" if reached.is_own else ": the endpoint refused, broke off, or is no etcd"
        raise BackupError(f"etcd gave no snapshot{said}") from None
    taken = await asyncio.to_thread(check, path, version=_version(status.version))
    return replace(taken, cluster=f"{status.header.cluster_id:x}")


def require_size(size: int, max_bytes: int) -> None:
    """Raises `DamagedSnapshotError` for a snapshot that is larger than the operator takes."""
    if size > max_bytes:
        message = f"the snapshot is larger than {max_bytes} bytes"
        raise DamagedSnapshotError(f"{message}: raise ETCD_OPERATOR_MAX_SNAPSHOT of the operator, if it is meant to be")


def _refuse_of_others(identity: str, reached: ConnectedEtcd) -> None:
    """The operator may reach members that whoever named the endpoint does not."""
    if identity in reached.foreign:
        raise BackupError("the endpoint is a member of an EtcdCluster of another namespace: make the EtcdBackup there")


def _version(text: str) -> str:
    """As etcd says it; empty if that is no version."""
    try:
        EtcdVersion.of(text)
    except InvalidValueError:
        return ""
    return text


async def _best(reached: ConnectedEtcd) -> tuple[str, Status]:
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
        raise BackupError("who answers knows no leader, and others are ready that do not answer: they may know more")
    endpoint = max(own, key=lambda each: (own[each].header.revision, each))
    return endpoint, own[endpoint]


def _own(answers: Mapping[str, Status], identity: str) -> dict[str, Status]:
    """Those of the cluster that is meant."""
    own = {each: status for each, status in answers.items() if identity in {"", f"{status.header.cluster_id:x}"}}
    if not own:
        other = min(f"{status.header.cluster_id:x}" for status in answers.values())
        raise BackupError(f"who answers is of another cluster, {other}, and not of {identity}")
    return own


def _opened(path: Path) -> BinaryIO:
    return path.open("wb")


def check(path: Path, *, version: str = "") -> Snapshot:
    """The file as a snapshot: its last 32 bytes are the checksum of all before, and it is a database with a revision.

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
        raise DamagedSnapshotError(f"the snapshot of {size} bytes is cut off or changed: its checksum is wrong")
    return Snapshot(path, whole.hexdigest(), size, revision_of(path), version)
