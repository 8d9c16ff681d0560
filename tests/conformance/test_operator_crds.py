"""An operator's CRDs on a real API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from conformance.controllers.watching import until, until_gone
from navarch.api import Dynamic, Kind, Object, Resource, Spec, Status
from navarch.client import ALL, Client, Config, Impersonation, MergePatch, connect
from navarch.errors import CrdError, MissingPermissionsError
from navarch.operator.crds import prepare_crds
from navarch.operator.permissions import Needs, Permission, crd_permissions, missing_permissions, permissions_of
from navarch.operator.roles import CrdPolicy, roles_of
from navarch.schema import crd
from schema import kinds

CRDS = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", plural="customresourcedefinitions", namespaced=False
)


class BoatSpec(Spec):
    sails: int = 1


class Boat(Resource[BoatSpec, Status], group="start.example.com", version="v1"):
    """A boat."""


class OldBoat(Boat, version="v1alpha1", storage=False): ...


class LargerSpec(BoatSpec):
    masts: int = 1


class LargerBoat(Resource[LargerSpec, Status], group="start.example.com", version="v1", kind="Boat"):
    """A boat of the next release."""


@asynccontextmanager
async def removing(client: Client, *versions: type[Object]) -> AsyncIterator[str]:
    """The name of a CRD that is gone again at the end."""
    name = versions[0].__kind__.resource
    try:
        yield name
    finally:
        await client.delete(CRDS, name)
        await until_gone(client, CRDS, name)


async def writers(client: Client, name: str) -> set[str]:
    """Who wrote to the CRD, the server itself left out."""
    managed = (await client.get(CRDS, name)).metadata["managedFields"]
    return {str(entry["manager"]) for entry in managed} - {"kube-apiserver"}


@pytest.mark.parametrize(
    ("versions", "policy"),
    [((kinds.Plain,), "install"), ((kinds.Everything,), "install"), ((kinds.OldGauge, kinds.Gauge), "force")],
)
async def test_second_start_writes_nothing(client: Client, versions: tuple[Any, ...], policy: CrdPolicy) -> None:
    """Whatever the server made of the CRD, it is recognised; it was served when the first start went on."""
    operator = client.using(manager="boats")
    async with removing(client, *versions) as name:
        await prepare_crds(operator, versions, policy)
        assert not await client.list(versions[-1], namespace=ALL)
        await prepare_crds(client.using(manager="second"), versions, policy)
        assert await writers(client, name) == {"boats"}


async def properties(client: Client, name: str) -> set[str]:
    """The fields of the spec that the cluster's definition has."""
    schema = (await client.get(CRDS, name))["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return set(schema["properties"]["spec"]["properties"])


async def test_next_release_changes_the_schema(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    """To verify warns of the difference, to install brings it; the release before does not take it away again."""
    operator = client.using(manager="boats")
    async with removing(client, Boat) as name:
        await prepare_crds(operator, [Boat], "install")
        await prepare_crds(client, [LargerBoat], "verify")
        assert [vars(record)["fields"]["differs_at"] for record in caplog.records] == [
            "properties.spec.properties.masts"
        ]
        await prepare_crds(operator, [LargerBoat], "install")
        assert await properties(client, name) == {"sails", "masts"}
        with pytest.raises(CrdError, match=r"v1 spec.masts: the property is removed"):
            await prepare_crds(operator, [Boat], "install")
        assert await properties(client, name) == {"sails", "masts"}
        await prepare_crds(operator, [Boat], "force")
        assert await properties(client, name) == {"sails"}


async def test_crd_of_another_manager_is_taken_over_only_by_force(client: Client) -> None:
    """Also if it would only gain fields."""
    operator = client.using(manager="boats")
    async with removing(client, Boat) as name:
        await client.using(manager="helm").install(crd(Boat))
        with pytest.raises(CrdError, match="but helm applied it"):
            await prepare_crds(operator, [LargerBoat], "install")
        assert await properties(client, name) == {"sails"}
        await prepare_crds(operator, [LargerBoat], "force")
        assert await properties(client, name) == {"sails", "masts"}


async def test_many_replicas_start_at_once(client: Client) -> None:
    """Each goes on only when the kind is served."""

    async def start() -> None:
        await prepare_crds(client.using(manager="boats"), [OldBoat, Boat], "install")
        assert not await client.list(Boat, namespace=ALL)
        assert not await client.list(OldBoat, namespace=ALL)

    async with removing(client, Boat), asyncio.TaskGroup() as replicas:
        for _ in range(8):
            replicas.create_task(start())


async def test_versions_that_are_needed_stay(client: Client) -> None:
    """Those of others, and those in which objects are stored."""
    operator = client.using(manager="boats")
    async with removing(client, Boat) as name:
        await client.using(manager="helm").install(crd(OldBoat, Boat))
        with pytest.raises(CrdError, match="v1alpha1: the version is no longer served"):
            await prepare_crds(operator, [Boat], "install")
        await prepare_crds(operator, [OldBoat, Boat], "verify")
        stored = MergePatch({"status": {"storedVersions": ["v1alpha1", "v1"]}})
        await client.patch(CRDS, name, stored, subresource="status")
        with pytest.raises(CrdError, match="objects may still be stored as v1alpha1"):
            await prepare_crds(operator, [Boat], "install")


async def test_missing_crd_is_told_with_the_remedy(client: Client) -> None:
    """Of all kinds at once."""
    with pytest.raises(CrdError, match=r'boats.start.example.com \(Boat v1\), plains.*crds="install"'):
        await prepare_crds(client, [Boat, kinds.Plain], "verify")


@asynccontextmanager
async def connected_as(admin: Config, user: str, *granted: Permission) -> AsyncIterator[Client]:
    """A client that is allowed this and no more."""
    jane = Impersonation(user=user)
    async with connect(admin) as client, connect(msgspec.structs.replace(admin, impersonate=jane)) as other:
        for manifest in roles_of(user, granted, user):
            await client.apply(Dynamic(manifest), force=True)
        await until(  # the server takes a moment to know
            lambda: missing_permissions(other, granted), lambda missing: not missing, f"{user} to have the roles"
        )
        yield other


async def test_operator_without_rights_is_told_which_it_needs(config: Config) -> None:
    """All at once; nothing is written."""
    expected = r"expected jane .*\n(.*\n)* +customresourcedefinitions.apiextensions.k8s.io  create, patch\n"
    async with connected_as(config, "jane", *crd_permissions("verify")) as other:
        with pytest.raises(MissingPermissionsError, match=expected):
            await prepare_crds(other, [Boat], "install")


async def test_operator_of_one_namespace_can_bring_its_crd(client: Client, config: Config) -> None:
    """Though it may not list the objects of all namespaces, which would tell that they are served."""
    namespace = client.options.namespace
    needed = permissions_of([Needs(primary=Boat, namespaces=(namespace,))], crds="install")
    async with connected_as(config, "joe", *needed) as other, removing(client, Boat):
        await prepare_crds(other, [Boat], "install")
        assert not await other.list(Boat, namespace=namespace)
