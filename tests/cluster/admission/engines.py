"""The two servers that the cases run on: ours, put together around admission, and the real one."""

from __future__ import annotations

import json
import random
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Protocol

import aiohttp

import rig
from navarch._base.clock import Clock, SystemClock
from navarch.cluster.server.kinds.builtin import builtin_types
from navarch.cluster.server.objects.registry import Registry
from navarch.cluster.server.objects.storage_reflector import StorageReflector
from navarch.cluster.server.objects.types import Catalog
from navarch.cluster.server.objects.watches import Watches
from navarch.cluster.server.pipeline.admission.chain import AdmissionChain, AdmissionDeps
from navarch.cluster.server.pipeline.audit_log import AuditLog
from navarch.cluster.server.pipeline.authorization.authorizer import RbacAuthorizer
from navarch.cluster.server.pipeline.endpoints.call import Kernel
from navarch.cluster.server.server import ApiServer, ServerParts
from navarch.cluster.server.wire.request import ApiRequest, Reply, User
from navarch.cluster.server.wire.status_errors import StatusError
from navarch.cluster.server.wire.webhook_client import ResolveService
from navarch.cluster.storage.memory import MemoryStorage

Json = dict[str, Any]
ADMIN = User("rig-admin", "rig-admin", ("system:masters", "system:authenticated"))
JSON = "application/json"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
_SECONDS = 60.0


class Answered(NamedTuple):
    """An answer."""

    code: int
    body: Json
    warnings: list[str]


class Engine(Protocol):
    """A server that is asked as its administrator."""

    async def ask(
        self, method: str, path: str, body: Any = None, *, media_type: str = JSON, **query: str
    ) -> Answered: ...


async def until_known(what: str, is_known: Callable[[], Awaitable[bool]]) -> None:
    """Returns when a server judges by what was written: the real one learns of it in its own time."""
    clock = SystemClock()
    limit = clock.monotonic() + _SECONDS
    while not await is_known():
        assert clock.monotonic() < limit, f"expected the server to know {what} within {_SECONDS:g} s"
        await clock.sleep(0.05)


class Ours:
    """Our server without HTTP, tokens or a log."""

    def __init__(self, clock: Clock | None = None, resolve: ResolveService | None = None) -> None:
        self.clock = clock or SystemClock()
        self.storage = MemoryStorage()
        self.catalog = Catalog(builtin_types(self.clock))
        self.registry = Registry(self.storage)
        self.user = ADMIN
        self.authorizer = RbacAuthorizer()
        rng = random.Random(1)
        self.admission = AdmissionChain(
            AdmissionDeps(
                registry=self.registry,
                catalog=self.catalog,
                authorizer=self.authorizer,
                find_namespace=self._namespace,
                clock=self.clock,
                rng=rng,
                resolve_service=resolve,
            )
        )
        self._reflector = StorageReflector(self.storage, self.admission.followed)
        watches = Watches(self.storage, self.clock)
        kernel = Kernel(self.registry, self.catalog, watches, self.admission, self.authorizer, self.clock, rng)
        audit = AuditLog(self.clock, capacity=1)
        parts = ServerParts(
            kernel=kernel,
            authenticator=self,
            impersonator=self,
            audit=audit,
            endpoints={},
            pages=_no_page,
            refresh=self._reflector.catch_up,
        )
        self.server = ApiServer(parts)

    async def ask(self, method: str, path: str, body: Any = None, *, media_type: str = JSON, **query: str) -> Answered:
        data = b"" if body is None else json.dumps(body).encode()
        asked = {name: [value] for name, value in query.items()}
        headers = {"content-type": media_type, "user-agent": "Python"}
        request = ApiRequest(method=method, path=path, query=asked, headers=headers, body=data)
        reply = await self.server.handle(request)
        return Answered(reply.status, json.loads(reply.body), reply.warnings)

    async def authenticate(self, request: ApiRequest) -> User | None:
        return self.user

    def acting_user(self, request: ApiRequest, user: User) -> User:
        return user

    async def start(self) -> None:
        await self._reflector.start()
        for name in ("default", "kube-system"):
            await self.make("/api/v1/namespaces", "v1", "Namespace", name)
        await self.make("/api/v1/namespaces/default/serviceaccounts", "v1", "ServiceAccount", "default")
        await self.make(
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            "scheduling.k8s.io/v1",
            "PriorityClass",
            "system-node-critical",
            value=2_000_001_000,
        )

    async def make(self, path: str, api_version: str, kind: str, name: str, **rest: Any) -> None:
        value = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **rest}
        answer = await self.ask("POST", path, value)
        assert answer.code == 201, answer.body

    async def stop(self) -> None:
        await self.admission.close()
        await self._reflector.stop()
        await self.storage.close()

    async def _namespace(self, name: str) -> Json | None:
        resource = self.catalog.find("", "v1", "namespaces")
        assert resource is not None
        found = await self.registry.find(resource, "", name)
        return found and found.value


async def _no_page(request: ApiRequest) -> Reply:
    raise StatusError(404, "NotFound", f"nothing is at {request.path}")


@asynccontextmanager
async def ours(clock: Clock | None = None, resolve: ResolveService | None = None) -> AsyncIterator[Ours]:
    """Our server, with the namespace that the cases use."""
    engine = Ours(clock, resolve)
    await engine.start()
    try:
        yield engine
    finally:
        await engine.stop()


class Real:
    """The rig's server."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url

    async def ask(self, method: str, path: str, body: Any = None, *, media_type: str = JSON, **query: str) -> Answered:
        data = None if body is None else json.dumps(body)
        headers = {"Content-Type": media_type, "User-Agent": "Python"}
        async with self._session.request(
            method, self._url + path, data=data, headers=headers, params=query
        ) as response:
            warnings = [each[7:-1].replace('\\"', '"') for each in response.headers.getall("Warning", [])]
            return Answered(response.status, await response.json(), warnings)


@asynccontextmanager
async def real(cluster: rig.Cluster) -> AsyncIterator[Real]:
    """The real server."""
    context = ssl.create_default_context(cafile=str(cluster.ca_file))
    headers = {"Authorization": f"Bearer {cluster.token}"}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context), headers=headers) as session:
        yield Real(session, cluster.url)
