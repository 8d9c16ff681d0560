"""The objects that a cluster consists of, as pure functions of its spec."""

from etcd_operator.manifests.addresses import family_of, url
from etcd_operator.manifests.budgets import budget
from etcd_operator.manifests.claims import claim, grown, keeps_data, storage_of
from etcd_operator.manifests.names import (
    CLIENT_PORT,
    PEER_PORT,
    client_host,
    host_of,
    is_of,
    labels_of,
    member_name,
    ordinal_of,
    peer_url,
    pod_of,
    secure_peer_url,
)
from etcd_operator.manifests.pods import Start, nobody, pod, settled, template_of
from etcd_operator.manifests.programs import PROGRAM_PORT, PYTHON_IMAGE, TLS_FOLDER, program
from etcd_operator.manifests.services import services
from etcd_operator.manifests.tls import CLIENT, PEER, SERVER, Files, mode_of, peers_are_secure, secret_names
from etcd_operator.manifests.wiring import client_urls

__all__ = [
    "CLIENT",
    "CLIENT_PORT",
    "PEER",
    "PEER_PORT",
    "PROGRAM_PORT",
    "PYTHON_IMAGE",
    "SERVER",
    "TLS_FOLDER",
    "Files",
    "Start",
    "budget",
    "claim",
    "client_host",
    "client_urls",
    "family_of",
    "grown",
    "host_of",
    "is_of",
    "keeps_data",
    "labels_of",
    "member_name",
    "mode_of",
    "nobody",
    "ordinal_of",
    "peer_url",
    "peers_are_secure",
    "pod",
    "pod_of",
    "program",
    "secret_names",
    "secure_peer_url",
    "services",
    "settled",
    "storage_of",
    "template_of",
    "url",
]
