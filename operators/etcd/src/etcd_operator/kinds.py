"""`EtcdCluster`: every field that CoreOS' operator had, and what users have asked for since."""

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
    """How the pods of members look."""

    labels: dict[str, str] = {}
    """Labels of pods; `app` and those that begin with `etcd_` are the operator's."""
    annotations: dict[str, str] = {}
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    """In place of the usual one, which asks for a node per member where there are enough."""
    anti_affinity: bool = False
    """Never two members on one node."""
    resources: ResourceRequirements | None = None
    tolerations: Annotated[list[Toleration], Meta(max_length=64)] = []
    etcd_env: Annotated[list[EnvVar], ListMap("name"), Meta(max_length=64)] = []
    """Variables for etcd; flags that the operator sets come before them."""
    persistent_volume_claim_spec: PersistentVolumeClaimSpec | None = None
    """The claim of each member, in CoreOS' way; `storage` says the same shorter."""
    security_context: PodSecurityContext | None = None
    """In place of the usual one, in which nobody is root."""
    priority_class_name: str = ""
    busybox_image: str = ""
    """Taken, and not needed: nothing waits for names any more."""
    dns_timeout_in_second: int = field(name="DNSTimeoutInSecond", default=0)
    """Taken, and not needed."""
    cluster_domain: str = field(name="ClusterDomain", default="")
    """Comes behind the names of members, such as `.cluster.local`."""


class MemberStorage(Model):
    """A claim for each member. It is kept while the member is: a pod that comes back finds its data."""

    size: Quantity
    """May grow."""
    class_name: Annotated[str, Immutable()] = ""
    """The default class if there is none."""


class EtcdSettings(Model):
    """etcd's own settings; unset ones are etcd's."""

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
    """What may be done where something is broken."""

    replace_after_seconds: Annotated[int, Meta(ge=10)] = 300
    """A member that is silent for so long is replaced by a new one, if the others have a quorum."""
    replace_lost_after_seconds: Annotated[int, Meta(ge=0)] = 60
    """The same if its node is gone or cannot be reached, or has the volume that nobody else has."""
    compare_every_seconds: Annotated[int, Meta(ge=0)] = 600
    """So often members are asked for a hash of all their data. One that differs from most is replaced. 0: never."""
    force_new_cluster: bool = False
    """If most members have lost their data for good, go on from the one that is left and knows most. What only the
    others knew is lost: at most what was written in the last moments before.
    """
    restore_from_backup: bool = False
    """If most members have lost their data for good, and none may or can be gone on from, go back to the newest backup
    that counts. What was written after it is lost.
    """


class MemberTls(Model):
    """Secrets of members."""

    peer_secret: str = ""
    """`peer-ca.crt`, `peer.crt` and `peer.key`: between members."""
    server_secret: str = ""
    """`server-ca.crt`, `server.crt` and `server.key`: for clients. It needs `operatorSecret` beside it."""


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
    """Secrets that somebody else made, in the namespace of the cluster."""

    member: MemberTls | None = None
    operator_secret: str = ""
    """`etcd-client-ca.crt`, `etcd-client.crt` and `etcd-client.key`: who the operator is to members."""


class IssuedTls(Model):
    """The operator makes authorities of its own, issues certificates, and renews them in good time."""

    valid_for_days: Annotated[int, Meta(ge=1, le=3650)] = 365
    """Of a certificate. It is renewed when a third of that is left."""


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
    """Where certificates come from."""

    static: StaticTls | None = None
    issued: IssuedTls | None = None
    plain_clients: bool = False
    """Clients without TLS are served too, for as long as it takes to change them all."""


class AuthPolicy(Model):
    """etcd's own users. Nobody may do anything without a password, and `root` may do everything."""

    root_secret: str = ""
    """A Secret with the `password` of root. Without a name the operator makes one, `<cluster>-root`."""


class RestoreSource(BackupDestination, rules=(ONE_DESTINATION,)):
    """A snapshot that a new cluster begins with."""


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
    """How many members; odd numbers survive more than the even ones below them. 0 stops the cluster and keeps its data."""
    repository: str = "quay.io/coreos/etcd"
    """Where images are; the tag is the version with a `v`."""
    version: Annotated[str, Meta(pattern=r"^v?[0-9]+\.[0-9]+\.[0-9]+([-.+][0-9A-Za-z.+-]+)?$", max_length=32)] = NEWEST
    """A version goes up, by one minor version at a time."""
    paused: bool = False
    """The operator looks on, and does nothing."""
    pod: PodPolicy | None = None
    tls: TlsPolicy | None = field(name="TLS", default=None)
    """May be turned on at any time, and not off again."""
    auth: AuthPolicy | None = None
    """As TLS."""
    storage: MemberStorage | None = None
    """Without it, members live on what their pods have, as CoreOS' did: a pod that is deleted takes its data with it."""
    options: EtcdSettings | None = None
    healing: Healing = Healing()
    learners: bool = True
    """New members learn before they vote; false: they vote at once, as CoreOS' did."""
    backup: ClusterBackup | None = None
    """Where snapshots are put before upgrades, and by schedule."""
    restore_from: RestoreSource | None = None
    """A new cluster begins with this snapshot. It means nothing to one that has begun."""


class MembersStatus(Model):
    """Names of members."""

    ready: list[str] = []
    unready: list[str] = []
    joining: list[str] = []
    """Those of the unready that have not started, or do not vote, yet."""


class EtcdClusterStatus(Status):
    phase: Annotated[Literal["", "Creating", "Running", "Failed"], Column("Phase")] = ""
    reason: str = ""
    """Why, if the phase is Failed."""
    control_paused: bool = False
    size: int = 0
    """How many members etcd has, learners included."""
    ready: Annotated[str, Column("Ready")] = ""
    """How many of them serve, of how many that are asked for."""
    service_name: str = ""
    client_port: int = 0
    members: MembersStatus = MembersStatus()
    current_version: Annotated[str, Column("Version")] = ""
    """The lowest that runs."""
    target_version: str = ""
    """What it is on its way to, if it is."""
    failed_version: str = ""
    """A version whose roll-out was taken back; it is tried again when the spec changes."""
    failed_generation: int = 0
    """The spec with which that was."""
    cluster_id: str = field(name="clusterID", default="")
    """etcd's own name of the cluster. Set once it has formed; from then on nothing is ever started from nothing."""
    secured: bool = False
    """All members reach each other with TLS, if that is asked for. From then on nothing is ever started in plain text."""
    authorities: str = ""
    """A fingerprint of whom members trust: pods that were started with others are started anew."""
    compared_at: datetime | None = None
    """When the data of members was last compared, and no difference found."""
    snapshot_before_upgrade: str = ""
    """The one that was taken before the version was last changed, or why there is none."""
    ip_family: IpFamily = ""
    """Of the addresses that members listen at; known from the first pod, or from the service before there is one."""
    leader: str = ""
    selector: str = ""
    next_step: str = ""
    """What is being done, or awaited, and why."""


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
    """A cluster of etcd."""
