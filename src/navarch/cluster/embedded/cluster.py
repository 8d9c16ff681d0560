"""`EmbeddedCluster`: an API server in this process, with the objects of a fresh cluster."""

from __future__ import annotations

import ipaddress
import random
import secrets
from collections.abc import Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

import msgspec

from navarch._base.clock import Clock, SystemClock
from navarch._base.supervisor import Supervisor
from navarch.cluster.embedded.background_tasks import BackgroundTasks
from navarch.cluster.embedded.bootstrap import api_server_endpoints, bootstrap_storage
from navarch.cluster.embedded.components import ComponentOptions
from navarch.cluster.embedded.credentials import ClusterAuthority
from navarch.cluster.embedded.in_process import InProcessTransport
from navarch.cluster.embedded.server_assembly import AssembledServer, ServerDeps
from navarch.cluster.server.pipeline.audit_log import AuditLog
from navarch.cluster.server.pipeline.audit_records import RotatingFile
from navarch.cluster.server.pipeline.authentication.signing import SigningKey
from navarch.cluster.server.pipeline.authentication.users import service_account_groups, service_account_of
from navarch.cluster.server.pipeline.streams.node_access import ClusterNode
from navarch.cluster.server.server import ApiServer
from navarch.cluster.server.wire.request import ApiRequest, User
from navarch.cluster.server.wire.webhook_client import LocalWebhook
from navarch.cluster.storage import Storage
from navarch.cluster.storage.memory import MemoryStorage

if TYPE_CHECKING:
    from navarch.cluster.nodes.kubelet import Kubelet


class RunningKubelets:
    """Finds the nodes of a cluster that answer now; see `NodeDirectory`."""

    def __init__(self, nodes: Callable[[], Mapping[str, Kubelet]]) -> None:
        self._nodes = nodes

    def find(self, name: str) -> ClusterNode | None:
        """See `NodeDirectory`."""
        node = self._nodes().get(name)
        return node if node is not None and node.is_reachable else None


if TYPE_CHECKING:
    from navarch.client import Client
    from navarch.cluster.nodes.kubelet import Kubelet
    from navarch.cluster.nodes.simulated.nodes import SimulatedNodes
    from navarch.oci.documents import Descriptor
    from navarch.oci.layout import Layout


_OWN_ENDPOINTS: Final = (
    "/api/v1/namespaces/default/endpoints/kubernetes",
    "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes",
)
ADMIN: Final = User("kubernetes-admin", groups=("system:masters",))


