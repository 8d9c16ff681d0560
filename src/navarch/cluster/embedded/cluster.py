"""`EmbeddedCluster`: an API server in this process, with everything that a fresh one has."""

from __future__ import annotations

import ipaddress
import random
import secrets
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

import msgspec

from navarch._base.clock import Clock, SystemClock
from navarch._base.supervisor import Supervisor
from navarch.cluster.embedded.assembly import Assembled, Materials
from navarch.cluster.embedded.beside import Beside
from navarch.cluster.embedded.bootstrap import own_endpoints
from navarch.cluster.embedded.certificates import Authority
from navarch.cluster.embedded.equipment import Equipment
from navarch.cluster.embedded.reaching import ReachableNodes
from navarch.cluster.embedded.snapshot import fill
from navarch.cluster.embedded.transport import InProcessTransport
from navarch.cluster.server.pipeline.audit_log import AuditLog
from navarch.cluster.server.pipeline.audit_records import RotatingFile
from navarch.cluster.server.pipeline.authentication.signing import SigningKey
from navarch.cluster.server.pipeline.authentication.users import service_account_groups, service_account_of
from navarch.cluster.server.server import ApiServer
from navarch.cluster.server.wire.request import ApiRequest, User
from navarch.cluster.storage import Storage
from navarch.cluster.storage.memory import MemoryStorage

if TYPE_CHECKING:
    from navarch.client import Client
    from navarch.cluster.nodes.kubelet import Kubelet
    from navarch.cluster.nodes.simulated.nodes import SimulatedNodes

__all__ = ["ADMIN", "EmbeddedCluster"]

_OWN_ENDPOINTS: Final = (
    "/api/v1/namespaces/default/endpoints/kubernetes",
    "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes",
)
ADMIN: Final = User("kubernetes-admin", groups=("system:masters",))


class EmbeddedCluster:
    """A Kubernetes API server without a network; use it as an `async with`.

    `storage` is in memory by default, and is closed with the cluster; what a fresh control plane has is put into an
    empty one. `seed` makes uids and generated names the same in every run. `token` is the administrator's, made up by
    default; `key` signs ServiceAccount tokens, and `authority` certificates, which another run believes only if it has
    the same ones. Every request is in `audit`, and in `audit_file` too if there is one. `equipment` says what runs beside
    the server; nothing by default. A `supervisor` that has tasks of others, too, shows them in the cluster's health.
    """

    def __init__(
        self,
        storage: Storage | None = None,
        *,
        clock: Clock | None = None,
        seed: int | None = None,
        token: str = "",
        key: SigningKey | None = None,
        authority: Authority | None = None,
        audit_file: Path | None = None,
        equipment: Equipment | None = None,
        supervisor: Supervisor | None = None,
    ) -> None:
        self.clock = clock or SystemClock()
        self.supervisor = supervisor or Supervisor(self.clock)
        """Runs every background task of the cluster."""
        self.token = token or secrets.token_urlsafe(32)
        self.audit = AuditLog(self.clock, RotatingFile(audit_file) if audit_file is not None else None)
        self._authority = authority
        self._equipment = equipment
        self._beside: Beside | None = None
        self.service_address = ""
        """Where pods find the API server; nowhere without nodes."""
        self._storage = storage or MemoryStorage()
        self._rng = random.Random(seed)  # noqa: S311 - uids and names, no secrets
        self._assembled = Assembled(
            Materials(
                storage=self._storage,
                clock=self.clock,
                rng=self._rng,
                key=key or SigningKey.generate(),
                audit=self.audit,
                tokens={self.token: ADMIN},
                supervisor=self.supervisor,
                nodes=ReachableNodes(lambda: self.nodes),
            )
        )

    @property
    def authority(self) -> Authority:
        """What signs the certificates of this cluster."""
        if self._authority is None:
            self._authority = Authority.make(self.clock)
        return self._authority

    @property
    def is_equipped(self) -> bool:
        """Whether anything runs beside the server."""
        return self._equipment is not None

    @property
    def nodes(self) -> Mapping[str, Kubelet]:
        """The nodes that came with the equipment, by name."""
        return self._beside.nodes if self._beside is not None else {}

    @property
    def simulated(self) -> SimulatedNodes | None:
        """The simulated nodes that came with the equipment, once they are there."""
        return self._beside.simulated if self._beside is not None else None

    @property
    def server(self) -> ApiServer:
        """What answers requests."""
        return self._assembled.server

    async def __aenter__(self) -> Self:
        if self._equipment is None:
            await fill(self._storage, self.clock, self._rng)
            await self._assembled.start()
        else:
            await self._start_with(self._equipment)
        return self

    async def _start_with(self, equipment: Equipment) -> None:
        self._beside = Beside(self, equipment)
        services = await self._beside.prepare(self._storage)
        self.service_address = str(next(ipaddress.ip_network(services).hosts()))
        self._assembled.service_addresses.use(services)
        await fill(self._storage, self.clock, self._rng, services)
        await self._assembled.start()
        if not equipment.waits:
            self.equip()

    def equip(self) -> None:
        """Begins what runs beside the server, for equipment that waits; much is imported for it."""
        assert self._beside is not None, "the cluster must be running, and have equipment"
        self._beside.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._beside is not None:
            await self._beside.stop()
        await self._assembled.stop()
        await self._storage.close()

    async def reached_at(self, address: str, port: int) -> None:
        """From now on the service `kubernetes` leads there, for pods of this cluster."""
        for path, patch in zip(_OWN_ENDPOINTS, own_endpoints(address, port), strict=True):
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
        """Forgets what happened before that revision, as Kubernetes does after some minutes."""
        await self._storage.compact(revision)

    def client(self, namespace: str = "default") -> Client:
        """A client of the administrator."""
        return self.client_with(self.token, namespace)

    def client_as(self, name: str, *groups: str, namespace: str = "default") -> Client:
        """A client of somebody else: a user, or a ServiceAccount as `system:serviceaccount:<namespace>:<name>`.

        What they may do is what RBAC gives them.
        """
        return self.client_with(self.token_of(name, *groups), namespace)

    def part_as(self, name: str, *groups: str) -> Client:
        """The same for a part of the cluster itself, which is warned of nothing: no user could heed it."""
        return self._client(self.token_of(name, *groups), warned=False)

    def token_of(self, name: str, *groups: str) -> str:
        """A new token that proves this user."""
        token = secrets.token_urlsafe(32)
        account = service_account_of(name)
        own = service_account_groups(account[0]) if account else ()
        self._assembled.authenticator.believe(token, User(name, groups=(*own, *groups)))
        return token

    def client_with(self, token: str, namespace: str = "default") -> Client:
        """A client of whoever the token proves."""
        return self._client(token, namespace)

    def _client(self, token: str, namespace: str = "default", *, warned: bool = True) -> Client:
        from navarch.client import Client, Options  # noqa: PLC0415 - a server that is reached over HTTPS needs none

        transport = InProcessTransport(self.server, token, self.clock, warned=warned)
        return Client(transport, Options(namespace=namespace), clock=self.clock, rng=random.Random(self._rng.random()))  # noqa: S311 - jitter
