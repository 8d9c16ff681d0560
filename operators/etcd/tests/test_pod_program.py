"""The program in the pod of a claim, as a process: whom it lets in, and what becomes of files."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import socket
import ssl
import subprocess
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest

from etcd_operator.backup import Archive
from etcd_operator.backup.archive import series_name
from etcd_operator.backup.claim_files import ClaimConnection, ClaimFiles
from etcd_operator.backup.claim_pods import keys_for
from etcd_operator.backup.snapshot_store import DamagedSnapshotError, StoreError
from etcd_operator.manifests import program
from etcd_operator.tls import EtcdCredentials
from navarch._base.clock import SystemClock
from rig import ports
from snapshot_files import a_snapshot

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOST = "127.0.0.1"
SECONDS = 60.0
OWN = ("unshare", "--mount", "--map-root-user")
"""Runs what follows with mounts of its own; needs no root."""


@asynccontextmanager
async def started(doing: str, *, before: Sequence[str] = (), **environment: str) -> AsyncIterator[tuple[int, Process]]:
    """The program, as pods run it, and the port that it listens at."""
    text = (program(doing, "", "").command or [])[2]
    with ports.reserved(1) as (port,):
        known = {**os.environ, "POD_IP": HOST, "PORT": str(port), **environment}
        process = await asyncio.create_subprocess_exec(*before, sys.executable, "-c", text, doing, env=known)
        try:
            yield port, process
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()


@asynccontextmanager
async def running(folder: Path, *, before: Sequence[str] = ()) -> AsyncIterator[tuple[int, EtcdCredentials, Process]]:
    """With a claim, and what it takes to be let in."""
    files, keys = keys_for(SystemClock().now(), SECONDS)
    tls, root = folder / "tls", folder / "claim"
    for each in (tls, root):
        each.mkdir()
    for name, content in files.items():
        (tls / name).write_bytes(content)
    async with started("keep", before=before, TLS_FOLDER=str(tls), ROOT=str(root)) as (port, process):
        yield port, keys, process


@asynccontextmanager
async def reached(port: int, keys: EtcdCredentials) -> AsyncIterator[ClaimConnection]:
    """Once it answers."""
    async with ClaimConnection.to(HOST, port, context_of(keys), keys.server_name) as connection:
        async with asyncio.timeout(SECONDS):
            while not await connection.answers():
                await SystemClock().sleep(0.05)
        yield connection


def context_of(keys: EtcdCredentials) -> ssl.SSLContext:
    with keys.tls() as tls:
        assert tls is not None
        return tls.context()


async def read(files: ClaimFiles, name: str) -> bytes:
    return b"".join([piece async for piece in files.read(name)])


async def test_a_snapshot_comes_back_from_a_claim_and_old_ones_go(tmp_path: Path) -> None:
    """With its manifest; what an earlier process has not finished goes too, and one that was changed is noticed."""
    snapshot = a_snapshot(tmp_path / "snapshot.db")
    async with running(tmp_path) as (port, keys, _), reached(port, keys) as connection:
        files = ClaimFiles("backups", connection)
        archive = Archive(files)
        times = [NOW - timedelta(hours=number) for number in (2, 1, 0)]
        names = [series_name("some/etcd.db", 7, taken) for taken in times]
        for own, taken in zip(names, times, strict=True):
            await archive.put(snapshot, own, taken, "structure")
        await files.put(f"{names[1]}.partial", b"half")
        await archive.tidy("some/etcd.db")
        kept = await archive.thin("some/etcd.db", NOW, most=2, oldest=timedelta())
        back = await archive.fetch(names[2], tmp_path / "back.db")
        assert (back.sha256, back.revision, back.version) == (snapshot.sha256, 7, "3.5.1")
        assert set(await files.names("")) == {
            f"{each.object}{ending}" for each in kept for ending in ("", ".manifest.json")
        }
        a_snapshot(tmp_path / "claim" / names[2], revision=8)
        with pytest.raises(DamagedSnapshotError, match="does not match its manifest"):
            await archive.fetch(names[2], tmp_path / "other.db")


async def test_nobody_is_let_in_who_is_not_the_operator(tmp_path: Path) -> None:
    """Not in plain text, without a certificate, or with one that somebody else has signed; and no other pod is believed."""
    _, stranger = keys_for(SystemClock().now(), SECONDS)
    async with running(tmp_path) as (port, keys, _), reached(port, keys):
        (tmp_path / "claim" / "secret").write_bytes(b"all keys")
        trusting = ssl.create_default_context(cadata=keys.trusted.decode())
        for tls in (trusting, context_of(stranger)):
            async with ClaimConnection.to(HOST, port, tls, keys.server_name) as connection:
                assert not await connection.answers()
        said = await asyncio.to_thread(asked_in_plain_text, port)
        assert b"all keys" not in said


def asked_in_plain_text(port: int) -> bytes:
    with socket.create_connection((HOST, port), timeout=SECONDS) as connection:
        connection.sendall(b"GET /secret HTTP/1.0\r\n\r\n")
        try:
            return connection.recv(1000)
        except ConnectionResetError:
            return b""


async def test_who_is_slow_holds_up_nobody(tmp_path: Path) -> None:
    """One says nothing, one breaks off in the middle of a file: others are served, and no half file is there."""
    async with running(tmp_path) as (port, keys, _), reached(port, keys) as connection:
        files = ClaimFiles("backups", connection)
        with socket.create_connection((HOST, port)) as silent:
            with as_operator(port, keys) as cut:
                cut.sendall(b"PUT /half HTTP/1.0\r\nContent-Length: 1000\r\n\r\nbegun")
                await until(tmp_path / "claim" / "half", is_there=True)
                await files.put("whole", b"1")
            await until(tmp_path / "claim" / "half", is_there=False)
            assert await read(files, "whole") == b"1"
            assert await files.names("") == ["whole"]
            assert silent.fileno() > 0


def as_operator(port: int, keys: EtcdCredentials) -> ssl.SSLSocket:
    """A connection that says what no client of ours would."""
    plain = socket.create_connection((HOST, port), timeout=SECONDS)
    return context_of(keys).wrap_socket(plain, server_hostname=keys.server_name)


async def until(path: Path, *, is_there: bool) -> None:
    async with asyncio.timeout(SECONDS):
        while await asyncio.to_thread(path.exists) != is_there:
            await SystemClock().sleep(0.05)


async def test_a_pod_that_ends_is_said_to(tmp_path: Path) -> None:
    """Whoever was served by it hears that it broke off."""
    async with running(tmp_path) as (port, keys, process), reached(port, keys) as connection:
        files = ClaimFiles("backups", connection)
        await files.put("whole.partial", b"1")
        process.kill()
        await process.wait()
        with pytest.raises(StoreError, match="the pod that mounts the claim backups closed the connection"):
            await read(files, "whole.partial")


async def test_a_member_takes_the_snapshot_that_it_was_told_of_and_no_other(tmp_path: Path) -> None:
    """While somebody else says nothing; then it ends, and would end at once if it were started again."""
    wanted = hashlib.sha256(b"right").hexdigest()
    async with (
        started("receive", ROOT=str(tmp_path), RESTORE_SHA256=wanted) as (port, process),
        aiohttp.ClientSession(f"http://{HOST}:{port}") as session,
    ):
        silent = await connected(port)
        assert await sent(session, b"wrong") == 422
        assert process.returncode is None
        assert await sent(session, b"right") == 204
        async with asyncio.timeout(SECONDS):
            assert await process.wait() == 0
        silent.close()
    async with started("receive", ROOT=str(tmp_path), RESTORE_SHA256=wanted) as (_, again), asyncio.timeout(SECONDS):
        assert await again.wait() == 0
    assert [each.name for each in (tmp_path / "incoming").iterdir()] == ["snapshot.db"]
    assert (tmp_path / "incoming" / "snapshot.db").read_bytes() == b"right"


async def connected(port: int) -> socket.socket:
    """As soon as it listens."""
    async with asyncio.timeout(SECONDS):
        while True:
            try:
                return await asyncio.to_thread(socket.create_connection, (HOST, port))
            except ConnectionRefusedError:
                await SystemClock().sleep(0.05)


async def sent(session: aiohttp.ClientSession, body: bytes) -> int:
    async with session.put("/", data=body) as answer:
        return answer.status


async def test_nothing_outside_the_claim_is_touched(tmp_path: Path) -> None:
    """Whatever name is asked for, and whatever links are in the claim."""
    outside = tmp_path / "outside"
    outside.write_bytes(b"not to be told")
    async with running(tmp_path) as (port, keys, _), reached(port, keys) as connection:
        (tmp_path / "claim" / "link").symlink_to(outside)
        (tmp_path / "claim" / "up").symlink_to(tmp_path)
        files = ClaimFiles("backups", connection)
        for name in ("link", "up/outside"):
            with pytest.raises(StoreError, match="the pod's user lacks permission"):
                await read(files, name)
            with pytest.raises(StoreError, match="the pod's user lacks permission"):
                await files.put(name, b"changed")
        with as_operator(port, keys) as raw:
            raw.sendall(b"GET /../outside HTTP/1.0\r\n\r\n")
            assert b" 500 " in raw.recv(1000)
        with pytest.raises(StoreError, match="the file does not exist on the claim backups"):
            await read(files, "nothing")
    assert outside.read_bytes() == b"not to be told"


@pytest.mark.parametrize(("size", "doing"), [("32k", "writing the snapshot"), ("36k", "writing the manifest")])
async def test_a_claim_that_is_full_holds_no_backup_that_counts(tmp_path: Path, size: str, doing: str) -> None:
    """There is no room for a second snapshot, or for its manifest: that is said, nothing is left of it, the first one stays."""
    if not has_mounts_of_its_own():
        pytest.skip("this machine gives nobody a file system of their own")
    small = (*OWN, "sh", "-c", f'mount -t tmpfs -o size={size} none "$ROOT" && exec "$@"', "sh")
    snapshot = a_snapshot(tmp_path / "snapshot.db")
    async with running(tmp_path, before=small) as (port, keys, _), reached(port, keys) as connection:
        files = ClaimFiles("backups", connection)
        archive = Archive(files)
        await archive.put(snapshot, "first", NOW, "structure")
        for name in ("first", "second"):
            with pytest.raises(StoreError, match=f"{doing}: the claim backups is full"):
                await archive.put(snapshot, name, NOW, "structure")
        assert await files.names("") == ["first", "first.manifest.json"]
        assert (await archive.fetch("first", tmp_path / "back.db")).sha256 == snapshot.sha256


def has_mounts_of_its_own() -> bool:
    found = shutil.which(OWN[0])
    return found is not None and subprocess.run([*OWN, "true"], check=False).returncode == 0
