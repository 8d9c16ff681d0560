"""The operator as operators/etcd/deploy has it: its account, and what that may do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from etcd_operator.tls import SECRETS_ROLE
from navarch.api import Dynamic
from navarch.client import Client
from navarch.operator import Operator
from navarch.testing import Cluster

DEPLOY = Path(__file__).parents[1] / "deploy"
NAMESPACE = "etcd-operator"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:etcd-operator"


def manifests(*files: str) -> list[dict[str, Any]]:
    """All documents of these files."""
    return [document for file in files for document in yaml.safe_load_all((DEPLOY / file).read_text())]


class Deployed(Cluster):
    """A cluster on which operators run in the name of their account, with its roles and no other right."""

    @asynccontextmanager
    async def run(self, *operators: Operator, client: Client | None = None) -> AsyncIterator[None]:
        webhooks = ("webhooks.yaml",) if any(operator.admission_webhooks for operator in operators) else ()
        for manifest in manifests("operator.yaml", "rbac.yaml", *webhooks):
            if manifest["kind"] != "Deployment":
                await self.client.apply(Dynamic(manifest))
        await grant_secrets(self.client, "default")
        async with super().run(*operators, client=client or self.client_as(ACCOUNT, namespace=NAMESPACE)):
            yield


async def grant_secrets(client: Client, namespace: str) -> None:
    """What the administrator does in each namespace whose Secrets the operator may use."""
    await client.apply(Dynamic(secrets_binding(namespace)))


def secrets_binding(namespace: str) -> dict[str, Any]:
    """The binding for the Secrets of one namespace."""
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": SECRETS_ROLE}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": SECRETS_ROLE, "namespace": namespace},
        "roleRef": role,
        "subjects": [{"kind": "ServiceAccount", "name": "etcd-operator", "namespace": NAMESPACE}],
    }


def with_rights(cluster: Cluster) -> Cluster:
    """The same cluster, as `Deployed`."""
    return Deployed(cluster.client, cluster._engine, cluster.access)
