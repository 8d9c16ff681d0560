"""Conversion by an operator's webhook, called over HTTPS by either API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import pytest

from certificates import sign
from conformance.controllers.watching import until_gone
from navarch import Context, ListMap, Model, Operator, Resource, Spec, Status, WebhookServer
from navarch.api import Kind
from navarch.client import ALL, Client, Config, MergePatch
from navarch.errors import ServerError
from navarch.operator import serve
from navarch.operator.migration import MigrationOptions, migrate
from navarch.schema import crd

CRDS = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", plural="customresourcedefinitions", namespaced=False
)
GROUP = "growing.example.com"


class PotSpec(Spec):
    litres: int = 1


class FirstPot(Resource[PotSpec, Status], group=GROUP, version="v1alpha1", kind="Pot"):
    """A pot of the first release."""


class OldPot(Resource[PotSpec, Status], group=GROUP, version="v1alpha1", kind="Pot", storage=False):
    """The same, once another version is stored."""


class FlatPot(Resource[PotSpec, Status], group=GROUP, version="v1beta1", kind="Pot", storage=False):
    """A version that is never stored."""


class Plant(Model):
    name: str
    water: int | None = None


class RichSpec(Spec):
    millilitres: int = 1000
    plants: Annotated[list[Plant], ListMap("name")] = []


class PotStatus(Status):
    filled: int | None = None


class Pot(Resource[RichSpec, PotStatus], group=GROUP, version="v1"):
    """A pot."""


NAME = Pot.__kind__.resource


def pot_operator(files: dict[str, Path]) -> Operator:
    """Converts between three versions through the stored one."""
    operator = Operator("pots", election=False, webhook_server=WebhookServer(**files))  # type: ignore[arg-type]

    @operator.convert(OldPot, Pot)
    def upgrade(old: OldPot) -> Pot:
        if old.spec.litres < 0:
            raise ValueError("less than nothing")
        return Pot(spec=RichSpec(millilitres=old.spec.litres * 1000))

    @upgrade.reverse
    def downgrade(new: Pot) -> OldPot:
        return OldPot(spec=PotSpec(litres=new.spec.millilitres // 1000))

    @operator.convert(FlatPot, Pot)
    def from_flat(flat: FlatPot) -> Pot:
        return Pot(spec=RichSpec(millilitres=flat.spec.litres * 1000))

    @from_flat.reverse
    def to_flat(new: Pot) -> FlatPot:
        return FlatPot(spec=PotSpec(litres=new.spec.millilitres // 1000))

    @operator.controller(Pot)
    async def reconcile(pot: Pot, ctx: Context) -> None:
        pot.status.filled = pot.spec.millilitres

    return operator


@pytest.fixture
def files(tmp_path: Path, config: Config) -> dict[str, Path]:
    """A certificate for loopback; the API server has to be reached over HTTPS, too."""
    authority = sign("authority")
    serving = sign("webhooks", authority, host="127.0.0.1")
    for name, content in (("ca.pem", authority.pem), ("tls.pem", serving.pem), ("key.pem", serving.key)):
        (tmp_path / name).write_bytes(content)
    return {"authority": tmp_path / "ca.pem", "certificate": tmp_path / "tls.pem", "key": tmp_path / "key.pem"}


@asynccontextmanager
async def pots(client: Client, *litres: int) -> AsyncIterator[None]:
    """Objects of the first release; the CRD ends with the block."""
    await client.using(manager="pots").install(crd(FirstPot))
    try:
        for number, each in enumerate(litres):
            await client.create(FirstPot(name=f"pot-{number}", spec=PotSpec(litres=each)))
        yield
    finally:
        async for pot in client.list(CRDS, fields=f"metadata.name={NAME}"):
            await client.patch(
                CRDS, pot.name, MergePatch({"spec": {"conversion": {"strategy": "None", "webhook": None}}})
            )
        await client.delete(CRDS, NAME)
        await until_gone(client, CRDS, NAME)


@asynccontextmanager
async def running(client: Client, operator: Operator) -> AsyncIterator[None]:
    """Runs the operator; its CRD is installed when the block begins."""
    prepared = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(serve(client, operator, prepared=prepared))
        serving.add_done_callback(lambda _: prepared.set())
        await asyncio.wait_for(prepared.wait(), 60)
        try:
            if not serving.done():
                yield
        finally:
            serving.cancel()


async def eventually_filled(client: Client, name: str, amount: int) -> None:
    """Waits until the operator has reconciled an object."""
    async with asyncio.timeout(60), client.watch(Pot, fields=f"metadata.name={name}") as events:
        if (await client.get(Pot, name)).status.filled == amount:
            return
        async for event in events:
            if event.object.status.filled == amount:
                return


async def test_objects_are_read_and_written_in_every_version(client: Client, files: dict[str, Path]) -> None:
    """Stored objects of the first release are reconciled in the new version; no client loses a field."""
    async with pots(client, 1, 2), running(client, pot_operator(files)):
        await eventually_filled(client, "pot-1", 2000)
        plants = [{"name": "fern", "water": 3}, {"name": "moss"}]
        await client.patch(Pot, "pot-1", MergePatch({"spec": {"millilitres": 2500, "plants": plants}}))
        assert (await client.get(OldPot, "pot-1")).spec.litres == 2
        await client.update(OldPot, "pot-1", lambda old: old.labels.update(seen="yes"))
        await client.patch(FlatPot, "pot-1", MergePatch({"metadata": {"labels": {"flat": "yes"}}}))
        new = await client.get(Pot, "pot-1")
        assert new.spec == RichSpec(millilitres=2500, plants=[Plant(name="fern", water=3), Plant(name="moss")])
        assert (new.labels, new.annotations) == ({"seen": "yes", "flat": "yes"}, {})
        await client.update(OldPot, "pot-1", lambda old: setattr(old.spec, "litres", 7))
        new = await client.get(Pot, "pot-1")
        assert (new.spec.millilitres, [plant.name for plant in new.spec.plants]) == (7000, ["fern", "moss"])
        await client.apply(OldPot(name="pot-1", spec=PotSpec(litres=9)), force=True)
        new = await client.get(Pot, "pot-1")
        assert (new.spec.millilitres, new.spec.plants[0].water) == (9000, 3)
        assert [pot.spec.litres async for pot in client.list(FlatPot)] == [1, 9]


async def test_failing_function_names_the_object_and_the_others_are_served(
    client: Client, files: dict[str, Path]
) -> None:
    """Kubernetes' form of the message, with the object and the cause."""
    async with pots(client, 1, -1), running(client, pot_operator(files)):
        with pytest.raises(ServerError) as caught:
            await client.get(Pot, "pot-1")
        assert f"conversion webhook for {GROUP}/v1alpha1, Kind=Pot failed: Pot " in caught.value.message
        assert (
            "/pot-1: cannot convert v1alpha1 to v1: upgrade raised ValueError: less than nothing"
            in caught.value.message
        )
        assert (await client.get(Pot, "pot-0")).spec.millilitres == 1000


async def test_migration_converts_and_cleans_the_crd(client: Client, files: dict[str, Path]) -> None:
    """Afterwards the old version can go, and the objects need no webhook."""
    async with pots(client, 1, 2, 3):
        async with running(client, pot_operator(files)):
            state = await migrate(client, NAME, MigrationOptions(per_second=10_000))
            assert (state.completed, state.failed) == (True, 0)
        await client.patch(CRDS, NAME, MergePatch({"spec": {"conversion": {"strategy": "None", "webhook": None}}}))
        await client.install(crd(Pot))
        found = [pot.spec.millilitres async for pot in client.list(Pot, namespace=ALL)]
        assert found == [1000, 2000, 3000]
        stored: Any = (await client.get(CRDS, NAME))["status"]["storedVersions"]
        assert stored == ["v1"]
