"""Deployments of the small project, as tests begin and change them."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any

import msgspec

from navarch.api import Dynamic, Kind
from navarch.client import ALL, Client, MergePatch, MetadataOnly, Request, Response, Transport
from navarch.client.transport import WrappedTransport
from navarch.errors import DeployError, MethodNotAllowed, NotFound
from navarch.project.deploy.deployer import deploy_release, plan
from navarch.project.deploy.namespaces import NAMESPACES, until_deleted
from navarch.project.deploy.release import Release
from navarch.project.deploy.removal import DeploymentRemoval, plan_removal, remove
from navarch.project.deploy.revisions import Revision
from navarch.project.deploy.server_side_apply import AppliedObject

PROJECT = "cache-operator"
NAMESPACE = "cache-operator-system"
DEPLOYMENT = "cache-operator-controller-manager"
CRD_NAME = "memcacheds.cache.example.com"
MEMCACHED = Kind("cache.example.com", "v1alpha1", "Memcached", plural="memcacheds")
DEPLOYMENTS = Kind("apps", "v1", "Deployment", plural="deployments")
SERVICES = Kind("", "v1", "Service", plural="services")
SECRETS = Kind("", "v1", "Secret", plural="secrets")
CONFIG_MAPS = Kind("", "v1", "ConfigMap", plural="configmaps")
CRDS = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", plural="customresourcedefinitions", namespaced=False
)
CLUSTER_ROLES = Kind("rbac.authorization.k8s.io", "v1", "ClusterRole", plural="clusterroles", namespaced=False)
_OF_EVERY_NAMESPACE = ("/kube-root-ca.crt", "/default")
_OF_THE_CLUSTER = frozenset({"Event", "Lease", "EndpointSlice", "Endpoints", "ControllerRevision", "APIService"})


async def deployed(client: Client, release: Release, *, force: bool = False) -> tuple[Revision, list[AppliedObject]]:
    """Deploys without waiting for pods, which no node runs."""
    return await deploy_release(client, await plan(client, release, force=force), wait=0, force=force)


async def removal(client: Client, *, delete_crds: bool = False, namespace: str = NAMESPACE) -> DeploymentRemoval:
    """What an undeploy would delete."""
    return await plan_removal(client, PROJECT, namespace, delete_crds=delete_crds, say=lambda _: None)


async def undeployed(client: Client, *, delete_crds: bool = False, seconds: float = 30.0) -> DeploymentRemoval:
    """Undeploys, and returns what was deleted."""
    found = await removal(client, delete_crds=delete_crds)
    await remove(client, found, seconds=seconds)
    return found


def results(changes: list[AppliedObject], result: str) -> set[str]:
    """The objects with that result."""
    return {f"{each.kind} {each.name}" for each in changes if each.result == result}


def with_object(release: Release, change: Callable[[dict[str, Any]], object], kind: str) -> Release:
    """The release with its objects of that kind changed."""
    objects: list[dict[str, Any]] = msgspec.json.decode(msgspec.json.encode(release.objects))
    for each in objects:
        if each["kind"] == kind:
            change(each)
    return msgspec.structs.replace(release, objects=objects)


def without(release: Release, kind: str) -> Release:
    """The release without its objects of that kind."""
    return msgspec.structs.replace(release, objects=[each for each in release.objects if each["kind"] != kind])


def memcached(name: str, *finalizers: str, namespace: str = "default") -> Dynamic:
    metadata = {"name": name, "namespace": namespace, "finalizers": list(finalizers)}
    return Dynamic({"apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached", "metadata": metadata, "spec": {}})


async def objects_of(client: Client) -> set[str]:
    """All objects of the cluster, but for those that come and go by themselves."""
    found = set()
    client.discovery.forget()
    for each in await client.discovery.all():
        kind = each.kind
        if "list" not in each.verbs or kind.kind in _OF_THE_CLUSTER:
            continue
        try:
            listed = await client.list(MetadataOnly(kind), namespace=ALL)
        except (MethodNotAllowed, NotFound):
            continue
        found |= {f"{kind.resource} {item.namespace}/{item.name}" for item in listed}
    return {each for each in found if not each.endswith(_OF_EVERY_NAMESPACE)}


async def remove_traces(client: Client) -> None:
    """Removes what a test has left on a cluster that others use after it, also a namespace that undeploy keeps."""
    with contextlib.suppress(NotFound):
        for each in await client.list(MEMCACHED, namespace=ALL):
            change = MergePatch({"metadata": {"finalizers": None}})
            await client.patch(MEMCACHED, each.name, change, namespace=each.namespace)
    with contextlib.suppress(DeployError):
        await undeployed(client, delete_crds=True)
    with contextlib.suppress(NotFound):
        await client.delete(NAMESPACES, NAMESPACE)
        await until_deleted(client, NAMESPACE, 30.0)


async def exists(client: Client, kind: Kind, name: str, namespace: str | None = None) -> bool:
    try:
        await client.get(kind, name, namespace=namespace)
    except NotFound:
        return False
    return True


async def has_namespace(client: Client, name: str = NAMESPACE) -> bool:
    return await exists(client, NAMESPACES, name)


class ActingAs(WrappedTransport):
    """Sends every request in the name of another user."""

    def __init__(self, transport: Transport, user: str) -> None:
        super().__init__(transport)
        self._user = user

    async def send(self, request: Request) -> Response:
        """See `Transport.send`."""
        headers = {**request.headers, "Impersonate-User": self._user}
        return await self._transport.send(dataclasses.replace(request, headers=headers))
