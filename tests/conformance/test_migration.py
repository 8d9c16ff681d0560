"""Stored objects move to the stored version of their kind, on both engines: nothing is lost, and other writers win."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from conformance.controllers.watching import until_gone
from navarch.api import Dynamic, Kind, Object, Resource, Spec, Status
from navarch.client import Client, MergePatch, Request, Response, Transport
from navarch.client.transport import WrappedTransport
from navarch.errors import ApiError, ConnectionLostError, CrdError, Gone, Invalid, NavarchError, TooManyRequests
from navarch.operator.migration import Migration, MigrationOptions, find_crds, migrate
from navarch.schema import crd
from navarch.testing.faults import faulty

CRDS = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", plural="customresourcedefinitions", namespaced=False
)
FAST = MigrationOptions(per_second=10_000)
COUNT = 12


class KegSpec(Spec):
    litres: int = 1


class OldKeg(
    Resource[KegSpec, Status], group="migrating.example.com", version="v1alpha1", kind="Keg", short_names=("kg",)
):
    """A keg, as it was stored."""


class PlainKeg(OldKeg, version="v1alpha1", storage=False):
    """The same version when another one is stored."""


class Keg(Resource[KegSpec, Status], group="migrating.example.com", version="v1", short_names=("kg",)):
    """A keg."""


NAME = Keg.__kind__.resource


@asynccontextmanager
async def kegs(client: Client, count: int = COUNT) -> AsyncIterator[list[str]]:
    """So many objects, stored in the old version of a CRD whose stored version is a newer one; the CRD ends with it."""
    await client.install(crd(OldKeg))
    names = [f"keg-{number:02}" for number in range(count)]
    try:
        for litres, name in enumerate(names):
            await client.create(OldKeg(name=name, labels={"litres": str(litres)}, spec=KegSpec(litres=litres)))
        await client.install(crd(PlainKeg, Keg))
        yield names
    finally:
        await client.delete(CRDS, NAME)
        await until_gone(client, CRDS, NAME)


async def stored_versions(client: Client) -> Any:
    """The versions in which objects may be stored, as the CRD tells."""
    return (await client.get(CRDS, NAME))["status"]["storedVersions"]


async def contents(client: Client, kind: type[Object] = Keg) -> dict[str, Any]:
    """All that the objects hold, but for the revision of the last write."""
    found: dict[str, Any] = {}
    async for keg in client.list(kind.__kind__):
        assert isinstance(keg, Dynamic)
        metadata = {name: value for name, value in keg.metadata.items() if name != "resourceVersion"}
        found[keg.name] = {**keg, "metadata": metadata}
    return found


async def revisions(client: Client) -> dict[str, str]:
    """The revision of each object's last write."""
    return {keg.name: keg.metadata.resource_version async for keg in client.list(Keg)}


async def test_objects_move_to_the_stored_version(client: Client) -> None:
    """All are rewritten once, none is changed, and the old version can then be removed from the CRD."""
    async with kegs(client) as names:
        assert await stored_versions(client) == ["v1alpha1", "v1"]
        before = await contents(client)
        reports: list[int] = []
        state = await migrate(client, NAME, FAST, report=lambda state: reports.append(state.seen))
        assert (state.rewritten, state.failed, state.completed, state.version) == (COUNT, 0, True, "v1")
        assert reports[-1] == COUNT
        assert await contents(client) == before
        assert await stored_versions(client) == ["v1"]
        await client.install(crd(Keg))
        assert sorted(keg.spec.litres for keg in await client.list(Keg)) == list(range(len(names)))


async def test_nothing_is_written_where_only_one_version_is_stored(client: Client) -> None:
    """A second migration ends at once."""
    async with kegs(client, 2):
        await migrate(client, NAME, FAST)
        before = await revisions(client)
        state = await migrate(client, NAME, FAST)
        assert (state.seen, state.completed, state.old_versions) == (0, True, [])
        assert await revisions(client) == before


async def test_killed_migration_is_continued_by_the_next(client: Client) -> None:
    """Killed five times: each object is written once in all, and none is changed."""
    async with kegs(client):
        before, rewritten = await contents(client), 0
        slow = MigrationOptions(per_second=10_000, concurrency=1, page_size=3)
        for kill in range(5):
            state = await _killed(client, slow, after=2 * kill + 1)
            rewritten += state.rewritten
            assert await stored_versions(client) == ["v1alpha1", "v1"]
        last = await migrate(client, NAME, slow)
        assert (last.completed, last.rewritten + last.unchanged) == (True, COUNT)
        assert last.unchanged >= rewritten > 0
        assert await contents(client) == before
        assert await stored_versions(client) == ["v1"]


async def _killed(client: Client, options: MigrationOptions, *, after: int) -> Migration:
    """The state of a migration that was cancelled after so many objects."""
    states: list[Migration] = []
    running: list[asyncio.Task[Migration]] = []

    def report(state: Migration) -> None:
        states.append(state)
        if state.seen >= after:
            running[0].cancel()

    async with asyncio.TaskGroup() as tasks:
        running.append(tasks.create_task(migrate(client, NAME, options, report=report)))
    return states[-1]


