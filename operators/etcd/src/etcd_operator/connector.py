"""Connects backups and restores to etcd: to the members of an EtcdCluster, or to endpoints that a backup names."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlsplit

from etcd_operator.gateway import MAX_ANSWER_BYTES, reachable
from etcd_operator.kinds import EtcdCluster
from etcd_operator.manifests import client_urls, is_of, labels_of, secret_names
from etcd_operator.observe import observe_pod
from etcd_operator.tls import CredentialCache, CredentialsError, EtcdCredentials
from navarch import ALL, Context
from navarch.errors import ConfigError
from navarch.etcd import EtcdClient, EtcdOptions
from navarch.k8s.core.v1 import Pod

_SECONDS: Final = 5.0
_METADATA: Final = frozenset(map(ipaddress.ip_address, ("168.63.129.16", "100.100.100.200", "fd00:ec2::254")))
"""Metadata servers of clouds that are not link-local."""
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")


async def endpoint_refusal(url: str) -> str:
    """Returns why the operator refuses that endpoint; empty if it accepts it.

    It refuses servers that hand out a machine's credentials, such as a cloud's metadata server. The name is resolved by
    the system, so aliases are refused too. A name that resolves differently later is not: that takes a NetworkPolicy.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return _unreadable(url)
    if parts.scheme not in {"http", "https"} or not host or parts.username is not None or parts.query or parts.fragment:
        return _unreadable(url)
    if any(_is_of_machine(address) for address in await _addresses(host, port or 443)):
        return f"{host} is an address of the machine itself, such as a cloud's metadata server: name another endpoint"
    return ""


def _unreadable(url: str) -> str:
    """Returns the error; it does not repeat user, query and fragment, which may be secret."""
    shown = url.partition("://")[2].rpartition("@")[2].partition("?")[0].partition("#")[0][:100]
    return f"expected an endpoint such as https://store.example.com, without user, query and fragment, got {shown!r}"


async def _addresses(host: str, port: int) -> list[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    """Resolves the host; returns nothing if that fails, because the client then reports the failure."""
    try:
        async with asyncio.timeout(_SECONDS):
            found = await asyncio.get_running_loop().getaddrinfo(host, port)
    except (OSError, UnicodeError, TimeoutError):
        return []
    return [ipaddress.ip_address(str(each[4][0]).partition("%")[0]) for each in found]


def _is_of_machine(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
        if inner is not None:
            return _is_of_machine(inner)
    return address.is_link_local or address.is_multicast or address.is_unspecified or address in _METADATA


@dataclass(frozen=True, slots=True)
class ConnectedEtcd:
    """An open client, and the endpoints that it uses."""

    etcd: EtcdClient
    endpoints: tuple[str, ...]
    identity: str = ""
    """The expected cluster id, if it is known: the address of a deleted pod may now belong to another cluster's member."""
    ready: frozenset[str] = frozenset()
    """The endpoints of ready pods; readiness implies a quorum."""
    is_own: bool = True
    """True if the endpoints are pods of the operator; a backup may name any other server."""
    foreign: frozenset[str] = frozenset()
    """Cluster ids that are refused: those of EtcdClusters in other namespaces."""


@dataclass(frozen=True, slots=True)
class PodTls:
    """TLS for a member's pod before its etcd runs; None means plain HTTP."""

    tls: ssl.SSLContext | None
    host: str

    @property
    def scheme(self) -> str:
        """The scheme of its URL."""
        return "https" if self.tls is not None else "http"


class EtcdConnector:
    """Opens clients. All methods raise `CredentialsError`, whose message is fit for a status."""

    def __init__(self, keyring: CredentialCache, namespaces: tuple[str, ...] = ()) -> None:
        self._keyring = keyring
        self._namespaces = namespaces or (ALL,)

    @asynccontextmanager
    async def cluster(self, cluster: EtcdCluster, ctx: Context) -> AsyncIterator[ConnectedEtcd]:
        """Opens a client of all owned pods that have an address, as root if authentication is enabled."""
        pods = await ctx.client.list(Pod, namespace=cluster.namespace, labels=labels_of(cluster))
        async with self.pods(cluster, [pod for pod in pods if is_of(cluster, pod)], ctx) as reached:
            yield reached

    @asynccontextmanager
    async def pods(self, cluster: EtcdCluster, pods: Sequence[Pod], ctx: Context) -> AsyncIterator[ConnectedEtcd]:
        """Opens a client of these pods of the cluster."""
        keys = await self._keyring.keys(cluster, ctx)
        urls = reachable(client_urls(pods), keys)
        if client_urls(pods) and not urls:
            raise CredentialsError("; ".join(keys.faults))
        async with _opened(tuple(urls.values()), keys) as reached:
            ready = frozenset(urls[pod.name] for pod in pods if pod.name in urls and observe_pod(pod).ready)
            yield replace(reached, identity=cluster.status.cluster_id, ready=ready)

    async def way(self, cluster: EtcdCluster, ctx: Context) -> PodTls:
        """Returns the TLS settings of the members' pods."""
        keys = await self._keyring.keys(cluster, ctx)
        if keys.client is None and secret_names(cluster).server:
            raise CredentialsError("; ".join(keys.faults))
        with keys.tls() as tls:
            return PodTls(tls.context() if tls is not None else None, keys.server_name)

    @asynccontextmanager
    async def endpoints(self, endpoints: Sequence[str], secret: str, ctx: Context) -> AsyncIterator[ConnectedEtcd]:
        """Opens a client of these endpoints, with the client certificate of the Secret if one is named."""
        for endpoint in endpoints:
            if message := await endpoint_refusal(endpoint):
                raise CredentialsError(f"etcdEndpoints: {message}")
        foreign = await self._identities_elsewhere(ctx)
        async with _opened(tuple(endpoints), await self._keyring.of_secret(secret, ctx)) as reached:
            yield replace(reached, is_own=False, foreign=foreign)

    async def _identities_elsewhere(self, ctx: Context) -> frozenset[str]:
        found = [each for namespace in self._namespaces for each in await ctx.list(EtcdCluster, namespace=namespace)]
        elsewhere = {each.status.cluster_id for each in found if each.namespace != ctx.key.namespace}
        return frozenset(elsewhere - {""})


@asynccontextmanager
async def _opened(endpoints: tuple[str, ...], keys: EtcdCredentials) -> AsyncIterator[ConnectedEtcd]:
    if not endpoints:
        raise CredentialsError("no member has an address")
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
            raise CredentialsError(str(error)) from None
    async with client:
        yield ConnectedEtcd(client, endpoints)
