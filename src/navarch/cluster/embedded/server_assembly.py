"""`AssembledServer`: wires storage, kinds, authentication, authorization, admission and endpoints into an `ApiServer`."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final

import msgspec

from navarch._base.clock import Clock
from navarch._base.supervisor import SupervisedTask, Supervisor
from navarch.cluster.server.kinds.builtin import builtin_types
from navarch.cluster.server.kinds.builtin.core.events import EventExpiry
from navarch.cluster.server.kinds.builtin.networking.allocator import ServiceAllocator
from navarch.cluster.server.kinds.custom import Conversion, ConversionWebhooks
from navarch.cluster.server.objects.registry import Registry
from navarch.cluster.server.objects.storage_reflector import StorageReflector
from navarch.cluster.server.objects.types import Catalog
from navarch.cluster.server.objects.watches import Watches
from navarch.cluster.server.pipeline.admission.chain import AdmissionChain, AdmissionDeps
from navarch.cluster.server.pipeline.admission.listers import ObjectReader
from navarch.cluster.server.pipeline.admission.webhooks.webhook import service_addresses
from navarch.cluster.server.pipeline.audit_log import AuditLog
from navarch.cluster.server.pipeline.authentication.authenticator import CredentialAuthenticator
from navarch.cluster.server.pipeline.authentication.signing import SigningKey
from navarch.cluster.server.pipeline.authentication.tokens import ServiceAccountTokens
from navarch.cluster.server.pipeline.authorization.authorizer import RbacAuthorizer
from navarch.cluster.server.pipeline.authorization.impersonation import Impersonator
from navarch.cluster.server.pipeline.authorization.reviews import Reviews
from navarch.cluster.server.pipeline.crd_controller import CrdController
from navarch.cluster.server.pipeline.endpoints.call import Kernel, RequestAuthorizer, ResourceCall
from navarch.cluster.server.pipeline.nonresource.discovery import DiscoveryDocuments
from navarch.cluster.server.pipeline.nonresource.metrics import RequestCounts, TaskMetrics, metrics_page
from navarch.cluster.server.pipeline.nonresource.openapi import OpenApi
from navarch.cluster.server.pipeline.nonresource.pages import (
    CONFIGURATION,
    KEYS,
    STORAGE,
    HealthReport,
    NonResourcePages,
    OpenId,
)
from navarch.cluster.server.pipeline.streams.node_access import NO_NODES, NodeAccess, NodeDirectory
from navarch.cluster.server.pipeline.subresources import BUILTIN_ENDPOINTS
from navarch.cluster.server.pipeline.subresources.reviews import access_endpoints
from navarch.cluster.server.pipeline.subresources.scale import scale_custom
from navarch.cluster.server.server import ApiServer, Page, ServerParts
from navarch.cluster.server.wire.request import Json, Reply, User
from navarch.cluster.server.wire.webhook_client import LocalWebhook, WebhookClient
from navarch.cluster.storage import Storage, StorageError
from navarch.k8s.published import published

_SECONDS: Final = 2.0


class StorageProbe:
    """Probes a storage that has failed until it works again, so that health recovers without a write of a client."""

    def __init__(self, storage: Storage, clock: Clock) -> None:
        self._storage = storage
        self._clock = clock

    async def run(self) -> None:
        """Checks every two seconds until it is cancelled; does not touch a storage without a fault."""
        while True:
            await self._clock.liveness.sleep(_SECONDS)
            if self._storage.fault is not None:
                with suppress(StorageError):
                    await self._storage.probe()


_ROLES: Final = {
    "ClusterRole": "clusterroles",
    "Role": "roles",
    "ClusterRoleBinding": "clusterrolebindings",
    "RoleBinding": "rolebindings",
}


class ServerDeps(msgspec.Struct, frozen=True, kw_only=True):
    """The dependencies of a server. `tokens` authenticate users from the start; `nodes` give access to pods."""

    storage: Storage
    clock: Clock
    rng: random.Random
    key: SigningKey
    audit: AuditLog
    tokens: dict[str, User]
    supervisor: Supervisor
    """Runs the background tasks of the server, and reports the health of the cluster."""
    nodes: NodeDirectory = NO_NODES
    local_webhooks: Mapping[str, LocalWebhook] = msgspec.field(default_factory=dict)
    """Webhooks that are called in this process, by host and port."""


class AssembledServer:
    """A server and its background tasks: call `start` before the first request, `stop` after the last."""

    def __init__(self, materials: ServerDeps) -> None:
        storage, clock, rng = materials.storage, materials.clock, materials.rng
        self.service_addresses = addresses = ServiceAllocator(clock, rng)
        self._catalog = Catalog(builtin_types(clock, addresses))
        self._registry = Registry(storage)
        self._watches = Watches(storage, clock)
        self._forgetting = EventExpiry(storage, clock)
        self._audit = materials.audit
        self._supervisor = materials.supervisor
        self._tasks: list[SupervisedTask] = []
        self._nodes = materials.nodes
        self._namespaces: dict[str, Json] = {}
        self._failure: str | None = None
        self.authorizer = RbacAuthorizer()
        self.tokens = ServiceAccountTokens(materials.key, self, clock, rng)
        self.authenticator = CredentialAuthenticator(clock, self.tokens, materials.tokens)
        self._admission = AdmissionChain(
            AdmissionDeps(
                registry=self._registry,
                catalog=self._catalog,
                authorizer=self.authorizer,
                find_namespace=self._namespace,
                clock=clock,
                rng=rng,
                local_webhooks=materials.local_webhooks,
            )
        )
        roles = {f"/registry/{plural}/": partial(self.authorizer.changed, kind) for kind, plural in _ROLES.items()}
        own = {"/registry/namespaces/": self._namespace_changed, "/registry/services/specs/": addresses.changed}
        self._reflector = StorageReflector(storage, {**roles, **own, **self._admission.followed})
        kernel = Kernel(self._registry, self._catalog, self._watches, self._admission, self.authorizer, clock, rng)
        self._converters = WebhookClient(
            clock, service_addresses(ObjectReader(self._registry, self._catalog)), materials.local_webhooks
        )
        self._custom = CrdController(kernel, Conversion(ConversionWebhooks(self._converters, rng)))
        self.server = ApiServer(self._parts(kernel))

    def _parts(self, kernel: Kernel) -> ServerParts:
        reviews = Reviews(self.authorizer, self.authenticator, kernel.clock)
        openapi = OpenApi(published(), self._custom.documents)
        counts, openid = RequestCounts(self._audit, self._catalog), OpenId(self.tokens.key)
        tasks = TaskMetrics(self._supervisor.statuses, lambda: self._audit.dropped)
        metrics = partial(
            metrics_page, requests=counts, tasks=tasks, catalog=self._catalog, storage=self._registry.storage
        )
        others: dict[str, Page] = {"/metrics": metrics, CONFIGURATION: openid.configuration, KEYS: openid.keys}
        return ServerParts(
            kernel=kernel,
            authenticator=self.authenticator,
            impersonator=Impersonator(self.authorizer),
            audit=counts,
            endpoints={
                **access_endpoints(reviews, self.tokens),
                **_stream_endpoints(self._nodes, self.authorizer),
                **BUILTIN_ENDPOINTS,
                ("*", "*", "scale"): scale_custom,
            },
            pages=NonResourcePages(
                published(), DiscoveryDocuments(self._catalog, published()), openapi, self._health, others
            ),
            refresh=self.refresh,
        )

    async def start(self) -> None:
        """Fills the in-memory views, then starts the background tasks."""
        await self._reflector.start()
        await self._custom.start()
        probe = StorageProbe(self._registry.storage, self._watches.clock)
        for task in (
            self._supervisor.task(STORAGE, probe.run, check=lambda: self._registry.storage.fault),
            self._supervisor.task("customresourcedefinitions", self._custom.run),
            self._supervisor.task("watch-ticker", self._watches.run),
            self._supervisor.task("event-ttl", self._forgetting.run),
            self._supervisor.task("audit", self._audit.run, check=lambda: self._audit.fault),
        ):
            self._tasks.append(task.start())

    def _health(self) -> HealthReport:
        return HealthReport(self._failure, self._supervisor.statuses())

    async def stop(self) -> None:
        """Stops the background tasks and closes webhook connections."""
        for task in reversed(self._tasks):
            await task.stop()
        await self._admission.close()
        await self._converters.close()
        await self._reflector.stop()

    async def refresh(self) -> None:
        """Reads the changes of roles, namespaces, services and webhooks since the last request: the first step of each."""
        try:
            await self._reflector.catch_up()
        except StorageError as error:
            self._failure = str(error)
        else:
            self._failure = None

    async def get(self, group: str, resource: str, namespace: str, name: str) -> Json | None:
        """See `access.Objects`."""
        found = self._catalog.find(group, "v1", resource)
        if found is None:
            return None
        stored = await self._registry.find(found, namespace, name)
        return stored and stored.value

    async def _namespace(self, name: str) -> Json | None:
        """As it is kept in mind; one that is not may be so new that the store has not shown it yet."""
        return self._namespaces.get(name) or await self.get("", "namespaces", "", name)

    def _namespace_changed(self, old: Json | None, new: Json | None) -> None:
        name = (new or old or {})["metadata"]["name"]
        if new is None:
            self._namespaces.pop(name, None)
        else:
            self._namespaces[name] = new


_Endpoint = Callable[[ResourceCall], Awaitable[Reply]]


def _stream_endpoints(nodes: NodeDirectory, authorizer: RequestAuthorizer) -> dict[tuple[str, str, str], _Endpoint]:
    """What serves the subresources that lead to nodes, by group, resource and subresource; imported with the first request."""
    reaching = NodeAccess(nodes, authorizer)
    return {
        ("", "pods", "log"): partial(_log, nodes),
        ("", "pods", "exec"): partial(_execute, reaching),
        ("", "pods", "attach"): partial(_attach, reaching),
        ("", "pods", "portforward"): partial(_forward, reaching),
        **{("", plural, "proxy"): partial(_proxy, nodes) for plural in ("pods", "services", "nodes")},
    }


async def _log(nodes: NodeDirectory, call: ResourceCall) -> Reply:
    from navarch.cluster.server.pipeline.streams.logs import log  # noqa: PLC0415 - see above

    return await log(nodes, call)


async def _execute(reaching: NodeAccess, call: ResourceCall) -> Reply:
    from navarch.cluster.server.pipeline.streams.remote_command import execute  # noqa: PLC0415 - see above

    return await execute(reaching, call)


async def _attach(reaching: NodeAccess, call: ResourceCall) -> Reply:
    from navarch.cluster.server.pipeline.streams.remote_command import attach  # noqa: PLC0415 - see above

    return await attach(reaching, call)


async def _forward(reaching: NodeAccess, call: ResourceCall) -> Reply:
    from navarch.cluster.server.pipeline.streams.port_forward import forward  # noqa: PLC0415 - see above

    return await forward(reaching, call)


async def _proxy(nodes: NodeDirectory, call: ResourceCall) -> Reply:
    from navarch.cluster.server.pipeline.proxy.proxy import proxy  # noqa: PLC0415 - see above

    return await proxy(nodes, call)
