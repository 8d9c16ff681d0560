"""The operator as operators/etcd/config has it: its account, and what that may do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from etcd_operator.backup import EtcdBackup
from etcd_operator.declaration import etcd_operator
from etcd_operator.kinds import EtcdCluster
from etcd_operator.restore import EtcdRestore
from etcd_operator.tls import SECRETS_ROLE
from navarch.api import Dynamic
from navarch.client import Client
from navarch.operator import Operator
from navarch.project.generate import Deployment, deployment_of
from navarch.project.kustomize import installed
from navarch.project.project import Project
from navarch.testing import Cluster

PROJECT: Final = Path(__file__).parents[1]
NAMESPACE: Final = "etcd-operator"
ACCOUNT_NAME: Final = "etcd-operator-controller-manager"
ACCOUNT: Final = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT_NAME}"
_NO_RIGHTS: Final = frozenset({"CustomResourceDefinition", "Deployment", "Kustomization"})


def manifests(*folders: str) -> list[dict[str, Any]]:
    """All objects in these folders of config."""
    files = [file for folder in folders for file in sorted((PROJECT / "config" / folder).glob("**/*.yaml"))]
    found = [document for file in files for document in yaml.safe_load_all(file.read_text())]
    return [each for each in found if each["kind"] != "Kustomization"]


def deployment(operator: Operator, **settings: Any) -> Deployment:
    """What `navarch generate` writes for this operator, with these settings in `[tool.navarch]`."""
    project = Project.find(PROJECT)
    project = replace(project, settings=msgspec.structs.replace(project.settings, **settings))
    return deployment_of(project, operator, (EtcdCluster, EtcdBackup, EtcdRestore))


@cache
def for_namespaces(*names: str) -> list[dict[str, Any]]:
    """The objects of an operator for these namespaces."""
    return installed(deployment(etcd_operator(namespaces=names, crds="verify"), watch_namespaces=names).manifests)


@cache
def with_webhooks() -> list[dict[str, Any]]:
    """The objects of an operator that serves its webhooks."""
    switched = {"ETCD_OPERATOR_WEBHOOKS": "yes"}
    return installed(deployment(etcd_operator(webhooks=True), environment=switched).manifests)


class Deployed(Cluster):
    """A cluster on which operators run in the name of their account, with its roles and no other right."""

    @asynccontextmanager
    async def run(self, *operators: Operator, client: Client | None = None) -> AsyncIterator[None]:
        is_called = any(operator.admission_webhooks for operator in operators)
        for manifest in with_webhooks() if is_called else manifests("manager", "rbac"):
            if manifest["kind"] not in _NO_RIGHTS:
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
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT_NAME, "namespace": NAMESPACE}],
    }


def with_rights(cluster: Cluster) -> Cluster:
    """The same cluster, as `Deployed`."""
    return Deployed(cluster.client, cluster._engine, cluster.access)
