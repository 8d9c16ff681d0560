"""What is asked of which member, and what is made of a refusal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from etcd_operator.gateway import GatewayEtcd
from etcd_operator.plan import decide
from etcd_operator.tls import EtcdCredentials
from navarch.errors import EtcdAccessError
from navarch.etcd import EtcdClient
from observed import a_cluster, healthy


class Members:
    """Clients of members of one version, which note what they are asked; strangers may be refused."""

    def __init__(self, version: str, *, refuses: bool = False) -> None:
        self.version, self.refuses = version, refuses
        self.asked: list[tuple[str, str]] = []

    async def open(self, endpoints: Sequence[str], *, known: bool) -> EtcdClient:
        where = "+".join(endpoints)

        async def status(url: str) -> Any:
            if self.refuses:
                raise EtcdAccessError("user name is empty")
            header = SimpleNamespace(member_id=1, cluster_id=1, revision=1)
            fields = {"leader": 1, "is_learner": False, "raft_index": 1, "db_size": 1, "db_size_in_use": 1}
            return SimpleNamespace(header=header, version=self.version, **fields)

        async def members(*, linearizable: bool) -> list[Any]:
            self.asked.append((where, "a quorum's members" if linearizable else "its members"))
            return []

        async def get(key: bytes) -> None:
            self.asked.append((where, "a key"))

        parts = {
            "maintenance": SimpleNamespace(status=status),
            "cluster": SimpleNamespace(members=members),
            "kv": SimpleNamespace(get=get),
        }
        return cast("EtcdClient", SimpleNamespace(**parts))


def gateways(members: Members) -> GatewayEtcd:
    return GatewayEtcd({"c-0": "http://a", "c-1": "http://b"}, members.open, EtcdCredentials())


async def test_an_old_member_says_who_the_members_are_only_after_it_has_read() -> None:
    """An old member's list is trusted only after a linearizable read at that member."""
    old = Members("3.4.30")
    etcd = gateways(old)
    await etcd.reports()
    await etcd.members(agreed=True)
    assert old.asked == [("http://a", "a key"), ("http://a", "its members")]
    new = Members("3.5.21")
    etcd = gateways(new)
    await etcd.reports()
    await etcd.members(agreed=True)
    assert new.asked == [("http://a+http://b", "a quorum's members")]


async def test_a_password_that_somebody_has_asked_for_is_no_lost_quorum() -> None:
    """Users were switched on by hand: the status says so, and not that nobody answers."""
    etcd = gateways(Members("3.6.8", refuses=True))
    assert not await etcd.reports()
    assert await etcd.auth() == "refused"
    cluster = a_cluster()
    plan = decide(cluster, replace(healthy(cluster), auth="refused"))
    assert (plan.reason, plan.stuck) == ("AccessRefused", True)
    assert "spec.auth is not set" in plan.message