async def test_dry_run_stores_nothing(client: Client) -> None:
    """The server converts and checks every object."""
    async with kegs(client, 3):
        before = await revisions(client)
        state = await migrate(client, NAME, MigrationOptions(dry_run=True, per_second=10_000))
        assert (state.seen, state.failed, state.completed) == (3, 0, False)
        assert await revisions(client) == before
        assert await stored_versions(client) == ["v1alpha1", "v1"]


class Meddling(WrappedTransport):
    """Lets something happen before the first patch of an object is sent."""

    def __init__(self, inner: Transport, name: str, meddle: Callable[[], Awaitable[object]]) -> None:
        super().__init__(inner)
        self._name = name
        self._meddle: Callable[[], Awaitable[object]] | None = meddle

    async def send(self, request: Request) -> Response:
        if request.method == "PATCH" and request.path.endswith(f"/{self._name}") and self._meddle is not None:
            meddle, self._meddle = self._meddle, None
            await meddle()
        return await super().send(request)


def meddling(client: Client, name: str, meddle: Callable[[], Awaitable[object]]) -> Client:
    """The client of a migration beside which something else happens."""
    return client.through(lambda inner: Meddling(inner, name, meddle))


async def test_other_writer_wins(client: Client) -> None:
    """An object that changes after it was listed is left as it is: that write stored it in the stored version."""
    async with kegs(client, 3):
        change = MergePatch({"spec": {"litres": 99}})
        other = meddling(client, "keg-01", lambda: client.patch(Keg, "keg-01", change))
        state = await migrate(other, NAME, FAST)
        assert (state.rewritten, state.written_by_others, state.completed) == (2, 1, True)
        assert (await client.get(Keg, "keg-01")).spec.litres == 99
        await client.install(crd(Keg))
        assert len(await client.list(Keg)) == 3


async def test_deleted_and_replaced_objects_are_no_failures(client: Client) -> None:
    """An object may be gone, or another one may have its name."""

    async def replace() -> None:
        await client.delete(Keg, "keg-01")
        await client.create(Keg(name="keg-01", spec=KegSpec(litres=50)))

    async with kegs(client, 3):
        gone = meddling(client, "keg-00", lambda: client.delete(Keg, "keg-00"))
        state = await migrate(meddling(gone, "keg-01", replace), NAME, FAST)
        assert (state.rewritten, state.deleted, state.written_by_others, state.completed) == (1, 1, 1, True)
        assert (await client.get(Keg, "keg-01")).spec.litres == 50


async def test_change_of_the_crd_begins_the_migration_again(client: Client) -> None:
    """Its stored version may have been another one for a while."""
    async with kegs(client, 3):
        described = crd(PlainKeg, Keg)
        described["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["description"] = "changed meanwhile"
        other = meddling(client, "keg-02", lambda: client.install(described))
        state = await migrate(other, NAME, FAST)
        assert (state.passes, state.unchanged, state.completed) == (2, 3, True)


async def test_busy_server_and_lost_connections_are_waited_out(client: Client) -> None:
    """An empty patch can be repeated safely."""
    errors: list[NavarchError] = [
        ConnectionLostError("it broke off"),
        ApiError("down", code=500),
        TooManyRequests("busy", code=429, retry_after=0.01),
    ]

    def fault(request: Request) -> NavarchError | None:
        return errors.pop() if request.method == "PATCH" and "/kegs/" in request.path and errors else None

    async with kegs(client, 3):
        state = await migrate(faulty(client, fault), NAME, FAST)
        assert (state.rewritten, state.failed, state.completed, errors) == (3, 0, True, [])


async def test_expired_continue_token_does_not_end_the_migration(client: Client) -> None:
    """The rest of the list comes from a newer revision."""
    expired: list[str] = []

    def fault(request: Request) -> NavarchError | None:
        if request.method == "GET" and "continue" in request.query and not expired:
            expired.append(request.path)
            return Gone("the continue token has expired", code=410, reason="Expired")
        return None

    async with kegs(client):
        state = await migrate(faulty(client, fault), NAME, MigrationOptions(per_second=10_000, page_size=5))
        assert (state.rewritten, state.completed, len(expired)) == (COUNT, True, 1)


async def test_object_that_cannot_be_rewritten_keeps_the_old_version(client: Client) -> None:
    """The others are rewritten, and the object and the cause are reported."""

    def fault(request: Request) -> NavarchError | None:
        is_bad = request.method == "PATCH" and request.path.endswith("/keg-01")
        return Invalid("Keg keg-01 is invalid: spec.litres: too much", code=422) if is_bad else None

    async with kegs(client, 3):
        state = await migrate(faulty(client, fault), NAME, FAST)
        assert (state.rewritten, state.failed, state.completed) == (2, 1, False)
        assert "keg-01 is invalid: spec.litres: too much" in state.failures[0]
        assert await stored_versions(client) == ["v1alpha1", "v1"]


async def test_crds_are_found_by_the_names_that_kubectl_takes(client: Client) -> None:
    """A name that none or several have is refused with those that there are."""
    async with kegs(client, 0):
        for name in (NAME, "Keg", "keg", "kegs", "kg"):
            assert [found.name for found in await find_crds(client, [name, name])] == [NAME]
        with pytest.raises(CrdError, match=rf"expected one CRD called 'barrel', got none; there are .*{NAME}"):
            await find_crds(client, ["barrel"])
    with pytest.raises(CrdError, match="expected it in the cluster, got none"):
        await migrate(client, NAME)
