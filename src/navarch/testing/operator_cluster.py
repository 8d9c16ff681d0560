"""`OperatorCluster`: the project's operator runs in the test as it is deployed: in its own namespace, under its roles."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path

from navarch.api import Dynamic
from navarch.client import Client
from navarch.errors import AlreadyExists, MissingPermissionsError
from navarch.k8s.core.v1 import Namespace
from navarch.operator import Operator
from navarch.operator.roles import Permission
from navarch.project.permissions import covers, in_namespaces
from navarch.project.role_files import ROLES_FOLDER, ProjectRoles
from navarch.testing.call_recorder import ObservedCall, ObservedTransport
from navarch.testing.cluster import Cluster

__all__ = ["OperatorCluster"]

_GENERATE = "pytest --record-permissions && navarch generate rbac"


class OperatorCluster(Cluster):
    """A cluster in which each call of one operator's client is observed, and which may enforce the operator's roles.

    `name` is that of the operator; other operators run as the administrator. A `namespaced` operator is deployed into the
    namespace of the tests and watches it alone.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        name: str,
        root: Path,
        namespace: str,
        namespaced: bool,
        roles: ProjectRoles | None,
        observe: Callable[[Operator, str, ObservedCall], None],
    ) -> None:
        super().__init__(cluster.client, cluster._engine, cluster.access)  # noqa: SLF001 - it takes the other's place
        self._name = name
        self._root = root
        self._own_namespace = cluster.client.options.namespace if namespaced else namespace
        self._namespaced = namespaced
        self._roles = roles.in_namespace(self._own_namespace) if roles is not None else None
        self._observe = observe

    @asynccontextmanager
    async def run(self, *operators: Operator, client: Client | None = None) -> AsyncIterator[None]:
        """See `Cluster.run`. Raises `MissingPermissionsError` as soon as the API server refuses a call of the operator."""
        __tracebackhide__ = True
        if all(each.name != self._name for each in operators):
            async with super().run(*operators, client=client):
                yield
            return
        limited = [in_namespaces(each, self._own_namespace) if self._namespaced else each for each in operators]
        ours = next(each for each in limited if each.name == self._name)
        refusals = _Refusals(self._roles) if self._roles is not None and client is None else None
        deployed = client or await self._deployed_client()

        def observe(call: ObservedCall) -> None:
            self._observe(ours, self._own_namespace, call)
            if refusals is not None:
                refusals.check(call)

        observed = deployed.through(lambda transport: ObservedTransport(transport, self._root, observe))
        try:
            async with self._running(limited, observed, *([refusals.fail()] if refusals is not None else [])):
                yield
        except MissingPermissionsError as error:
            if refusals is None or refusals.found:
                raise
            raise MissingPermissionsError(f"{error}\n{ROLES_FOLDER} is older than the code: {_GENERATE}") from None
        if refusals is not None:
            refusals.raise_found()

    async def _deployed_client(self) -> Client:
        """Returns the client of the operator in its namespace: of its ServiceAccount, or of the administrator."""
        await self._require_namespace(self._own_namespace)
        if self._roles is None:
            return self.client.using(namespace=self._own_namespace)
        for manifest in self._roles.manifests:
            if place := manifest["metadata"].get("namespace"):
                await self._require_namespace(place)
            await self.client.apply(Dynamic(manifest), force=True)
        return self.client_as(self._roles.account, namespace=self._own_namespace)

    async def _require_namespace(self, name: str) -> None:
        try:
            await self.client.create(Namespace(name=name))
        except AlreadyExists:
            return


class _Refusals:
    """The calls that the roles do not allow, each with the line of code that made it and the remedy."""

    def __init__(self, roles: ProjectRoles) -> None:
        self._account = roles.account
        self._granted = roles.granted()
        self._refused = asyncio.Event()
        self.found: list[str] = []

    def check(self, call: ObservedCall) -> None:
        """Keeps a call that RBAC refused; another plug-in of the API server may refuse what the roles allow."""
        if call.status != HTTPStatus.FORBIDDEN:
            return
        asked = [
            *call.permissions,
            *(replace(each, verb="create") for each in call.permissions if each.verb == "patch"),
        ]
        missing = [each for each in asked if not covers(self._granted, each)]
        if missing:
            self.found.append(self._message(missing[0], call))
            self._refused.set()

    def _message(self, permission: Permission, call: ObservedCall) -> str:
        line = f"{call.line.function} ({call.line.line})" if call.line is not None else ""
        who = line or (f"controller {call.controller}" if call.controller else "the runtime")
        return (
            f"expected {self._account} to be allowed to {permission}, but {ROLES_FOLDER} does not grant it; {who} asks for "
            f"it. Grant what the tests use: {_GENERATE}"
        )

    async def fail(self) -> None:
        """Waits for the first refusal, and raises it."""
        __tracebackhide__ = True
        await self._refused.wait()
        self.raise_found()

    def raise_found(self) -> None:
        """Raises `MissingPermissionsError` if something was refused."""
        __tracebackhide__ = True
        if self.found:
            raise MissingPermissionsError("\n".join(dict.fromkeys(self.found)))
