"""Two releases of an operator side by side, as in a rolling update: behind one webhook registration, under a writer."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from navarch import Client, Context, Operator, Resource, Review, Spec, Status
from navarch.api import Dynamic, Kind
from navarch.client import MergePatch
from navarch.cluster.embedded.cluster import EmbeddedCluster
from navarch.errors import AlreadyExists, CrdError, NotFound, ServerError
from navarch.k8s.coordination.v1 import Lease
from navarch.k8s.core.v1 import ConfigMap
from navarch.operator import serve
from navarch.operator.webhook_server import WebhookFront
from navarch.testing import Cluster
from navarch.testing.local_webhooks import LocalWebhookServer
from navarch.webhook.configurations import VALIDATING, WebhookAddress
from navarch.webhook.router import WebhookAnswer, WebhookRouter

CRDS = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", plural="customresourcedefinitions", namespaced=False
)
GROUP = "lamps.example.com"


class OldSpec(Spec):
    watts: int = 5


class AlphaLamp(Resource[OldSpec, Status], group=GROUP, version="v1alpha1", kind="Lamp", storage=False):
    """The oldest version, of both releases."""


class StoredBeta(Resource[OldSpec, Status], group=GROUP, version="v1beta1", kind="Lamp"):
    """What the first release stores."""


class BetaLamp(Resource[OldSpec, Status], group=GROUP, version="v1beta1", kind="Lamp", storage=False):
    """The same in the second release."""


class NewSpec(Spec):
    lumens: int = 500
    colour: str | None = None


class Lamp(Resource[NewSpec, Status], group=GROUP, version="v1"):
    """What the second release stores."""


class NextLamp(Resource[NewSpec, Status], group=GROUP, version="v1", kind="Lamp", storage=False):
    """The new version in a release that serves it and stores the old one."""


NAME = Lamp.__kind__.resource


def first_release(**options: Any) -> Operator:
    """Knows v1alpha1 and v1beta1."""
    made = Operator("lamp-operator", endpoints=None, **options)

    @made.convert(AlphaLamp, StoredBeta)
    def to_beta(old: AlphaLamp) -> StoredBeta:
        return StoredBeta(spec=OldSpec(watts=old.spec.watts))

    to_beta.reverse(lambda new: AlphaLamp(spec=OldSpec(watts=new.spec.watts)))

    @made.controller(StoredBeta)
    async def reconcile(lamp: StoredBeta, ctx: Context) -> None: ...

    return made


def second_release(newest: Any = Lamp, beta: Any = BetaLamp, **options: Any) -> Operator:
    """Knows v1, too."""
    made = Operator("lamp-operator", endpoints=None, **options)

    @made.convert(AlphaLamp, beta)
    def to_beta(old: AlphaLamp) -> Any:
        return beta(spec=OldSpec(watts=old.spec.watts))

    to_beta.reverse(lambda new: AlphaLamp(spec=OldSpec(watts=new.spec.watts)))

    @made.convert(beta, newest)
    def to_newest(old: Any) -> Any:
        return newest(spec=NewSpec(lumens=old.spec.watts * 100))

    to_newest.reverse(lambda new: beta(spec=OldSpec(watts=new.spec.lumens // 100)))

    @made.controller(newest)
    async def reconcile(lamp: Any, ctx: Context) -> None: ...

    return made


class Service:
    """The replicas of all releases behind one address; each review goes to one of them at random."""

    def __init__(self, cluster: Cluster) -> None:
        engine = cluster._engine
        assert isinstance(engine, EmbeddedCluster)
        self._inner = LocalWebhookServer(engine)
        self._routers: list[WebhookRouter] = []
        self._rng = random.Random(16)

    def front(self, operator: str, client: Client) -> WebhookFront:
        front, service, clock = self._inner.front(operator, client), self, client.clock
        serving = front.serving

        class AnyReplica(WebhookRouter):
            async def answer(self, path: str, body: bytes) -> WebhookAnswer:
                return await service._rng.choice(service._routers).answer(path, body)

        @asynccontextmanager
        async def joined(router: WebhookRouter) -> AsyncIterator[WebhookAddress]:
            async with serving(AnyReplica({}, clock)) as address:
                self._routers.append(router)
                try:
                    yield address
                finally:
                    self._routers.remove(router)

        front.serving = joined  # type: ignore[method-assign]
        return front

    async def start(self, group: asyncio.TaskGroup, cluster: Cluster, operator: Operator) -> asyncio.Task[None]:
        """Runs a replica until it is cancelled; returns when it is prepared."""
        operator.webhook_server = self
        prepared = asyncio.Event()
        running = group.create_task(serve(cluster.client, operator, prepared=prepared))
        waiting = group.create_task(prepared.wait())
        await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        return running


class LampWriter:
    """Creates lamps as v1beta1 and increments one of them, again and again; tries again what failed."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.stored: dict[str, int] = {}
        self.errors: list[str] = []

    async def run(self) -> None:
        number = 0
        while True:
            number += 1
            name = f"lamp-{number}"
            await self._until_done(self._client.create, BetaLamp(name=name, spec=OldSpec(watts=number)))
            self.stored[name] = number
            patch = MergePatch({"spec": {"watts": number}})
            await self._until_done(self._client.patch, BetaLamp, "lamp-1", patch)
            self.stored["lamp-1"] = number

    async def _until_done(self, write: Any, *arguments: Any) -> None:
        while True:
            try:
                await write(*arguments)
            except AlreadyExists:  # it was stored, and only the answer could not be converted
                return
            except ServerError as error:
                self.errors.append(str(error))
            else:
                return

    async def goes_on(self, cluster: Cluster, count: int = 10) -> None:
        """Waits for so many more lamps."""
        wanted = len(self.stored) + count

        async def stored() -> int:
            return len(self.stored)

        await cluster.eventually(stored, lambda found: found >= wanted, what=f"{count} more lamps")


