"""The pods of members, and containers that run `pod_program`."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final, Literal

from etcd_operator.kinds import GROUP, EtcdCluster, PodPolicy
from etcd_operator.manifests import listeners
from etcd_operator.manifests.names import (
    CLIENT_PORT,
    METRICS_PORT,
    PEER_PORT,
    SECURE_PEER_PORT,
    labels_of,
    own_address,
    peer_url,
    secret_names,
)
from etcd_operator.manifests.resources import keeps_data
from etcd_operator.versions import EtcdVersion
from navarch.api import encode
from navarch.k8s.core.v1 import (
    Affinity,
    Container,
    ContainerPort,
    EmptyDirVolumeSource,
    EnvVar,
    EnvVarSource,
    HTTPGetAction,
    ObjectFieldSelector,
    PersistentVolumeClaimVolumeSource,
    Pod,
    PodAffinityTerm,
    PodAntiAffinity,
    PodSecurityContext,
    PodSpec,
    Probe,
    SeccompProfile,
    Volume,
    VolumeMount,
    WeightedPodAffinityTerm,
)
from navarch.k8s.meta.v1 import LabelSelector

PROGRAM_PORT: Final = 2378
PYTHON_IMAGE: Final = "python:3.12-slim"
TLS_FOLDER: Final = "TLS_FOLDER"
"""The variable with the folder of the certificate; without it the program serves plain HTTP."""


def program(doing: str, image: str, root: str) -> Container:
    """Returns a container that runs one command of `pod_program` on the files below `root`."""
    text = files("etcd_operator").joinpath("pod_program.py").read_text()
    address = EnvVarSource(field_ref=ObjectFieldSelector(field_path="status.podIP"))
    return Container(
        name=doing,
        image=image,
        command=["/usr/local/bin/python3", "-c", text, doing],
        env=[
            EnvVar(name="POD_IP", value_from=address),
            EnvVar(name="PORT", value=str(PROGRAM_PORT)),
            EnvVar(name="ROOT", value=root),
        ],
    )


CLUSTER: Final = f"{GROUP}/initial-cluster"
STATE: Final = f"{GROUP}/initial-cluster-state"
FORCE: Final = f"{GROUP}/force-new-cluster"
TEMPLATE: Final = f"{GROUP}/template"
VERSION: Final = "etcd.version"
_NOBODY: Final = 65532
_DATA: Final = "/var/etcd/data"


@dataclass(frozen=True, slots=True)
class MemberStart:
    """How a member's etcd starts.

    `seed` creates a new cluster; `join` joins the cluster of `peers`. `return` starts with existing data and fails
    without it, because a member that forgot its votes could break consensus. `survivor` forces a new cluster from its
    data.
    """

    how: Literal["seed", "join", "return", "survivor"]
    peers: tuple[tuple[str, str], ...] = ()

    def annotations(self, name: str, url: str) -> dict[str, str]:
        """Returns the annotations that etcd reads, through the downward API, each time it starts."""
        peers = dict(self.peers) if self.how == "join" else {name: url}
        return {
            STATE: "new" if self.how == "seed" else "existing",
            CLUSTER: ",".join(f"{peer}={peers[peer]}" for peer in sorted(peers)),
            FORCE: "true" if self.how == "survivor" else "false",
        }


RETURN: Final = MemberStart("return")


def settle_patch(name: str, url: str) -> dict[str, Any]:
    """Returns the patch of a pod whose member has started: from then on etcd needs its data to start."""
    return {"metadata": {"annotations": RETURN.annotations(name, url)}}


def template_of(cluster: EtcdCluster) -> str:
    """Returns a hash that changes exactly when the pods have to be recreated."""
    return hashlib.sha256(encode(_pod(cluster, "", {}))).hexdigest()[:16]


def member_pod(cluster: EtcdCluster, name: str, start: MemberStart, *, version: str) -> Pod:
    """Returns the pod of one member, with that version of etcd."""
    made = cluster.copy()
    made.spec.version = version
    notes = start.annotations(name, peer_url(cluster, name))
    return _pod(made, name, {**notes, TEMPLATE: template_of(made)})


def _pod(cluster: EtcdCluster, name: str, annotations: dict[str, str]) -> Pod:
    policy = cluster.spec.pod or PodPolicy()
    labels = labels_of(cluster)
    version = cluster.spec.version.removeprefix("v")
    return Pod(
        name=name,
        labels={**policy.labels, **labels, "etcd_node": name},
        annotations={**policy.annotations, VERSION: version, **listeners.notes(cluster), **annotations},
        spec=PodSpec(
            containers=[_etcd(cluster, policy, name, version)],
            volumes=[_volume(cluster, name), *listeners.volumes(cluster)],
            hostname=name or None,
            subdomain=cluster.name,
            restart_policy="Always",
            automount_service_account_token=False,
            enable_service_links=False,
            termination_grace_period_seconds=10,
            affinity=policy.affinity or _apart(labels, always=policy.anti_affinity),
            node_selector=policy.node_selector or None,
            tolerations=policy.tolerations or None,
            security_context=policy.security_context or unprivileged(),
            priority_class_name=policy.priority_class_name or None,
        ),
    )


def _etcd(cluster: EtcdCluster, policy: PodPolicy, name: str, version: str) -> Container:
    own_port = EtcdVersion.of(version).has_metrics_port
    asked = METRICS_PORT if own_port else CLIENT_PORT
    return Container(
        name="etcd",
        image=f"{cluster.spec.repository}:v{version}",
        command=["/usr/local/bin/etcd", *_flags(cluster, name)],
        env=[*_environment(cluster), *listeners.environment(cluster, name), *policy.etcd_env],
        ports=[
            ContainerPort(name="client", container_port=CLIENT_PORT),
            ContainerPort(name="peer", container_port=PEER_PORT),
            *([ContainerPort(name="peer-tls", container_port=SECURE_PEER_PORT)] if secret_names(cluster).peer else []),
            *([ContainerPort(name="metrics", container_port=METRICS_PORT)] if own_port else []),
        ],
        volume_mounts=[VolumeMount(name="etcd-data", mount_path="/var/etcd"), *listeners.mounts(cluster)],
        resources=policy.resources,
        readiness_probe=_asks("/health", asked, seconds=2, failures=3),
        liveness_probe=_asks("/metrics", asked, seconds=10, failures=6),
        termination_message_policy="FallbackToLogsOnError",
    )


def _flags(cluster: EtcdCluster, name: str) -> list[str]:
    return [
        f"--name={name}",
        f"--data-dir={_DATA}",
        *listeners.flags(cluster, name),
        *_metrics(cluster),
        *_settings(cluster),
    ]


def _metrics(cluster: EtcdCluster) -> list[str]:
    own_port = EtcdVersion.of(cluster.spec.version).has_metrics_port
    return [f"--listen-metrics-urls=http://{own_address(cluster)}:{METRICS_PORT}"] if own_port else []


def _settings(cluster: EtcdCluster) -> list[str]:
    options = cluster.spec.options
    if options is None:
        return []
    given = {
        "quota-backend-bytes": options.quota_backend_bytes,
        "auto-compaction-mode": options.auto_compaction_mode,
        "auto-compaction-retention": options.auto_compaction_retention,
        "heartbeat-interval": options.heartbeat_interval,
        "election-timeout": options.election_timeout,
        "snapshot-count": options.snapshot_count,
        "max-request-bytes": options.max_request_bytes,
    }
    return [f"--{flag}={value}" for flag, value in given.items() if value is not None]


def _environment(cluster: EtcdCluster) -> list[EnvVar]:
    """Returns the variables; etcd reads the flags of its start from annotations, which change after the first start."""
    return [
        EnvVar(name="POD_IP", value_from=_field("status.podIP")),
        EnvVar(name="ETCD_INITIAL_CLUSTER", value_from=_field(f"metadata.annotations['{CLUSTER}']")),
        EnvVar(name="ETCD_INITIAL_CLUSTER_STATE", value_from=_field(f"metadata.annotations['{STATE}']")),
        EnvVar(name="ETCD_FORCE_NEW_CLUSTER", value_from=_field(f"metadata.annotations['{FORCE}']")),
        EnvVar(name="ETCD_INITIAL_CLUSTER_TOKEN", value=cluster.metadata.uid or cluster.name),
    ]


def _field(path: str) -> EnvVarSource:
    return EnvVarSource(field_ref=ObjectFieldSelector(field_path=path))


def _asks(path: str, port: int, *, seconds: int, failures: int) -> Probe:
    """Returns a probe; liveness must not depend on a quorum, or waiting members would be killed."""
    return Probe(
        http_get=HTTPGetAction(path=path, port=port),
        period_seconds=seconds,
        timeout_seconds=5,
        failure_threshold=failures,
    )


def _volume(cluster: EtcdCluster, name: str) -> Volume:
    if keeps_data(cluster):
        source = PersistentVolumeClaimVolumeSource(claim_name=name)
        return Volume(name="etcd-data", persistent_volume_claim=source)
    return Volume(name="etcd-data", empty_dir=EmptyDirVolumeSource())


def _apart(labels: dict[str, str], *, always: bool) -> Affinity:
    term = PodAffinityTerm(topology_key="kubernetes.io/hostname", label_selector=LabelSelector(match_labels=labels))
    if always:
        return Affinity(pod_anti_affinity=PodAntiAffinity(required_during_scheduling_ignored_during_execution=[term]))
    preferred = WeightedPodAffinityTerm(weight=100, pod_affinity_term=term)
    return Affinity(pod_anti_affinity=PodAntiAffinity(preferred_during_scheduling_ignored_during_execution=[preferred]))


def unprivileged() -> PodSecurityContext:
    """Returns a security context without root, whose group owns the pod's volumes."""
    return PodSecurityContext(
        run_as_non_root=True,
        run_as_user=_NOBODY,
        run_as_group=_NOBODY,
        fs_group=_NOBODY,
        seccomp_profile=SeccompProfile(type="RuntimeDefault"),
    )
