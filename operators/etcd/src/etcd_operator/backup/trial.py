"""Whether a snapshot becomes data again: etcd's own tool tries it, where the operator has one."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from pathlib import Path
from typing import Final, Literal

from etcd_operator.backup.bolt import revision_of
from etcd_operator.backup.faults import DamagedError
from etcd_operator.backup.snapshots import Snapshot
from etcd_operator.versions import Version

__all__ = ["Trial", "Verified", "tool"]

Verified = Literal["restored", "structure"]
"""What a snapshot has been through: it was made data of once, or its checksum and its pages were read."""
_VERSION: Final = re.compile(rb"etcdutl version: ([0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9})")
_SECONDS: Final = 600.0
"""A file that somebody has made may keep the tool busy for ever."""
_WORDS: Final = 1 << 16


def tool() -> Path | None:
    """The etcdutl of this machine, if there is one."""
    found = shutil.which("etcdutl")
    return Path(found) if found else None


class Trial:
    """Tries snapshots with that etcdutl; without one, they are only looked at."""

    def __init__(self, program: Path | None) -> None:
        self._program = program
        self._version: Version | None = None

    async def verified(self, snapshot: Snapshot) -> Verified:
        """How far the snapshot could be tried; raises `DamagedError` if no data becomes of it that goes as far."""
        if self._program is None or not await self._reads(self._program, snapshot.version):
            return "structure"
        data = snapshot.path.with_suffix(".trial")
        try:
            async with asyncio.timeout(_SECONDS):
                code, _ = await _ran(self._program, "snapshot", "restore", str(snapshot.path), f"--data-dir={data}")
                revision = await asyncio.to_thread(_revision, data) if code == 0 else 0
        except TimeoutError:
            raise DamagedError(f"the snapshot cannot be tried: etcdutl takes longer than {_SECONDS:g} s") from None
        finally:
            await asyncio.to_thread(shutil.rmtree, data, ignore_errors=True)
        if revision != snapshot.revision:
            raise DamagedError("the snapshot cannot be restored: etcdutl makes no data of it that goes as far as it")
        return "restored"

    async def _reads(self, program: Path, version: str) -> bool:
        """A tool need not know what a later etcd writes."""
        if self._version is None:
            code, said = await _ran(program, "version")
            found = _VERSION.search(said) if code == 0 else None
            self._version = Version.of(found[1].decode()) if found else Version(0, 0, 0)
        return bool(version) and Version.of(version)[:2] <= self._version[:2]


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
