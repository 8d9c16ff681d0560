"""Gateways of older etcds, which are elsewhere: a real etcd behind a server that has it there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
import pytest
from aiohttp import web

from etcd_members import EtcdCluster
from navarch.errors import EtcdError, EtcdNotFoundError
from navarch.etcd import EtcdClient, EtcdOptions

OLD = {
    "/kv/lease/revoke": "/lease/revoke",
    "/kv/lease/timetolive": "/lease/timetolive",
    "/kv/lease/leases": "/lease/leases",
}
"""Where older ones have what newer ones have elsewhere."""


@dataclass
class OldGateway:
    """Answers under one prefix alone, with what etcd says."""

    etcd: str
    prefix: str
    url: str = ""
    asked: list[str] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path)
        rest = request.path.removeprefix(self.prefix)
        if rest == request.path or not rest.startswith("/") or rest in OLD.values():
            return web.Response(status=404, text="404 page not found\n")
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{self.etcd}/v3{OLD.get(rest, rest)}", data=await request.read()) as said,
        ):
            response = web.StreamResponse(status=said.status)
            await response.prepare(request)
            async for piece in said.content.iter_any():
                await response.write(piece)
            return response


@asynccontextmanager
async def old_gateway(etcd: str, prefix: str) -> AsyncIterator[OldGateway]:
    gateway = OldGateway(etcd, prefix)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", gateway.answer)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0]
        gateway.url = f"http://{host}:{port}"
        yield gateway
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("where", ["/v3alpha", "/v3beta"])
async def test_an_older_etcd_is_found_where_it_is(member: EtcdCluster, prefix: bytes, where: str) -> None:
    """Keys, members, leases, a snapshot; and once it is known where, it is asked nowhere else."""
    async with old_gateway(member.urls[0], where) as old, EtcdClient(EtcdOptions(endpoints=(old.url,))) as etcd:
        await etcd.kv.put(prefix, b"1")
        found = await etcd.kv.get(prefix)
        assert found is not None
        assert found.value == b"1"
        assert len(await etcd.cluster.members(linearizable=False)) == 1
        lease = await etcd.leases.grant(60)
        assert (await etcd.leases.time_left(lease.id)).granted == 60
        await etcd.leases.revoke(lease.id)
        assert [piece async for piece in etcd.maintenance.snapshot(old.url)]
        looked = [path for path in old.asked if not path.startswith(f"{where}/")]
        assert looked == [f"{each}/kv/put" for each in ("/v3", "/v3beta") if each != where][: len(looked)]
        assert looked


async def test_what_etcd_does_not_find_is_looked_for_once(member: EtcdCluster) -> None:
    """That a member is not there is an answer, not another place."""
    async with old_gateway(member.urls[0], "/v3") as new, EtcdClient(EtcdOptions(endpoints=(new.url,))) as etcd:
        with pytest.raises(EtcdNotFoundError):
            await etcd.cluster.remove(12345)
        assert new.asked == ["/v3/cluster/member/remove"]


async def test_a_gateway_that_moves_is_found_again(member: EtcdCluster, prefix: bytes) -> None:
    """A member starts again with a newer etcd, in the middle of a client's life."""
    async with old_gateway(member.urls[0], "/v3beta") as old, EtcdClient(EtcdOptions(endpoints=(old.url,))) as etcd:
        await etcd.kv.put(prefix, b"1")
        old.prefix = "/v3"
        assert await etcd.kv.get(prefix) is not None


async def test_who_has_no_gateway_is_told_what_was_expected(member: EtcdCluster) -> None:
    """Another server, or etcd with its gateway off."""
    async with old_gateway(member.urls[0], "/v9") as other, EtcdClient(EtcdOptions(endpoints=(other.url,))) as etcd:
        with pytest.raises(EtcdError, match=r"expected etcd's gateway at .*/v3/kv/range, got status 404"):
            await etcd.kv.get(b"x")