class EmbeddedCluster:
    """A Kubernetes API server without a network; use it as an `async with`.

    `storage` is in memory by default, and is closed with the cluster; an empty one gets the objects of a fresh cluster.
    `seed` makes uids and generated names the same in every run. `token` authenticates the administrator; it is random by
    default. `key` signs ServiceAccount tokens, `authority` signs certificates; another run accepts them only with the same
    `key` and `authority`. `audit` records every request, and so does `audit_file` if there is one. `components` names the
    controllers and nodes that run beside the server; none by default. The cluster's health shows all tasks of `supervisor`.
    """

    def __init__(
        self,
        storage: Storage | None = None,
        *,
        clock: Clock | None = None,
        seed: int | None = None,
        token: str = "",
        key: SigningKey | None = None,
        authority: ClusterAuthority | None = None,
        audit_file: Path | None = None,
        components: ComponentOptions | None = None,
        supervisor: Supervisor | None = None,
    ) -> None:
        self.clock = clock or SystemClock()
        self.supervisor = supervisor or Supervisor(self.clock)
        """Runs every background task of the cluster."""
        self.token = token or secrets.token_urlsafe(32)
        self.audit = AuditLog(self.clock, RotatingFile(audit_file) if audit_file is not None else None)
        self._authority = authority
        self._components = components
        self._background: BackgroundTasks | None = None
        self.service_address = ""
        """The address of the service `kubernetes`; empty without components."""
        self.local_webhooks: dict[str, LocalWebhook] = {}
        """Webhooks that the server calls in this process, without a connection, by host and port."""
        self._storage = storage or MemoryStorage()
        self._rng = random.Random(seed)  # noqa: S311 - uids and names, no secrets
        self._assembled = AssembledServer(
            ServerDeps(
                storage=self._storage,
                clock=self.clock,
                rng=self._rng,
                key=key or SigningKey.generate(),
                audit=self.audit,
                tokens={self.token: ADMIN},
                supervisor=self.supervisor,
                nodes=RunningKubelets(lambda: self.nodes),
                local_webhooks=self.local_webhooks,
            )
        )

    @property
    def authority(self) -> ClusterAuthority:
        """The certificate authority of this cluster."""
        if self._authority is None:
            self._authority = ClusterAuthority.make(self.clock)
        return self._authority

    @property
    def has_components(self) -> bool:
        """True if controllers or nodes run beside the server."""
        return self._components is not None

    @property
    def nodes(self) -> Mapping[str, Kubelet]:
        """The process nodes, by name."""
        return self._background.nodes if self._background is not None else {}

    @property
    def simulated(self) -> SimulatedNodes | None:
        """The simulated nodes, once they have started."""
        return self._background.simulated if self._background is not None else None

    @property
    def server(self) -> ApiServer:
        """The API server."""
        return self._assembled.server

    async def __aenter__(self) -> Self:
        if self._components is None:
            await bootstrap_storage(self._storage, self.clock, self._rng)
            await self._assembled.start()
        else:
            await self._start_with(self._components)
        return self

    async def _start_with(self, components: ComponentOptions) -> None:
        self._background = BackgroundTasks(self, components)
        services = await self._background.prepare(self._storage)
        self.service_address = str(next(ipaddress.ip_network(services).hosts()))
        self._assembled.service_addresses.use(services)
        await bootstrap_storage(self._storage, self.clock, self._rng, services)
        await self._assembled.start()
        if not components.deferred:
            self.start_components()

    def start_components(self) -> None:
        """Starts the components, for options that are `deferred`; this imports the controllers and nodes."""
        assert self._background is not None, "the cluster must be running, and have components"
        self._background.start()

    async def load_image(self, layout: Layout, descriptor: Descriptor, name: str) -> str:
        """Loads an image of a layout, which containers can name from now on; returns its repository with its digest.

        It is unpacked once, and removed with the cluster's files. Raises `ImageError` for a damaged image and one of another
        platform, `InvalidValueError` for an invalid name.
        """
        assert self._background is not None, "the cluster must be running, and have components"
        return await self._background.load_image(layout, descriptor, name)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._background is not None:
            await self._background.stop()
        await self._assembled.stop()
        await self._storage.close()

    async def set_api_server_address(self, address: str, port: int) -> None:
        """Points the service `kubernetes` to this address, for pods of this cluster."""
        for path, patch in zip(_OWN_ENDPOINTS, api_server_endpoints(address, port), strict=True):
            headers = {"authorization": f"Bearer {self.token}", "content-type": "application/merge-patch+json"}
            body = msgspec.json.encode(patch)
            reply = await self.server.handle(ApiRequest(method="PATCH", path=path, headers=headers, body=body))
            assert reply.status == HTTPStatus.OK, reply.body.decode()

    async def revision(self) -> int:
        """The revision of the last write."""
        return await self._storage.revision()

    async def changed_since(self, revision: int) -> int:
        """Returns the revision of the last write once there is one after `revision`."""
        async with self._storage.watch("/registry/", after=revision) as watcher:
            while not watcher.ready():
                await watcher.wait()
        return await self._storage.revision()

    async def compact(self, revision: int) -> None:
        """Compacts the storage: drops the history before that revision, as Kubernetes does every five minutes."""
        await self._storage.compact(revision)

    def client(self, namespace: str = "default") -> Client:
        """Returns a client of the administrator."""
        return self.client_with(self.token, namespace)

    def client_as(self, name: str, *groups: str, namespace: str = "default") -> Client:
        """Returns a client of a user, or of a ServiceAccount as `system:serviceaccount:<namespace>:<name>`.

        RBAC decides which requests it may make.
        """
        return self.client_with(self.token_of(name, *groups), namespace)

    def component_client(self, name: str, *groups: str) -> Client:
        """Returns a client of a component of the cluster; it gets no warnings, since no user reads them."""
        return self._client(self.token_of(name, *groups), warned=False)

    def token_of(self, name: str, *groups: str) -> str:
        """Returns a new token that authenticates this user."""
        token = secrets.token_urlsafe(32)
        account = service_account_of(name)
        own = service_account_groups(account[0]) if account else ()
        self._assembled.authenticator.believe(token, User(name, groups=(*own, *groups)))
        return token

    def client_with(self, token: str, namespace: str = "default") -> Client:
        """Returns a client of the user that the token authenticates."""
        return self._client(token, namespace)

    def _client(self, token: str, namespace: str = "default", *, warned: bool = True) -> Client:
        from navarch.client import Client, Options  # noqa: PLC0415 - a server that is reached over HTTPS needs none

        transport = InProcessTransport(self.server, token, self.clock, warned=warned)
        return Client(transport, Options(namespace=namespace), clock=self.clock, rng=random.Random(self._rng.random()))  # noqa: S311 - jitter
