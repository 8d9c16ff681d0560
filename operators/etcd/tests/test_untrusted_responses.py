"""What is answered by pods, members and tools that a tenant can put something else in the place of."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from etcd_operator.backup import SnapshotVerifier
from etcd_operator.backup.claim_files import ClaimConnection, ClaimFiles
from etcd_operator.backup.schedule import NamespaceLimit
from etcd_operator.backup.snapshot_store import StoreError
from etcd_operator.gateway import MAX_ANSWER_BYTES
from etcd_operator.versions import EtcdVersion
from navarch.errors import EtcdError, InvalidValueError
from navarch.etcd import EtcdClient, EtcdOptions
from snapshot_files import a_snapshot
from test_snapshot_verifier import etcdutl

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
BOMB = gzip.compress(bytes(64 << 20))


@asynccontextmanager
async def answering(answer: Answer) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/{name:.*}", answer)
    async with TestServer(app) as server:
        yield str(server.make_url("/"))


@asynccontextmanager
async def claim(answer: Answer) -> AsyncIterator[ClaimFiles]:
    """A claim whose pod answers so."""
    async with answering(answer) as url, aiohttp.ClientSession(auto_decompress=False) as session:
        yield ClaimFiles("backups", ClaimConnection(session, url, ""))


ANSWERS = [
    web.Response(body=b"x" * (32 << 20)),
    web.Response(body=b"[" * 100_000),
    web.Response(body=b"\xff"),
    web.Response(body=BOMB, headers={"Content-Encoding": "gzip"}),
    web.Response(status=500, body=b"x" * (1 << 20)),
    web.Response(status=302, headers={"Location": "http://127.0.0.1:1/"}),
]


@pytest.mark.parametrize("number", range(len(ANSWERS)))
async def test_a_claims_pod_that_answers_something_else_is_a_store_that_failed(number: int) -> None:
    """Too much, too deep, no text, compressed, somewhere else: nothing of it is repeated, and nothing is followed."""

    async def answer(_: web.Request) -> web.StreamResponse:
        made = ANSWERS[number]
        return web.Response(status=made.status, body=made.body, headers=dict(made.headers))

    async with claim(answer) as files:
        with pytest.raises(StoreError) as listed:
            await files.names("")
        with pytest.raises(StoreError) as renamed:
            await files.rename("a", "b")
    assert all("xxx" not in str(each.value) for each in (listed, renamed))


@pytest.mark.parametrize(
    "body", [b"x" * (MAX_ANSWER_BYTES + 1), b'{"header":' + b"[" * 100_000, b'{"version":"\xff"}', b"{}x"]
)
async def test_a_member_that_answers_something_else_is_an_error_of_etcd(body: bytes) -> None:
    """An invalid response of a member's image raises `EtcdError`."""

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(body=body)

    async with answering(answer) as url:
        options = EtcdOptions(endpoints=(url,), patience=0, max_answer_bytes=MAX_ANSWER_BYTES)
        async with EtcdClient(options) as etcd:
            with pytest.raises(EtcdError):
                await etcd.maintenance.status(url)
            with pytest.raises(EtcdError):
                await anext(etcd.maintenance.snapshot(url))


@pytest.mark.parametrize("text", ["9" * 5000 + ".1.1", "3.5", "٣.5.1", "3.5.1-" + "x" * 1000])
def test_a_version_that_is_none_is_refused(text: str) -> None:
    """An invalid version is refused, whatever its length, and the error cuts it."""
    with pytest.raises(InvalidValueError) as raised:
        EtcdVersion.of(text)
    assert len(str(raised.value)) < 200


async def test_the_tool_that_reads_snapshots_has_nothing_of_the_operators(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """etcdutl reads an untrusted file, and gets none of the operator's environment."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of-the-operator")
    said = tmp_path / "environment"
    program = etcdutl(tmp_path, "3.5.1", f"env > {said}; exit 1")
    with pytest.raises(Exception, match="cannot be restored"):
        await SnapshotVerifier(program).verified(a_snapshot(tmp_path / "snapshot.db"))
    assert "of-the-operator" not in said.read_text()


async def test_a_tool_that_talks_without_end_fills_no_memory(tmp_path: Path) -> None:
    """The output of a talkative tool is read and dropped."""
    program = etcdutl(tmp_path, "3.5.1", "head -c 50000000 /dev/zero; exit 1")
    with pytest.raises(Exception, match="cannot be restored"):
        async with asyncio.timeout(60):
            await SnapshotVerifier(program).verified(a_snapshot(tmp_path / "snapshot.db"))


def test_a_namespace_has_so_many_turns_and_another_one_its_own() -> None:
    """A namespace has a limited number of slots, and a finished backup frees one."""
    limit = NamespaceLimit()
    with limit.turn("a") as first, limit.turn("a"), limit.turn("a"), limit.turn("a"):
        assert first == ""
        with limit.turn("a") as fifth, limit.turn("b") as other:
            assert "others of this namespace" in fifth
            assert other == ""
    with limit.turn("a") as again:
        assert again == ""
