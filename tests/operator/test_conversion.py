"""An operator converts the versions of its kinds: in one process with the cluster, without sockets."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import aiohttp
import pytest

from navarch import Client, Context, Operator, Resource, Spec, Status
from navarch.api import Kind
from navarch.cache import Cache
from navarch.client import MergePatch
from navarch.cluster.embedded.cluster import EmbeddedCluster
from navarch.errors import ApiError, ConfigError, CrdError, DefinitionError, NotFound, ServerError
from navarch.operator import Endpoints, needed_by, serve
from navarch.operator.migration import MigrationOptions, migrate
from navarch.operator.webhook_server import WebhookFront
from navarch.schema import crd
from navarch.testing import Cluster
from navarch.testing.local_webhooks import LocalWebhookServer
from navarch.webhook.configurations import WebhookAddress
from navarch.webhook.crd_conversion import ConversionPublication
from navarch.webhook.publication import bring_up_to_date
from navarch.webhook.router import WebhookAnswer, WebhookRouter

CRDS = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", plural="customresourcedefinitions", namespaced=False
)


class LampSpec(Spec):
    watts: int = 5


class StoredLamp(Resource[LampSpec, Status], group="lamps.example.com", version="v1alpha1", kind="Lamp"):
    """A lamp of the first release."""


class OldLamp(Resource[LampSpec, Status], group="lamps.example.com", version="v1alpha1", kind="Lamp", storage=False):
    """The same in the second release, which stores another version."""


class BrightSpec(Spec):
    lumens: int = 500
    colour: str | None = None


class LampStatus(Status):
    seen: int | None = None


class Lamp(Resource[BrightSpec, LampStatus], group="lamps.example.com", version="v1"):
    """A lamp."""


NAME = Lamp.__kind__.resource


def lamp_operator(**options: Any) -> Operator:
    """The second release."""
    operator = Operator("lamp-operator", election=False, **options)

    @operator.convert(OldLamp, Lamp)
    def upgrade(old: OldLamp) -> Lamp:
        return Lamp(spec=BrightSpec(lumens=old.spec.watts * 100))

    @upgrade.reverse
    def downgrade(new: Lamp) -> OldLamp:
        return OldLamp(spec=LampSpec(watts=new.spec.lumens // 100))

    @operator.controller(Lamp)
    async def reconcile(lamp: Lamp, ctx: Context) -> None:
        lamp.status.seen = lamp.spec.lumens

    return operator


async def stored_lamps(client: Client, count: int = 3, *, operator: str = "lamp-operator") -> None:
    """Objects that the first release of an operator has stored."""
    await client.using(manager=operator).install(crd(StoredLamp))
    for number in range(count):
        await client.create(StoredLamp(name=f"lamp-{number}", spec=LampSpec(watts=number)))


async def test_kind_grows_a_version_without_losing_fields(cluster: Cluster) -> None:
    """The operator installs all versions, reads old objects in the new version, and clients of both versions see both."""
    await stored_lamps(cluster.client)
    async with cluster.run(lamp_operator()):
        await cluster.eventually(lambda: cluster.get(Lamp, "lamp-2"), lambda lamp: lamp.status.seen == 200)
        await cluster.client.patch(Lamp, "lamp-2", MergePatch({"spec": {"lumens": 250, "colour": "warm"}}))
        old = await cluster.get(OldLamp, "lamp-2")
        assert old.spec.watts == 2
        await cluster.client.patch(OldLamp, "lamp-2", MergePatch({"metadata": {"labels": {"room": "hall"}}}))
        assert (await cluster.get(Lamp, "lamp-2")).spec == BrightSpec(lumens=250, colour="warm")
        await cluster.client.patch(OldLamp, "lamp-2", MergePatch({"spec": {"watts": 7}}))
        new = await cluster.get(Lamp, "lamp-2")
        assert (new.spec, new.labels, new.annotations) == (BrightSpec(lumens=700, colour="warm"), {"room": "hall"}, {})
        state = await migrate(cluster.client, NAME, MigrationOptions(per_second=10_000))
        assert (state.completed, state.failed) == (True, 0)
        assert [lamp.spec.lumens async for lamp in cluster.client.list(Lamp)] == [0, 100, 700]


async def test_lists_of_mixed_versions_are_converted(cluster: Cluster) -> None:
    """Also through an operator that reconciles nothing."""
    await stored_lamps(cluster.client, operator="converter")
    operator = Operator("converter", election=False)
    operator.conversions += lamp_operator().conversions
    async with cluster.run(operator):
        await cluster.client.create(Lamp(name="new", spec=BrightSpec(lumens=50)))
        assert [lamp.spec.lumens async for lamp in cluster.client.list(Lamp)] == [0, 100, 200, 50]
        assert [lamp.spec.watts async for lamp in cluster.client.list(OldLamp)] == [0, 1, 2, 0]


async def test_failing_function_names_the_object(cluster: Cluster) -> None:
    """The client of the API server reads which object, which function and why."""
    operator = Operator("failing", election=False)

    @operator.convert(OldLamp, Lamp)
    def upgrade(old: OldLamp) -> Lamp:
        return Lamp(spec=BrightSpec(lumens=100 // old.spec.watts))

    upgrade.reverse(lambda new: OldLamp(spec=LampSpec(watts=new.spec.lumens)))
    await stored_lamps(cluster.client, 2, operator="failing")
    async with cluster.run(operator):
        with pytest.raises(
            ApiError, match="Lamp default/lamp-0: cannot convert v1alpha1 to v1: upgrade raised ZeroDivision"
        ):
            await cluster.client.list(Lamp)


async def test_edited_conversion_is_repaired(cluster: Cluster) -> None:
    """Without it the API server would drop fields."""
    async with cluster.run(lamp_operator()):
        await cluster.client.patch(
            CRDS, NAME, MergePatch({"spec": {"conversion": {"strategy": "None", "webhook": None}}})
        )
        await cluster.eventually(
            lambda: cluster.client.get(CRDS, NAME), lambda found: found["spec"]["conversion"]["strategy"] == "Webhook"
        )


async def test_crds_of_others_are_verified(cluster: Cluster) -> None:
    """With webhooks="verify" the operator writes nothing, and refuses a CRD that does not call it."""
    await cluster.client.install(crd(OldLamp, Lamp))
    with pytest.raises(ConfigError, match="expected CRDs whose conversion is the operator's webhook"):
        async with cluster.run(lamp_operator(crds="verify", webhooks="verify")):
            pass
    async with cluster.run(lamp_operator(crds="verify")):  # writes the conversion, not the rest
        found = await cluster.client.get(CRDS, NAME)
        assert found["spec"]["conversion"]["strategy"] == "Webhook"


async def test_stored_versions_are_not_dropped(cluster: Cluster) -> None:
    """An operator without the class of a stored version does not install its CRD."""
    await stored_lamps(cluster.client, 1)
    operator = Operator("next", election=False)

    @operator.controller(Lamp)
    async def reconcile(lamp: Lamp, ctx: Context) -> None: ...

    with pytest.raises(
        CrdError, match=f"stored as v1alpha1; keep the classes of these versions .* navarch migrate {NAME}"
    ):
        async with cluster.run(operator):
            pass


async def test_versions_that_nothing_converts_are_refused_at_the_start(cluster: Cluster) -> None:
    """Before anything is written."""

    class Third(Resource[LampSpec, Status], group="lamps.example.com", version="v2", kind="Lamp", storage=False): ...

    operator = lamp_operator()

    @operator.controller(Third, name="third")
    async def reconcile(lamp: Third, ctx: Context) -> None: ...

    with pytest.raises(DefinitionError, match="got none between v2 and the stored version v1"):
        async with cluster.run(operator):
            pass


class InjectedTrust:
    """CAs that cert-manager injects: the operator has none of its own."""

    ca_bundle = b""

    async def refresh(self) -> None: ...


async def test_cert_manager_may_inject_its_ca(cluster: Cluster) -> None:
    """The CRD gets cert-manager's annotation, and the CA that it injects stays."""
    client, annotations = cluster.client, {"cert-manager.io/inject-ca-from": "lamps/serving"}
    await client.install(crd(OldLamp, Lamp))
    cache = Cache(client, client.clock, client.rng)
    address = WebhookAddress(service="lamps", namespace="lamps")
    section = ConversionPublication(client, cache, NAME, address, annotations=annotations)
    await bring_up_to_date(section, InjectedTrust(), leading=True, changes=lambda *_: None)
    found = await client.get(CRDS, NAME)
    assert annotations.items() <= found.annotations.items()
    assert found["spec"]["conversion"]["strategy"] == "Webhook"
    bundle = MergePatch({"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": "Q0E="}}}}})
    injected = await client.patch(CRDS, NAME, bundle)
    assert section.is_current(injected, b"")


