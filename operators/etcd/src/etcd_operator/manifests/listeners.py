"""The listeners of a member: URLs, certificates, and their volumes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from etcd_operator.kinds import GROUP, EtcdCluster
from etcd_operator.manifests.names import (
    CLIENT_PORT,
    PEER,
    PEER_PORT,
    SECURE_PEER_PORT,
    SERVER,
    SecretKeys,
    host_of,
    mode_of,
    own_address,
    peer_url,
    secret_names,
    url,
)
from etcd_operator.versions import EtcdVersion
from navarch.k8s.core.v1 import EnvVar, Pod, SecretVolumeSource, Volume, VolumeMount

AUTHORITIES: Final = f"{GROUP}/authorities"
CLIENTS: Final = f"{GROUP}/clients"
_PEER_FOLDER: Final = "/etc/etcdtls/member/peer-tls"
SERVER_FOLDER: Final = "/etc/etcdtls/member/server-tls"


def client_urls(pods: Iterable[Pod]) -> dict[str, str]:
    """Returns the client URL of each pod that has an address, with the scheme that it was started with."""
    return {
        pod.name: url(pod.annotations.get(CLIENTS, "http"), pod.status.pod_ip, CLIENT_PORT)
        for pod in pods
        if pod.status.pod_ip
    }


def notes(cluster: EtcdCluster) -> dict[str, str]:
    """Returns the annotations with the client scheme and the trusted authorities of a pod."""
    if mode_of(cluster) == "plain":
        return {}
    clients = {CLIENTS: "https"} if secret_names(cluster).server else {}
    return {AUTHORITIES: cluster.status.authorities, **clients}


def flags(cluster: EtcdCluster, name: str) -> list[str]:
    """Returns etcd's flags for URLs and certificates."""
    return [
        f"--listen-peer-urls={','.join(_peer_urls(cluster, own_address(cluster)))}",
        f"--listen-client-urls={','.join(_client_urls(cluster, own_address(cluster)))}",
        f"--initial-advertise-peer-urls={peer_url(cluster, name)}",
        f"--advertise-client-urls={','.join(_client_urls(cluster, host_of(cluster, name)))}",
        *_certificates(cluster),
    ]


def _peer_urls(cluster: EtcdCluster, host: str) -> list[str]:
    plain, secure = f"http://{host}:{PEER_PORT}", f"https://{host}:{SECURE_PEER_PORT}"
    if not secret_names(cluster).peer or mode_of(cluster) == "plain":
        return [plain]
    return [plain, secure] if mode_of(cluster) == "both" else [secure]


def _client_urls(cluster: EtcdCluster, host: str) -> list[str]:
    plain, secure = f"http://{host}:{CLIENT_PORT}", f"https://{host}:{CLIENT_PORT}"
    tls = cluster.spec.tls
    if tls is None or not secret_names(cluster).server:
        return [plain]
    return [plain, secure] if mode_of(cluster) == "both" or tls.plain_clients else [secure]


def _certificates(cluster: EtcdCluster) -> list[str]:
    names = secret_names(cluster)
    peer = _of("peer-", _PEER_FOLDER, PEER) if names.peer else []
    return [*peer, *(_of("", SERVER_FOLDER, SERVER) if names.server else [])]


def _of(prefix: str, folder: str, files: SecretKeys) -> list[str]:
    return [
        f"--{prefix}trusted-ca-file={folder}/{files.authorities}",
        f"--{prefix}cert-file={folder}/{files.certificate}",
        f"--{prefix}key-file={folder}/{files.key}",
        f"--{prefix}client-cert-auth=true",
    ]


def environment(cluster: EtcdCluster, name: str) -> list[EnvVar]:
    """Returns variables for etcd, and for etcdctl in its container."""
    names = secret_names(cluster)
    if not names.server:
        tool = [EnvVar(name="ETCDCTL_ENDPOINTS", value=f"http://{own_address(cluster)}:{CLIENT_PORT}")]
    else:
        tool = [
            EnvVar(name="ETCDCTL_ENDPOINTS", value=f"https://{host_of(cluster, name)}:{CLIENT_PORT}"),
            EnvVar(name="ETCDCTL_CACERT", value=f"{SERVER_FOLDER}/{SERVER.authorities}"),
            EnvVar(name="ETCDCTL_CERT", value=f"{SERVER_FOLDER}/{SERVER.certificate}"),
            EnvVar(name="ETCDCTL_KEY", value=f"{SERVER_FOLDER}/{SERVER.key}"),
        ]
    return [*tool, *([_known_by_authority(cluster)] if names.peer else [])]


def _known_by_authority(cluster: EtcdCluster) -> EnvVar:
    """Returns the variable that disables the reverse DNS check of peers: pods have no reverse records in many clusters."""
    given = EtcdVersion.of(cluster.spec.version) >= (3, 6, 0)
    name = "ETCD_PEER_SKIP_CLIENT_SAN_VERIFICATION" if given else "ETCD_EXPERIMENTAL_PEER_SKIP_CLIENT_SAN_VERIFICATION"
    return EnvVar(name=name, value="true")


def volumes(cluster: EtcdCluster) -> list[Volume]:
    """Returns the volumes of the TLS Secrets."""
    names = secret_names(cluster)
    wanted = (("peer-tls", names.peer), ("server-tls", names.server))
    return [Volume(name=name, secret=SecretVolumeSource(secret_name=secret)) for name, secret in wanted if secret]


def mounts(cluster: EtcdCluster) -> list[VolumeMount]:
    """Returns the read-only mounts of these volumes."""
    names = secret_names(cluster)
    wanted = (("peer-tls", names.peer, _PEER_FOLDER), ("server-tls", names.server, SERVER_FOLDER))
    return [VolumeMount(name=name, mount_path=path, read_only=True) for name, secret, path in wanted if secret]
