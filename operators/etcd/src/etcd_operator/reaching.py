"""Members that snapshots are taken from: where they are, and with what one is let in."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from etcd_operator.gateways import MAX_ANSWER_BYTES, reachable
from etcd_operator.hosts import why_not_at
from etcd_operator.kinds import EtcdCluster
from etcd_operator.looking import pod_seen
from etcd_operator.manifests import client_urls, is_of, labels_of, secret_names
from etcd_operator.trust import FaultError, Keyring, Keys
from navarch import ALL, Context
from navarch.errors import ConfigError
from navarch.etcd import EtcdClient, EtcdOptions
from navarch.k8s.core.v1 import Pod

__all__ = ["Reach", "Reached", "Way"]


@dataclass(frozen=True, slots=True)
class Reached:
    """A client of some members, and the endpoint of each."""

    etcd: EtcdClient
    endpoints: tuple[str, ...]
    identity: str = ""
    """Of the cluster that they are members of, if that is known. The address of one that is gone may be that of a member of
    another one by now.
    """
    ready: frozenset[str] = frozenset()
    """The endpoints of those that Kubernetes says are ready, which takes a quorum."""
    is_own: bool = True
    """Whether they are pods that the operator made; somebody may have named any other server as an endpoint."""
    foreign: frozenset[str] = frozenset()
    """Identities of clusters that must not answer: those of EtcdClusters of other namespaces."""


@dataclass(frozen=True, slots=True)
class Way:
    """How a member's pod is reached before its etcd runs; in plain text without TLS."""

    tls: ssl.SSLContext | None
    host: str

    @property
    def scheme(self) -> str:
        """Of its URL."""
        return "https" if self.tls is not None else "http"


class Reach:
    """Reaches members of clusters, and endpoints of anybody's. All raise `FaultError`, in words for a status."""

    def __init__(self, keyring: Keyring, namespaces: tuple[str, ...] = ()) -> None:
        self._keyring = keyring
        self._namespaces = namespaces or (ALL,)

    @asynccontextmanager
    async def cluster(self, cluster: EtcdCluster, ctx: Context) -> AsyncIterator[Reached]:
        """All its members that have an address, as root if it has users. What has its labels alone is no member of it."""
        pods = await ctx.client.list(Pod, namespace=cluster.namespace, labels=labels_of(cluster))
        async with self.pods(cluster, [pod for pod in pods if is_of(cluster, pod)], ctx) as reached:
            yield reached

    @asynccontextmanager
    async def pods(self, cluster: EtcdCluster, pods: Sequence[Pod], ctx: Context) -> AsyncIterator[Reached]:
        """Those of its members, in the same way."""
        keys = await self._keyring.keys(cluster, ctx)
        urls = reachable(client_urls(pods), keys)
        if client_urls(pods) and not urls:
            raise FaultError("; ".join(keys.faults))
        async with _opened(tuple(urls.values()), keys) as reached:
            ready = frozenset(urls[pod.name] for pod in pods if pod.name in urls and pod_seen(pod).ready)
            yield replace(reached, identity=cluster.status.cluster_id, ready=ready)

    async def way(self, cluster: EtcdCluster, ctx: Context) -> Way:
        """As members are reached."""
        keys = await self._keyring.keys(cluster, ctx)
        if keys.client is None and secret_names(cluster).server:
            raise FaultError("; ".join(keys.faults))
        with keys.tls() as tls:
            return Way(tls.context() if tls is not None else None, keys.server_name)

    @asynccontextmanager
    async def endpoints(self, endpoints: Sequence[str], secret: str, ctx: Context) -> AsyncIterator[Reached]:
        """With the certificate in a Secret, if one is named. Clusters of other namespaces are not meant."""
        for endpoint in endpoints:
            if words := await why_not_at(endpoint):
                raise FaultError(f"etcdEndpoints: {words}")
        foreign = await self._identities_elsewhere(ctx)
        async with _opened(tuple(endpoints), await self._keyring.of_secret(secret, ctx)) as reached:
            yield replace(reached, is_own=False, foreign=foreign)

    async def _identities_elsewhere(self, ctx: Context) -> frozenset[str]:
        found = [each for namespace in self._namespaces for each in await ctx.list(EtcdCluster, namespace=namespace)]
        elsewhere = {each.status.cluster_id for each in found if each.namespace != ctx.key.namespace}
        return frozenset(elsewhere - {""})


@asynccontextmanager
async def _opened(endpoints: tuple[str, ...], keys: Keys) -> AsyncIterator[Reached]:
    if not endpoints:
        raise FaultError("there is no member to be asked")
    with keys.tls() as tls:
        try:
            options = EtcdOptions(
                endpoints=endpoints,
                user=keys.user,
                password=keys.password,
                tls=tls,
                patience=0,
                max_answer_bytes=MAX_ANSWER_BYTES,
            )
            client = EtcdClient(options)
        except ConfigError as error:
            raise FaultError(str(error)) from None
    async with client:
        yield Reached(client, endpoints)