def test_permissions_include_the_conversion_of_crds() -> None:
    """To write the section, and to repair it."""
    found = needed_by(lamp_operator(crds="ignore"), election_namespace=None, webhook_namespace="lamps")
    verbs = {each.verb for each in found if each.resource == "customresourcedefinitions"}
    assert verbs == {"get", "list", "patch", "watch"}
    ignored = needed_by(
        lamp_operator(crds="ignore", webhooks="ignore"), election_namespace=None, webhook_namespace="lamps"
    )
    assert not [each for each in ignored if each.resource == "customresourcedefinitions"]


# The start of the only replica


class GatedServer:
    """Webhooks behind a Service: the API server reaches them only while the replica is ready, as its probe finds out."""

    def __init__(self, inner: LocalWebhookServer, probe: Callable[[], Awaitable[bool]]) -> None:
        self._inner = inner
        self._probe = probe
        self.refused = 0

    def front(self, operator: str, client: Client) -> WebhookFront:
        """Returns the front of the other server, which forwards to this one's replica."""
        front, gate, clock = self._inner.front(operator, client), self, client.clock
        serving = front.serving

        def gated(router: WebhookRouter) -> AbstractAsyncContextManager[WebhookAddress]:
            class Behind(WebhookRouter):
                async def answer(self, path: str, body: bytes) -> WebhookAnswer:
                    if await gate._probe():
                        return await router.answer(path, body)
                    gate.refused += 1
                    return WebhookAnswer(503, b"no endpoints available for service")

            return serving(Behind({}, clock))

        front.serving = gated  # type: ignore[method-assign]
        return front


