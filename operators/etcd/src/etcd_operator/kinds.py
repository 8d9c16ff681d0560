"""`EtcdCluster`: all fields of CoreOS' operator, and more."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, Literal

from etcd_operator.destinations import ONE_DESTINATION, BackupDestination, ClusterBackup
from navarch import Column, Immutable, ListMap, Meta, Model, Quantity, Resource, Rule, Scale, Spec, Status, field
from navarch.k8s.core.v1 import (
    Affinity,
    EnvVar,
    PersistentVolumeClaimSpec,
    PodSecurityContext,
    ResourceRequirements,
    Toleration,
)

GROUP: Final = "etcd.database.coreos.com"
IpFamily = Literal["", "IPv4", "IPv6"]
NEWEST: Final = "3.6.8"
_MINOR: Final = "int({}.replace('v', '').split('.')[1])"
_CLAIMS: Final = "has({0}.storage) || (has({0}.pod) && has({0}.pod.persistentVolumeClaimSpec))"
_MAJOR: Final = "int({}.replace('v', '').split('.')[0])"


class PodPolicy(Model):
    """The policy of the members' pods."""

    labels: dict[str, str] = {}
    """Labels of pods; the operator sets `app` and those that begin with `etcd_`."""
    annotations: dict[str, str] = {}
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    """Replaces the default, which prefers one node per member."""
    anti_affinity: bool = False
    """Requires one node per member."""
    resources: ResourceRequirements | None = None
    tolerations: Annotated[list[Toleration], Meta(max_length=64)] = []
    etcd_env: Annotated[list[EnvVar], ListMap("name"), Meta(max_length=64)] = []
    """Variables for etcd; the operator's flags take precedence."""
    persistent_volume_claim_spec: PersistentVolumeClaimSpec | None = None
    """The claim of each member, as in CoreOS' API; `storage` is shorter."""
    security_context: PodSecurityContext | None = None
    """Replaces the default, which runs without root."""
    priority_class_name: str = ""
    busybox_image: str = ""
    """Accepted and ignored: no init container waits for DNS."""
    dns_timeout_in_second: int = field(name="DNSTimeoutInSecond", default=0)
    """Accepted and ignored."""
    cluster_domain: str = field(name="ClusterDomain", default="")
    """Appended to the host names of members, such as `.cluster.local`."""


class MemberStorage(Model):
    """A claim for each member. It lives as long as the member, so a recreated pod finds its data."""

    size: Quantity
    """May grow, and not shrink."""
    class_name: Annotated[str, Immutable()] = ""
    """The storage class; the default class if empty."""


class EtcdSettings(Model):
    """etcd's settings; unset ones have etcd's defaults."""

    quota_backend_bytes: Annotated[int, Meta(ge=0)] | None = None
    auto_compaction_mode: Literal["periodic", "revision"] | None = None
    auto_compaction_retention: Annotated[str, Meta(pattern="^[0-9]+[hms]?$")] | None = None
    heartbeat_interval: Annotated[int, Meta(ge=10)] | None = None
    """In milliseconds."""
    election_timeout: Annotated[int, Meta(ge=50, le=50000)] | None = None
    """In milliseconds; at least five times the heartbeat interval."""
    snapshot_count: Annotated[int, Meta(ge=1)] | None = None
    max_request_bytes: Annotated[int, Meta(ge=1)] | None = None


class Healing(Model):
    """How the operator repairs a cluster."""

    replace_after_seconds: Annotated[int, Meta(ge=10)] = 300
    """A member that has not answered for so long is replaced, if the others have a quorum."""
    replace_lost_after_seconds: Annotated[int, Meta(ge=0)] = 60
    """The same if its node is deleted or unreachable, or no node can mount its volume."""
    compare_every_seconds: Annotated[int, Meta(ge=0)] = 600
    """The interval of comparing the members' data. A member that differs from the majority is replaced. 0 disables it."""
    force_new_cluster: bool = False
    """If the quorum is lost for good, continue with the member that has the newest data. Writes that only the others had
    are lost: at most those of the last moments.
    """
    restore_from_backup: bool = False
    """If the quorum is lost for good, and the cluster does not continue with a survivor, restore the newest backup. Later
    writes are lost.
    """


