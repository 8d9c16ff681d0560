"""Snapshots as files: taken from a member, and checked."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final

from etcd_operator.backup.bolt import revision_of
from etcd_operator.backup.faults import BackupError, DamagedError
from etcd_operator.reaching import Reached
from etcd_operator.versions import Version
from navarch.errors import EtcdError, InvalidValueError
from navarch.etcd import Status

__all__ = ["MAX_BYTES", "Snapshot", "check", "refuse_larger", "take"]

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


async def take(reached: Reached, path: Path, *, max_bytes: int = MAX_BYTES) -> Snapshot:
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
                refuse_larger(file.tell(), max_bytes)
    except EtcdError as error:
        said = f": {error}" if reached.is_own else ": the endpoint refused, broke off, or is no etcd"
        raise BackupError(f"etcd gave no snapshot{said}") from None
    taken = await asyncio.to_thread(check, path, version=_version(status.version))
    return replace(taken, cluster=f"{status.header.cluster_id:x}")


def refuse_larger(size: int, max_bytes: int) -> None:
    """Raises `DamagedError` for a snapshot that is larger than the operator takes."""
    if size > max_bytes:
        words = f"the snapshot is larger than {max_bytes} bytes"
        raise DamagedError(f"{words}: raise ETCD_OPERATOR_MAX_SNAPSHOT of the operator, if it is meant to be")


def _refuse_of_others(identity: str, reached: Reached) -> None:
    """The operator may reach members that whoever named the endpoint does not."""
    if identity in reached.foreign:
        raise BackupError("the endpoint is a member of an EtcdCluster of another namespace: make the EtcdBackup there")


def _version(text: str) -> str:
    """As etcd says it; empty if that is no version."""
    try:
        Version.of(text)
    except InvalidValueError:
        return ""
    return text


async def _best(reached: Reached) -> tuple[str, Status]:
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

    Raises `DamagedError`.
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
        raise DamagedError(f"the snapshot of {size} bytes is cut off or changed: its checksum is wrong")
    return Snapshot(path, whole.hexdigest(), size, revision_of(path), version)
