"""`OperatorCluster`: the project's operator runs in the test as it is deployed: in its own namespace, under its roles."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import Path

from navarch.api import Dynamic
from navarch.cache import Namespaces
from navarch.client import Client
from navarch.errors import AlreadyExists, MissingPermissionsError
from navarch.k8s.core.v1 import Namespace
from navarch.operator import Operator, roles_of
from navarch.operator.roles import Permission
from navarch.project.permissions import covers, declared_permissions
from navarch.project.role_files import ROLES_FOLDER, ProjectRoles
from navarch.testing.call_recorder import ObservedCall, ObservedTransport
from navarch.testing.cluster import Cluster

__all__ = ["DeployedOperator", "OperatorCluster"]

_REGISTRATION = frozenset({"admissionregistration.k8s.io", "apiextensions.k8s.io"})
_GENERATE = "pytest --record-permissions && navarch generate rbac"


@dataclass(frozen=True, slots=True)
class DeployedOperator:
    """The operator of a project as its manifests deploy it."""

    name: str
    root: Path
    """The folder of the project."""
    namespace: str
    watched: frozenset[str]
    """The namespaces that the deployment limits it to; none if it watches all, or if its code names them."""
    declared: frozenset[Permission]
    """What it needs by its declarations and the flags of its Deployment."""
    roles: ProjectRoles | None
    """What it may do; None for the administrator's permissions."""


class OperatorCluster(Cluster):
    """A cluster in which each call of a deployed operator's client is observed, and its roles are enforced.

    Other operators run as the administrator. Namespaces that the deployment limits the operator to are the namespace of
    the tests here.
    """

    def __init__(
        self, cluster: Cluster, deployed: DeployedOperator, observe: Callable[[Operator, str, ObservedCall], None]
    ) -> None:
        super().__init__(cluster.client, cluster._engine, cluster.access)  # noqa: SLF001 - it takes the other's place
        here = dict.fromkeys(deployed.watched, cluster.client.options.namespace)
        self._deployed = deployed
        self._own_namespace = here.get(deployed.namespace, deployed.namespace)
        self._roles = deployed.roles.moved(here) if deployed.roles is not None else None
        self._observe = observe

    @asynccontextmanager
    async def run(self, *operators: Operator, client: Client | None = None) -> AsyncIterator[None]:
        """See `Cluster.run`. Raises `MissingPermissionsError` as soon as the API server refuses a call of the operator."""
        __tracebackhide__ = True
        if all(each.name != self._deployed.name for each in operators):
            async with super().run(*operators, client=client):
                yield
            return
        limited = [self._limited(each) for each in operators]
        ours = next(each for each in limited if each.name == self._deployed.name)
        refusals = _Refusals(self._roles) if self._roles is not None and client is None else None
        deployed = client or await self._deployed_client(ours)

        def observe(call: ObservedCall) -> None:
            self._observe(ours, self._own_namespace, call)
            if refusals is not None:
                refusals.check(call)

        observed = deployed.through(lambda transport: ObservedTransport(transport, self._deployed.root, observe))
        try:
            async with self._running(limited, observed, *([refusals.fail()] if refusals is not None else [])):
                yield
        except MissingPermissionsError as error:
            if refusals is None or refusals.found:
                raise
            raise MissingPermissionsError(f"{error}\n{ROLES_FOLDER} is older than the code: {_GENERATE}") from None
        if refusals is not None:
            refusals.raise_found()

    def _limited(self, operator: Operator) -> Operator:
        if operator.name != self._deployed.name or not self._deployed.watched:
            return operator
        twin = copy.copy(operator)
        twin.namespaces = Namespaces(self.client.options.namespace)
        return twin

    async def _deployed_client(self, operator: Operator) -> Client:
        """Returns the client of the operator in its namespace: of its ServiceAccount, or of the administrator."""
        await self._require_namespace(self._own_namespace)
        if self._roles is None:
            return self.client.using(namespace=self._own_namespace)
        registration = roles_of(
            f"{self._deployed.name}-test-registration", self._registered(operator), self._roles.account
        )
        for manifest in (*self._roles.manifests, *registration):
            if place := manifest["metadata"].get("namespace"):
                await self._require_namespace(place)
            await self.client.apply(Dynamic(manifest), force=True)
        return self.client_as(self._roles.account, namespace=self._own_namespace)

    def _registered(self, operator: Operator) -> list[Permission]:
        """Returns what a test needs beyond the roles: there the operator registers the webhooks that manifests register."""
        known = {replace(each, namespace=None) for each in self._deployed.declared}
        needed = declared_permissions(self._twin(operator), self._own_namespace)
        return [each for each in needed if each.group in _REGISTRATION and replace(each, namespace=None) not in known]

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
