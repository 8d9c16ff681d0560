"""The pod that mounts a claim, and the Secret with its certificate."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from typing import Final

from etcd_operator.destinations import PvcSource
from etcd_operator.kinds import PodPolicy
from etcd_operator.manifests import SERVER, TLS_FOLDER, program, unprivileged
from etcd_operator.tls import EtcdCredentials
from etcd_operator.tls.authority import client_subject, member_subject
from navarch.api import Object, OwnerReference, Quantity
from navarch.certificates import CertificateAuthority
from navarch.k8s.core.v1 import (
    Capabilities,
    Container,
    EnvVar,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimVolumeSource,
    Pod,
    PodSpec,
    ResourceRequirements,
    Secret,
    SecretVolumeSource,
    SecurityContext,
    Volume,
    VolumeMount,
    VolumeResourceRequirements,
)

LABELS: Final = {"app": "etcd", "etcd_store": "claim"}
_HOST: Final = "claim.etcd-operator.invalid"
_CLOCKS: Final = timedelta(hours=1)
_CLAIM_PATH: Final = "/claim"
_TLS_PATH: Final = "/etc/etcd-operator/tls"
_GRACE: Final = 2


def keys_for(now: datetime, seconds: float) -> tuple[dict[str, bytes], EtcdCredentials]:
    """Returns the certificate files of a pod that lives for so long, and the operator's credentials for it."""
    valid = timedelta(seconds=seconds) + _CLOCKS
    authority = CertificateAuthority.create("etcd-operator-claim", now, valid)
    server = authority.issue(member_subject("claim", (_HOST,)), now, valid)
    client = authority.issue(client_subject("etcd-operator"), now, valid)
    trusted = authority.pair.certificate
    files = {SERVER.authorities: trusted, SERVER.certificate: server.certificate, SERVER.key: server.key}
    return files, EtcdCredentials(client=client, trusted=trusted, server_name=_HOST)


def claim_pod(owner: Object, source: PvcSource, image: str, policy: PodPolicy, *, secret: str, seconds: float) -> Pod:
    """Returns the pod; it is deleted with its owner, and ends after so many seconds."""
    made = Pod(
        name=_pod_name(owner),
        labels=LABELS,
        annotations=policy.annotations,
        spec=PodSpec(
            containers=[_file_server_container(image)],
            volumes=_volumes(source, secret),
            restart_policy="Never",
            active_deadline_seconds=int(seconds),
            termination_grace_period_seconds=_GRACE,
            automount_service_account_token=False,
            enable_service_links=False,
            node_selector=policy.node_selector or None,
            tolerations=policy.tolerations or None,
            security_context=policy.security_context or unprivileged(),
            priority_class_name=policy.priority_class_name or None,
        ),
    )
    made.metadata.owner_references = [_owned_by(owner)]
    return made


def _pod_name(owner: Object) -> str:
    """Returns one name per backup or restore, so that it never has two pods."""
    return f"{owner.name[:40].rstrip('-.')}-claim-{(owner.metadata.uid or '')[:8]}"


def _owned_by(owner: Object) -> OwnerReference:
    return OwnerReference(api_version=owner.api_version, kind=owner.kind, name=owner.name, uid=owner.metadata.uid or "")


def _file_server_container(image: str) -> Container:
    made = program("keep", image, _CLAIM_PATH)
    made.env = [*(made.env or []), EnvVar(name=TLS_FOLDER, value=_TLS_PATH)]
    made.volume_mounts = [
        VolumeMount(name="claim", mount_path=_CLAIM_PATH),
        VolumeMount(name="tls", mount_path=_TLS_PATH, read_only=True),
    ]
    made.resources = ResourceRequirements(
        requests={"cpu": Quantity("10m"), "memory": Quantity("32Mi")}, limits={"memory": Quantity("256Mi")}
    )
    made.security_context = SecurityContext(
        allow_privilege_escalation=False, read_only_root_filesystem=True, capabilities=Capabilities(drop=["ALL"])
    )
    made.termination_message_policy = "FallbackToLogsOnError"
    return made


def _volumes(source: PvcSource, secret: str) -> list[Volume]:
    mounted = PersistentVolumeClaimVolumeSource(claim_name=source.claim_name)
    return [
        Volume(name="claim", persistent_volume_claim=mounted),
        Volume(name="tls", secret=SecretVolumeSource(secret_name=secret)),
    ]


def secret_name(owner: Object, files: dict[str, bytes]) -> str:
    """Returns a new name for each pod, because the Secret of the previous pod is deleted a moment later."""
    return f"{_pod_name(owner)}-{hashlib.sha256(files[SERVER.certificate]).hexdigest()[:8]}"


def secret_of(pod: Pod, name: str, files: dict[str, bytes]) -> Secret:
    """Returns the Secret; it is deleted with its pod."""
    made = Secret(name=name, labels=LABELS, data=files)
    made.metadata.owner_references = [_owned_by(pod)]
    return made


def new_claim(source: PvcSource, size: Quantity) -> PersistentVolumeClaim:
    """Returns a claim without an owner: it stays when the backup is deleted."""
    return PersistentVolumeClaim(
        name=source.claim_name,
        labels={"app.kubernetes.io/managed-by": "etcd-operator"},
        spec=PersistentVolumeClaimSpec(
            access_modes=["ReadWriteOnce"],
            resources=VolumeResourceRequirements(requests={"storage": size}),
            storage_class_name=source.class_name or None,
        ),
    )