class MemberTls(Model):
    """Secrets of members."""

    peer_secret: str = ""
    """A Secret with `peer-ca.crt`, `peer.crt` and `peer.key`, for TLS between members."""
    server_secret: str = ""
    """A Secret with `server-ca.crt`, `server.crt` and `server.key`, for clients. It needs `operatorSecret`."""


class StaticTls(
    Model,
    rules=(
        Rule(
            "(has(self.member) && has(self.member.serverSecret) && self.member.serverSecret != '') == "
            "(has(self.operatorSecret) && self.operatorSecret != '')",
            message="expected member.serverSecret and operatorSecret together: the operator is a client too",
        ),
        Rule(
            "(has(self.member) && has(self.member.peerSecret) && self.member.peerSecret != '') || "
            "(has(self.operatorSecret) && self.operatorSecret != '')",
            message="expected member.peerSecret, or member.serverSecret and operatorSecret, or all three",
        ),
    ),
):
    """Existing Secrets in the namespace of the cluster."""

    member: MemberTls | None = None
    operator_secret: str = ""
    """A Secret with `etcd-client-ca.crt`, `etcd-client.crt` and `etcd-client.key`: the operator's client certificate."""


class IssuedTls(Model):
    """The operator creates certificate authorities, and issues and renews certificates."""

    valid_for_days: Annotated[int, Meta(ge=1, le=3650)] = 365
    """The validity of a certificate; it is renewed when a third of that is left."""


class TlsPolicy(
    Model,
    rules=(
        Rule("has(self.static) != has(self.issued)", message="expected either static or issued"),
        Rule(
            "has(self.static) == has(oldSelf.static)",
            message="certificates come from where they came from: members would not trust each other in between",
        ),
        Rule(
            "!has(self.static) || !has(oldSelf.static) || ((has(self.static.operatorSecret) && "
            "self.static.operatorSecret != '') == (has(oldSelf.static.operatorSecret) && "
            "oldSelf.static.operatorSecret != ''))",
            message="TLS for clients is chosen when TLS is turned on, and stays as it is",
        ),
        Rule(
            "!has(self.static) || !has(oldSelf.static) || ((has(self.static.member) && "
            "has(self.static.member.peerSecret) && self.static.member.peerSecret != '') == (has(oldSelf.static.member) && "
            "has(oldSelf.static.member.peerSecret) && oldSelf.static.member.peerSecret != ''))",
            message="TLS between members is chosen when TLS is turned on, and stays as it is",
        ),
    ),
):
    """The source of certificates."""

    static: StaticTls | None = None
    issued: IssuedTls | None = None
    plain_clients: bool = False
    """Serves clients without TLS too, while they are being changed."""


class AuthPolicy(Model):
    """etcd's authentication: every client needs a password, and `root` may do everything."""

    root_secret: str = ""
    """A Secret with the `password` of root; if empty, the operator creates `<cluster>-root`."""


class RestoreSource(BackupDestination, rules=(ONE_DESTINATION,)):
    """The snapshot that a new cluster starts from."""