async def definition(cluster: Cluster) -> dict[str, Any]:
    """What the cluster's CRD says, without what only its writers see."""
    found = await cluster.client.get(CRDS, NAME)
    return {"spec": found["spec"], "stored": found["status"]["storedVersions"]}


async def stopped(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def test_writer_goes_on_through_a_roll_and_nothing_is_lost(cluster: Cluster) -> None:
    """The old replica refuses what it cannot convert, and says so; the new one answers, and what was acknowledged is there."""
    service, writer = Service(cluster), LampWriter(cluster.client)
    async with asyncio.TaskGroup() as group:
        old = await service.start(group, cluster, first_release())
        writing = group.create_task(writer.run())
        await writer.goes_on(cluster)
        assert writer.errors == []

        new = await service.start(group, cluster, second_release())
        installed = await definition(cluster)
        await writer.goes_on(cluster)
        assert writer.errors, "expected reviews that reached the old replica"
        told = [error for error in writer.errors if f"does not know {GROUP}/v1, only v1alpha1, v1beta1" in error]
        assert told == writer.errors
        assert "try again until all replicas are updated" in told[0]
        assert await definition(cluster) == installed
        assert [version["name"] for version in installed["spec"]["versions"] if version["storage"]] == ["v1"]

        await stopped(old)
        failed = len(writer.errors)
        await writer.goes_on(cluster)
        assert len(writer.errors) - failed <= 1, "expected no more errors than the one review that was under way"
        await stopped(writing)
        assert await definition(cluster) == installed
        await has_all(cluster, writer)
        await stopped(new)


async def has_all(cluster: Cluster, writer: LampWriter) -> None:
    """Every acknowledged write is there, in every version."""
    for kind in (AlphaLamp, BetaLamp):
        found = {lamp.name: lamp.spec.watts async for lamp in cluster.client.list(kind)}
        assert writer.stored.items() <= found.items()
    lumens = {lamp.name: lamp.spec.lumens async for lamp in cluster.client.list(Lamp)}
    assert {name: watts * 100 for name, watts in writer.stored.items()}.items() <= lumens.items()


async def test_old_release_that_restarts_refuses_a_crd_whose_stored_version_it_does_not_know(cluster: Cluster) -> None:
    """It would read no object. It changes nothing, and the new replica goes on alone."""
    service, writer = Service(cluster), LampWriter(cluster.client)
    async with asyncio.TaskGroup() as group:
        new = await service.start(group, cluster, second_release())
        installed = await definition(cluster)
        with pytest.raises(CrdError, match=r"a later release stores objects as v1, which .* run the later release"):
            await serve(cluster.client, with_server(first_release(), service))
        assert await definition(cluster) == installed
        writing = group.create_task(writer.run())
        await writer.goes_on(cluster)
        await stopped(writing)
        assert writer.errors == []
        await stopped(new)


def with_server(operator: Operator, service: Service) -> Operator:
    operator.webhook_server = service
    return operator


async def test_old_release_that_restarts_keeps_a_version_of_the_new_one(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    """A version that is served, and not stored yet, is not dropped: the old release runs beside it, and warns."""
    service = Service(cluster)
    caplog.set_level(logging.WARNING, "navarch.operator.crds")
    async with asyncio.TaskGroup() as group:
        new = await service.start(group, cluster, second_release(NextLamp, StoredBeta))
        installed = await definition(cluster)
        old = await service.start(group, cluster, first_release())
        assert await definition(cluster) == installed
        assert "a later release has installed this CRD" in caplog.text
        await cluster.client.create(StoredBeta(name="one", spec=OldSpec(watts=7)))
        await stopped(old)
        assert (await cluster.get(NextLamp, "one")).spec.lumens == 700
        await stopped(new)


# Configurations


def guard(*checks: str, **options: Any) -> Operator:
    """A release with these webhooks."""
    made = Operator("guard", endpoints=None, **options)
    for name in checks:

        @made.validate(ConfigMap, labels="guarded", name=name)
        async def check(config: ConfigMap, review: Review[ConfigMap]) -> None: ...

    return made


async def declared(cluster: Cluster) -> Sequence[str]:
    found = await cluster.client.get(VALIDATING, "guard")
    return [entry["name"].partition(".")[0] for entry in found["webhooks"]]


async def version(cluster: Cluster) -> str:
    found: Dynamic = await cluster.client.get(VALIDATING, "guard")
    return str(found.metadata["resourceVersion"])


async def test_webhooks_of_the_leaders_release_are_declared(cluster: Cluster) -> None:
    """Releases with different webhooks do not undo each other's configuration: it changes once, when the new one leads."""
    service = Service(cluster)
    async with asyncio.TaskGroup() as group:
        old = await service.start(group, cluster, guard("size"))
        await leads(cluster)
        before = await version(cluster)
        new = await service.start(group, cluster, guard("size", "colour"))
        await cluster.pass_time(30)
        assert (await declared(cluster), await version(cluster)) == (["size"], before)
        await stopped(old)
        await cluster.eventually(lambda: declared(cluster), lambda found: found == ["size", "colour"])
        after = await version(cluster)
        restarted = await service.start(group, cluster, guard("size"))
        await cluster.pass_time(30)
        assert (await declared(cluster), await version(cluster)) == (["size", "colour"], after)
        assert "in a rolling update, a replica of the other release has it: try again" in await refusal(cluster)
        await cluster.delete(VALIDATING, "guard")
        await cluster.eventually(lambda: found_again(cluster), lambda found: found == ["size", "colour"])
        await stopped(new)
        await cluster.eventually(lambda: declared(cluster), lambda found: found == ["size"], what="a rollback")
        await stopped(restarted)


async def refusal(cluster: Cluster) -> str:
    """The error of a request whose review reached a replica without that webhook."""
    for number in range(30):
        try:
            await cluster.create(ConfigMap(name=f"c-{number}", labels={"guarded": "yes"}))
        except ServerError as error:
            return str(error)
    return ""


async def found_again(cluster: Cluster) -> Sequence[str]:
    try:
        return await declared(cluster)
    except NotFound:
        return []


async def leads(cluster: Cluster) -> None:
    """Waits for a leader."""

    async def holder() -> str:
        try:
            return (await cluster.get(Lease, "guard")).spec.holder_identity or ""
        except NotFound:
            return ""

    await cluster.eventually(holder, bool, what="a leader")


async def test_releases_without_an_election_do_not_write_without_end(cluster: Cluster) -> None:
    """Both believe that they are alone: they change the configuration a few times a minute, and the last one wins."""
    service = Service(cluster)
    async with asyncio.TaskGroup() as group:
        old = await service.start(group, cluster, guard("size", election=False))
        new = await service.start(group, cluster, guard("size", "colour", election=False))
        for _ in range(12):
            await cluster.pass_time(10)
        writes = cluster.audit.records(resource="validatingwebhookconfigurations")
        changed = [each for each in writes if each.verb in {"create", "patch", "update"}]
        assert len(changed) < 50, "expected pauses between the writes of releases that undo each other's"
        await stopped(old)
        await cluster.pass_time(30)
        assert await declared(cluster) == ["size", "colour"]
        await stopped(new)
