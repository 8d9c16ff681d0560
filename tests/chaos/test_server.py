"""A server that is killed, forgets a kind, or no longer knows who is asking: the cache comes back with it."""

from __future__ import annotations

import asyncio
import copy
from pathlib import Path
from typing import Any

import msgspec
import pytest

import rig
from chaos.campaign import campaign
from chaos.proxy import FaultyProxy, connected, reached_through
from chaos.waiting import until_none
from gadgets import CONFIG_MAP, DEFINITION
from navarch._base.clock import SystemClock
from navarch.api import Dynamic, Kind
from navarch.client import Client, Config, load
from navarch.errors import NotFound
from navarch.k8s.authentication.v1 import TokenRequest, TokenRequestSpec
from navarch.k8s.core.v1 import ServiceAccount

pytestmark = pytest.mark.real

RBAC = "rbac.authorization.k8s.io"
BINDING = Kind(RBAC, "v1", "RoleBinding", plural="rolebindings")
GIZMO = Kind("chaos.example.com", "v1", "Gizmo", plural="gizmos")
CRD = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", plural="customresourcedefinitions", namespaced=False
)
ROBOT = "robot"


async def test_server_that_is_killed_and_comes_back(client: Client, rig_cluster: rig.Cluster) -> None:
    """It keeps no history of what it caches, so everything is listed anew; who writes only has to wait."""
    config, namespace = load(rig_cluster.kubeconfig), client.options.namespace
    async with connected(config, namespace) as other, campaign(client, other, CONFIG_MAP) as world:
        rig_cluster.daemons["kube-apiserver"].process.kill()
        await asyncio.to_thread(rig_cluster.restart, "kube-apiserver")
        await world.until_told(20, seconds=120)
        await world.survived()


async def test_server_whose_store_stands_still(client: Client, faulty: Client, rig_cluster: rig.Cluster) -> None:
    """Nobody can write, and nobody who asks is answered, until it goes on."""
    async with campaign(client, faulty, CONFIG_MAP) as world:
        with rig_cluster.suspended("etcd"):
            await SystemClock().sleep(3.0)
        await world.until_told(20)
        await world.survived(resumed=True)


async def test_kind_that_is_deleted_and_made_anew(client: Client, faulty: Client) -> None:
    """Its objects are gone, and new ones are seen: by the same watch, without a restart."""
    await client.install(gizmos())
    async with campaign(client, faulty, GIZMO) as world:
        lost = set(world.ledger.holds)
        await client.delete(CRD, gizmos()["metadata"]["name"])
        await until_gone(client)
        await world.until_error("is the CRD installed")
        await client.install(gizmos())
        await world.until_told(20, seconds=120)
        await world.survived()
        assert lost <= world.ledger.deleted
    await client.delete(CRD, gizmos()["metadata"]["name"])


def gizmos() -> dict[str, Any]:
    """A definition of its own: the one of other tests is not taken away."""
    definition = copy.deepcopy(DEFINITION)
    definition["metadata"]["name"] = "gizmos.chaos.example.com"
    definition["spec"]["group"] = GIZMO.group
    definition["spec"]["names"] = {"kind": "Gizmo", "plural": "gizmos", "singular": "gizmo"}
    return definition


async def until_gone(client: Client) -> None:
    async def look() -> str | None:
        try:
            await client.get(CRD, gizmos()["metadata"]["name"])
        except NotFound:
            return None
        return "expected the definition to be gone"

    await until_none(look, seconds=60)


@pytest.fixture
async def robot(client: Client, rig_cluster: rig.Cluster, proxy: FaultyProxy, tmp_path: Path) -> Config:
    """A service account that may read config maps, by way of the proxy, with its token in a file."""
    await client.create(ServiceAccount(name=ROBOT))
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}]
    role = {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": {"name": ROBOT}, "rules": rules}
    await client.create(Dynamic(role))
    await bind(client)
    (tmp_path / "token").write_text(await new_token(client))
    administrator = reached_through(proxy, load(rig_cluster.kubeconfig))
    return msgspec.structs.replace(administrator, token="", token_file=tmp_path / "token")


async def bind(client: Client) -> None:
    """Lets the robot do what its role says."""
    subject = {"kind": "ServiceAccount", "name": ROBOT, "namespace": client.options.namespace}
    role = {"kind": "Role", "name": ROBOT, "apiGroup": RBAC}
    binding = {"apiVersion": f"{RBAC}/v1", "kind": "RoleBinding", "metadata": {"name": ROBOT}}
    await client.create(Dynamic({**binding, "subjects": [subject], "roleRef": role}))


async def new_token(client: Client) -> str:
    request = TokenRequest(spec=TokenRequestSpec(audiences=[], expiration_seconds=600))
    answered = await client.create_subresource(ServiceAccount, ROBOT, "token", request)
    assert answered.status.token
    return answered.status.token


async def test_right_that_comes_and_goes(client: Client, robot: Config, proxy: FaultyProxy) -> None:
    """403 is waited out, as often as it comes."""
    async with connected(robot, client.options.namespace) as other, campaign(client, other, CONFIG_MAP) as world:
        for _ in range(2):
            await client.delete(BINDING, ROBOT)
            await world.until_error("is forbidden", meanwhile=proxy.cut_all)
            await bind(client)
            await world.until_told(20)
        await world.survived()


async def test_token_that_is_no_longer_good(
    client: Client, robot: Config, proxy: FaultyProxy, caplog: pytest.LogCaptureFixture
) -> None:
    """401 is waited out until the file has a token that is, even if there is none in it for a while."""
    async with connected(robot, client.options.namespace) as other, campaign(client, other, CONFIG_MAP) as world:
        for _ in range(2):
            write_token(robot, "expired")
            await world.until_error("renew it", meanwhile=proxy.cut_all)
            write_token(robot, "")
            await world.until_error("expected a token, got an empty file")
            write_token(robot, await new_token(client))
            await world.until_told(20)
        await world.survived(resumed=True)
        assert "not foreseen" not in caplog.text


def write_token(config: Config, token: str) -> None:
    Path(config.token_file).write_text(token)
