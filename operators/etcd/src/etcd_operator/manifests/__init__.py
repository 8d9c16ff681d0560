"""The objects that a cluster consists of, as pure functions of its spec."""

from etcd_operator.manifests.budgets import budget
from etcd_operator.manifests.claims import claim, grown, keeps_data, storage_of
from etcd_operator.manifests.names import (
    CLIENT_PORT,
    PEER_PORT,
    labels_of,
    member_name,
    ordinal_of,
    peer_url,
    pod_of,
)
from etcd_operator.manifests.pods import Start, pod, settled, template_of
from etcd_operator.manifests.services import services

__all__ = [
    "CLIENT_PORT",
    "PEER_PORT",
    "Start",
    "budget",
    "claim",
    "grown",
    "keeps_data",
    "labels_of",
    "member_name",
    "ordinal_of",
    "peer_url",
    "pod",
    "pod_of",
    "services",
    "settled",
    "storage_of",
    "template_of",
]