async def test_only_replica_starts_although_its_first_list_needs_its_own_webhook(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    """Readiness does not wait for the list of a kind that the operator converts, and neither does the CRD."""
    caplog.set_level(logging.INFO)
    await stored_lamps(cluster.client)
    operator = lamp_operator(endpoints=Endpoints(health="127.0.0.1:0", metrics=None))
    probed = asyncio.Event()

    async def is_ready() -> bool:
        if probed.is_set():  # no connection is open when the replica ends
            return True
        heard: list[dict[str, str]] = [vars(record).get("fields", {}) for record in caplog.records]
        for address in [fields["address"] for fields in heard if fields.get("purpose") == "health"]:
            async with aiohttp.ClientSession() as session, session.get(f"http://{address}/readyz") as answer:
                if answer.status == 200:
                    probed.set()
        return probed.is_set()

    async def reconciled() -> int | None:
        try:
            return (await cluster.get(Lamp, "lamp-2")).status.seen
        except (NotFound, ServerError):  # not served yet, or the webhook is not reached yet
            return None

    engine = cluster._engine
    assert isinstance(engine, EmbeddedCluster)
    gate = GatedServer(LocalWebhookServer(engine), is_ready)
    operator.webhook_server = gate
    async with asyncio.TaskGroup() as group:
        running = group.create_task(serve(cluster.client, operator))
        await cluster.eventually(reconciled, lambda seen: seen == 200)
        running.cancel()
    assert gate.refused, "expected that the CRD was installed before the replica was ready"
