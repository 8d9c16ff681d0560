"""`EmbeddedCluster`: an API server in this process, with everything that a fresh one has."""

from __future__ import annotations

import random
import secrets
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from navarch._base.clock import Clock, SystemClock
from navarch.client import Client, Options
from navarch.cluster.embedded.assembly import Assembled, Materials
from navarch.cluster.embedded.snapshot import fill
from navarch.cluster.embedded.transport import InProcessTransport
from navarch.cluster.server.access import SigningKey
from navarch.cluster.server.access.users import service_account_groups, service_account_of
from navarch.cluster.server.audit import AuditLog
from navarch.cluster.server.request import User
from navarch.cluster.server.server import ApiServer
from navarch.cluster.storage import Storage
from navarch.cluster.storage.memory import MemoryStorage

__all__ = ["ADMIN", "EmbeddedCluster"]

ADMIN: Final = User("kubernetes-admin", groups=("system:masters",))


class EmbeddedCluster:
    """A Kubernetes API server without a network; use it as an `async with`.

    `storage` is in memory by default, and is closed with the cluster; what a fresh control plane has is put into an
    empty one. `seed` makes uids and generated names the same in every run. `token` is the administrator's, made up by
    default; `key` signs ServiceAccount tokens, which another run believes only if it has the same one. Every request is
    in `audit`, and in `audit_file` too if there is one.
    """

    def __init__(
        self,
        storage: Storage | None = None,
        *,
        clock: Clock | None = None,
        seed: int | None = None,
        token: str = "",
        key: SigningKey | None = None,
        audit_file: Path | None = None,
    ) -> None:
        self.clock = clock or SystemClock()
        self.token = token or secrets.token_urlsafe(32)
        self.audit = AuditLog(self.clock, audit_file)
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
            )
        )

    @property
    def server(self) -> ApiServer:
        """What answers requests."""
        return self._assembled.server

    async def __aenter__(self) -> Self:
        await fill(self._storage, self.clock, self._rng)
        await self._assembled.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._assembled.stop()
        await self._storage.close()

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

    def token_of(self, name: str, *groups: str) -> str:
        """A new token that proves this user."""
        token = secrets.token_urlsafe(32)
        account = service_account_of(name)
        own = service_account_groups(account[0]) if account else ()
        self._assembled.authenticator.believe(token, User(name, groups=(*own, *groups)))
        return token

    def client_with(self, token: str, namespace: str = "default") -> Client:
        """A client of whoever the token proves."""
        transport = InProcessTransport(self.server, token, self.clock)
        return Client(transport, Options(namespace=namespace), clock=self.clock, rng=random.Random(self._rng.random()))  # noqa: S311 - jitter
