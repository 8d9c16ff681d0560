"""Computes the hosts files of pods: names of services and of pods behind headless services. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from navarch.k8s.core.v1 import Pod, Service
from navarch.k8s.discovery.v1 import EndpointSlice

_DOMAIN: Final = "cluster.local"
_HEAD: Final = (
    "# Kubernetes-managed hosts file.",
    "127.0.0.1\tlocalhost",
    "::1\tlocalhost ip6-localhost ip6-loopback",
)
SERVICE_LABEL: Final = "kubernetes.io/service-name"


class HostsEntry(NamedTuple):
    """A name in a namespace, and one of its addresses."""

    namespace: str
    name: str
    address: str

    def line(self, namespace: str) -> str:
        """Returns the line of the entry for pods of that namespace.

        >>> HostsEntry("a", "db", "127.0.0.9").line("a").split()
        ['127.0.0.9', 'db.a.svc.cluster.local', 'db.a.svc', 'db.a', 'db']
        """
        service = f"{self.name}.{self.namespace}"
        short = f" {self.name}" if namespace == self.namespace else ""
        return f"{self.address}\t{service}.svc.{_DOMAIN} {service}.svc {service}{short}"


def names_of(services: Iterable[Service], slices: Iterable[EndpointSlice]) -> list[HostsEntry]:
    """Returns the names of all services, with the cluster IP or, for headless services, the addresses of their pods."""
    headless: set[tuple[str, str]] = set()
    found: set[HostsEntry] = set()
    for service in services:
        if service.spec.cluster_ip == "None":
            headless.add((service.namespace, service.name))
        elif service.spec.cluster_ip:
            found.add(HostsEntry(service.namespace, service.name, service.spec.cluster_ip))
    for part in slices:
        name = part.labels.get(SERVICE_LABEL, "")
        if (part.namespace, name) in headless:
            found.update(_of_pods(part, name))
    return sorted(found)


def _of_pods(part: EndpointSlice, service: str) -> Iterator[HostsEntry]:
    for endpoint in part.endpoints or []:
        if endpoint.conditions is not None and endpoint.conditions.ready is False:
            continue
        for address in endpoint.addresses:
            yield HostsEntry(part.namespace, service, address)
            if endpoint.hostname:
                yield HostsEntry(part.namespace, f"{endpoint.hostname}.{service}", address)


def own_names(pod: Pod) -> list[str]:
    """Returns the pod's own names, its hostname last. They are in the file from the start, since a client may cache a
    failed lookup.
    """
    hostname = pod.spec.hostname or pod.name[:63].rstrip("-.")
    if not pod.spec.subdomain:
        return [hostname]
    name = f"{hostname}.{pod.spec.subdomain}.{pod.namespace}.svc"
    return [f"{name}.{_DOMAIN}", name, hostname]


def hosts_text(pod: Pod, address: str, names: Sequence[HostsEntry]) -> str:
    """Returns the content of a pod's hosts file."""
    own = f"{address}\t{' '.join(own_names(pod))}"
    aliases = [f"{alias.ip}\t{' '.join(alias.hostnames or [])}" for alias in pod.spec.host_aliases or []]
    extra = ["# Entries added by HostAliases.", *aliases] if aliases else []
    services = [name.line(pod.namespace) for name in names]
    return "\n".join([*_HEAD, own, *extra, *services, ""])
