"""The command lines of the control plane: pure functions from a plan to arguments."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rig import programs
from rig.certificates import Pair
from rig.traces import Network

LOOPBACK = "127.0.0.1"
SERVICE_RANGE = "10.0.0.0/24"
"""Of a cluster without a node, where nothing answers at a service's address. One with a node has a range of its own."""
UNROUTED = "203.0.113.1"
"""What the API server advertises when there are no pods to reach it: an address for documentation (RFC 5737).
It refuses a loopback address there, and without the flag it would take the address of some network card."""


@dataclass(frozen=True)
class Ports:
    """The ports of one cluster, all on loopback but the API server's if there is a node."""

    etcd: int
    etcd_peer: int
    apiserver: int
    controller_manager: int
    scheduler: int


@dataclass(frozen=True)
class Plan:
    """Everything the command lines are made from."""

    folder: Path
    ports: Ports
    ca: Pair
    serving: Pair
    kubelet_client: Pair
    service_account_key: Path
    tokens: Path
    kubeconfig: Path
    network: Network | None = None
    """The network that this machine shares with the node, if there is one."""

    @property
    def address(self) -> str:
        """Where the API server listens: where pods reach it, if there are any."""
        return self.network.machine if self.network else LOOPBACK

    @property
    def url(self) -> str:
        """The API server's address."""
        return f"https://{self.address}:{self.ports.apiserver}"

    @property
    def etcd_url(self) -> str:
        """The address of etcd's client port."""
        return f"http://{LOOPBACK}:{self.ports.etcd}"


def etcd(plan: Plan, program: Path) -> list[str]:
    """Return etcd's command line: one member, no fsync, since the data is thrown away."""
    peer = f"http://{LOOPBACK}:{plan.ports.etcd_peer}"
    return [
        str(program),
        "--name=rig",
        f"--data-dir={plan.folder / 'etcd'}",
        f"--listen-client-urls={plan.etcd_url}",
        f"--advertise-client-urls={plan.etcd_url}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=rig={peer}",
        "--unsafe-no-fsync",
        "--experimental-watch-progress-notify-interval=5s",  # as every version from 3.4 to 3.6 spells it
    ]


def apiserver(plan: Plan, extra: tuple[str, ...] = ()) -> list[str]:
    """Return the API server's command line; `extra` flags come last and therefore win."""
    return [
        str(programs.APISERVER.path),
        f"--etcd-servers={plan.etcd_url}",
        f"--bind-address={plan.address}",
        f"--secure-port={plan.ports.apiserver}",
        *_services(plan.network),
        "--authorization-mode=Node,RBAC",
        *_identity(plan),
        "--allow-privileged=true",
        *extra,
    ]


def _services(network: Network | None) -> list[str]:
    """Return the flags about services: the API server's own, and how it reaches those of webhooks.

    With a node it asks a service's pods directly. It then refuses services of the type ExternalName, by which tests
    without a node have their webhooks called.
    """
    if network is None:
        return [f"--advertise-address={UNROUTED}", f"--service-cluster-ip-range={SERVICE_RANGE}"]
    return [
        f"--advertise-address={network.machine}",
        f"--service-cluster-ip-range={network.services}",
        "--enable-aggregator-routing=true",
    ]


def _identity(plan: Plan) -> list[str]:
    """Return the flags about who is who: serving, clients, service accounts, and the way to kubelets."""
    return [
        f"--tls-cert-file={plan.serving.certificate}",
        f"--tls-private-key-file={plan.serving.key}",
        f"--client-ca-file={plan.ca.certificate}",
        f"--token-auth-file={plan.tokens}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={plan.service_account_key}",
        f"--service-account-signing-key-file={plan.service_account_key}",
        f"--kubelet-client-certificate={plan.kubelet_client.certificate}",
        f"--kubelet-client-key={plan.kubelet_client.key}",
        f"--kubelet-certificate-authority={plan.ca.certificate}",
        "--kubelet-preferred-address-types=InternalIP",
    ]


def controller_manager(plan: Plan) -> list[str]:
    """Return the controller manager's command line: all controllers but those that need a cloud."""
    return [
        str(programs.CONTROLLER_MANAGER.path),
        *_follower(plan, plan.ports.controller_manager),
        f"--service-account-private-key-file={plan.service_account_key}",
        f"--root-ca-file={plan.ca.certificate}",
        f"--cluster-signing-cert-file={plan.ca.certificate}",
        f"--cluster-signing-key-file={plan.ca.key}",
        "--controllers=*,-nodeipam,-cloud-node-lifecycle",
        f"--flex-volume-plugin-dir={plan.folder / 'volume-plugins'}",  # it makes this folder, by default in /usr
    ]


def scheduler(plan: Plan) -> list[str]:
    """Return the scheduler's command line."""
    return [str(programs.SCHEDULER.path), *_follower(plan, plan.ports.scheduler)]


def _follower(plan: Plan, port: int) -> list[str]:
    """Return what every component beside the API server needs; being the only replica, it elects nobody."""
    return [
        f"--kubeconfig={plan.kubeconfig}",
        "--leader-elect=false",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={port}",
        f"--tls-cert-file={plan.serving.certificate}",
        f"--tls-private-key-file={plan.serving.key}",
    ]
