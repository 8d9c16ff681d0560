"""The two services of a cluster."""

from __future__ import annotations

from etcd_operator.kinds import EtcdCluster
from etcd_operator.manifests.names import CLIENT_PORT, PEER_PORT, labels_of
from navarch import IntOrString
from navarch.k8s.core.v1 import Service, ServicePort, ServiceSpec

__all__ = ["services"]


def services(cluster: EtcdCluster) -> list[Service]:
    """`<name>` gives each member a name, ready or not; `<name>-client` leads to those that serve."""
    labels = labels_of(cluster)
    peers = ServiceSpec(
        cluster_ip="None",
        publish_not_ready_addresses=True,
        selector=labels,
        ports=[_port("client", CLIENT_PORT), _port("peer", PEER_PORT)],
    )
    clients = ServiceSpec(selector=labels, ports=[_port("client", CLIENT_PORT)])
    return [
        Service(name=cluster.name, labels=labels, spec=peers),
        Service(name=f"{cluster.name}-client", labels=labels, spec=clients),
    ]


def _port(name: str, number: int) -> ServicePort:
    target: IntOrString = number
    return ServicePort(name=name, port=number, protocol="TCP", target_port=target)
