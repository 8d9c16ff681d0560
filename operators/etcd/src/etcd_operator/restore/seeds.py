"""The pod of the first member of a cluster that begins with a snapshot."""

from __future__ import annotations

from typing import Final

from etcd_operator.kinds import GROUP, EtcdCluster
from etcd_operator.manifests import TLS_FOLDER, Start, peer_url, pod, program, secret_names, wiring
from etcd_operator.planning.rolling import wanted_version
from etcd_operator.restore.kinds import EtcdRestore
from etcd_operator.versions import Version
from navarch.k8s.core.v1 import Container, EnvVar, Pod, VolumeMount

__all__ = ["RESTORE", "seed"]

RESTORE: Final = f"{GROUP}/restore"
_INCOMING: Final = "/var/etcd/incoming"
_DATA_TOOL: Final = Version.of("3.5.0")


def seed(cluster: EtcdCluster, restore: EtcdRestore, image: str) -> Pod:
    """As any first member's, but for what comes before etcd: take the snapshot, make data of it, put that in place."""
    name, wanted = restore.status.seed, wanted_version(cluster)
    made = pod(cluster, name, Start("seed"), version=wanted)
    made.metadata.annotations = {**made.annotations, RESTORE: restore.metadata.uid or ""}
    made.spec.init_containers = [
        _receiving(cluster, restore, image),
        _making(cluster, restore, wanted),
        _own("install", restore, image),
    ]
    return made


def _receiving(cluster: EtcdCluster, restore: EtcdRestore, image: str) -> Container:
    """With TLS, if members serve clients with it."""
    made = _own("receive", restore, image)
    if secret_names(cluster).server:
        made.env = [*(made.env or []), EnvVar(name=TLS_FOLDER, value=wiring.SERVER_FOLDER)]
        made.volume_mounts = [*(made.volume_mounts or []), *wiring.mounts(cluster)]
    return made


def _own(doing: str, restore: EtcdRestore, image: str) -> Container:
    made = program(doing, image, "/var/etcd")
    made.env = [
        *(made.env or []),
        EnvVar(name="RESTORE_SHA256", value=restore.status.sha256),
        EnvVar(name="RESTORE_ID", value=restore.metadata.uid),
    ]
    made.volume_mounts = [_mount()]
    return made


def _making(cluster: EtcdCluster, restore: EtcdRestore, wanted: str) -> Container:
    """With the tool of the very version that is going to run on it. The restore's own token makes it another cluster than
    the one before: whoever is left of that, on a node that nobody reaches, is not taken for a member.
    """
    name, version = restore.status.seed, wanted.removeprefix("v")
    tool = "etcdutl" if Version.of(version) >= _DATA_TOOL else "etcdctl"
    url = peer_url(cluster, name)
    return Container(
        name="make-data",
        image=f"{cluster.spec.repository}:v{version}",
        command=[
            f"/usr/local/bin/{tool}",
            "snapshot",
            "restore",
            f"{_INCOMING}/snapshot.db",
            f"--data-dir={_INCOMING}/data",
            f"--name={name}",
            f"--initial-cluster={name}={url}",
            f"--initial-advertise-peer-urls={url}",
            f"--initial-cluster-token={restore.metadata.uid or restore.name}",
            *_raising(restore, version),
        ],
        env=[EnvVar(name="ETCDCTL_API", value="3")],
        volume_mounts=[_mount()],
    )


def _raising(restore: EtcdRestore, version: str) -> list[str]:
    """Whoever watched the cluster before, or remembers what it had, is told to list anew, instead of waiting for revisions
    that come a second time.
    """
    if not Version.of(version).raises_revisions:
        return []
    return [f"--bump-revision={restore.status.next_revision - restore.status.etcd_revision}", "--mark-compacted"]


def _mount() -> VolumeMount:
    return VolumeMount(name="etcd-data", mount_path="/var/etcd")