class EtcdClusterSpec(
    Spec,
    rules=(
        Rule(
            f"self.size > 0 || {_CLAIMS.format('self')}",
            message="size 0 keeps data in claims, and there are none: set storage, or delete the cluster",
        ),
        Rule(
            f"({_CLAIMS.format('self')}) == ({_CLAIMS.format('oldSelf')})",
            message="claims cannot be given to a cluster, or taken from it: members would lose their data",
        ),
        Rule(
            "!has(oldSelf.TLS) || has(self.TLS)", message="TLS cannot be turned off: clients would go on in plain text"
        ),
        Rule(
            "!has(oldSelf.auth) || has(self.auth)",
            message="auth cannot be turned off: whoever has no password would be let in",
        ),
    ),
):
    size: Annotated[int, Meta(ge=0, le=9), Column("Size", priority=0)] = 3
    """The number of members; prefer odd numbers. 0 stops the cluster and keeps its data."""
    repository: str = "quay.io/coreos/etcd"
    """The image repository; the tag is the version with a `v`."""
    version: Annotated[str, Meta(pattern=r"^v?[0-9]+\.[0-9]+\.[0-9]+([-.+][0-9A-Za-z.+-]+)?$", max_length=32)] = NEWEST
    """The version of etcd; it goes up, by one minor version at a time."""
    paused: bool = False
    """The operator updates only the status."""
    pod: PodPolicy | None = None
    tls: TlsPolicy | None = field(name="TLS", default=None)
    """Can be enabled at any time, and not disabled again."""
    auth: AuthPolicy | None = None
    """Can be enabled at any time, and not disabled again."""
    storage: MemberStorage | None = None
    """Without it, members use emptyDir volumes: a deleted pod loses its data."""
    options: EtcdSettings | None = None
    healing: Healing = Healing()
    learners: bool = True
    """New members join as learners; false: as voters."""
    backup: ClusterBackup | None = None
    """The destination of snapshots before upgrades and on a schedule."""
    restore_from: RestoreSource | None = None
    """A new cluster starts from this snapshot. It has no effect on a running one."""


class MembersStatus(Model):
    """The names of members."""

    ready: list[str] = []
    unready: list[str] = []
    joining: list[str] = []
    """Unready members that have not started or are learners."""


class EtcdClusterStatus(Status):
    phase: Annotated[Literal["", "Creating", "Running", "Failed"], Column("Phase")] = ""
    reason: str = ""
    """Why the phase is Failed."""
    control_paused: bool = False
    size: int = 0
    """The number of members, learners included."""
    ready: Annotated[str, Column("Ready")] = ""
    """The number of serving members, and spec.size."""
    service_name: str = ""
    client_port: int = 0
    members: MembersStatus = MembersStatus()
    current_version: Annotated[str, Column("Version")] = ""
    """The lowest version that a member runs."""
    target_version: str = ""
    """The version of a running upgrade."""
    failed_version: str = ""
    """A version whose roll-out failed; it is retried when the spec changes."""
    failed_generation: int = 0
    """The generation of the spec at that failure."""
    cluster_id: str = field(name="clusterID", default="")
    """etcd's cluster id. Set once the cluster has formed; from then on no member starts as a new cluster."""
    secured: bool = False
    """True if all peer URLs use TLS. From then on no member starts in plain text."""
    authorities: str = ""
    """A fingerprint of the trusted authorities; pods with another one are recreated."""
    compared_at: datetime | None = None
    """When the members' data was last compared and equal."""
    snapshot_before_upgrade: str = ""
    """The snapshot before the last upgrade, or why there is none."""
    ip_family: IpFamily = ""
    """The IP family of the members' addresses, from the first pod or Service."""
    leader: str = ""
    selector: str = ""
    next_step: str = ""
    """The current step or wait, and its reason."""


class EtcdCluster(
    Resource[EtcdClusterSpec, EtcdClusterStatus],
    group=GROUP,
    version="v1beta2",
    short_names=("etcd",),
    scale=Scale(spec_replicas=".spec.size", status_replicas=".status.size", selector=".status.selector"),
    rules=(
        Rule("self.metadata.name.size() <= 52", message="a name has at most 52 characters: those of pods are longer"),
        Rule(
            "!has(self.status) || !has(self.status.currentVersion) || self.status.currentVersion == '' || "
            f"({_MAJOR.format('self.spec.version')} == {_MAJOR.format('self.status.currentVersion')} && "
            f"{_MINOR.format('self.spec.version')} >= {_MINOR.format('self.status.currentVersion')} && "
            f"{_MINOR.format('self.spec.version')} <= {_MINOR.format('self.status.currentVersion')} + 1)",
            message="the version goes up by one minor version at a time, and never down",
        ),
    ),
):
    """An etcd cluster."""
