"""Start a cluster, and stop it."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from rig import asking, build, commands, kubeconfig, packages, ports, programs
from rig import node as nodes
from rig.certificates import Authority, write_key
from rig.cluster import Cluster
from rig.commands import Plan, Ports
from rig.errors import RigError
from rig.janitor import Janitor
from rig.nodefiles import CLUSTER_DOMAIN, NODE_NAME, REGISTRY_NAME, NodePlan
from rig.process import Daemon
from rig.traces import Network
from rig.waiting import wait_for

STEP_LIMIT = 60.0
"""Seconds for each step of a start; a start takes about four in all, on a busy machine much more."""

SERVICE_NAMES = (
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    f"kubernetes.default.svc.{CLUSTER_DOMAIN}",
)
"""How pods address the API server, beside the first address of the service range."""


@dataclass(frozen=True)
class Options:
    """What may differ between clusters."""

    node: bool = False
    etcd: Path | None = None
    apiserver_flags: tuple[str, ...] = ()
    scheduler: bool = False
    registry: bool = False


@contextmanager
def running(
    *,
    node: bool = False,
    etcd: Path | None = None,
    apiserver_flags: tuple[str, ...] = (),
    scheduler: bool = False,
    registry: bool = False,
    folder: Path | None = None,
    progress: build.Report = build.report,
) -> Iterator[Cluster]:
    """Run a cluster for the length of a `with` block; nothing of it remains afterwards.

    `node` adds a scheduler and a real node (needs root), `registry` a registry from which that node pulls, `scheduler`
    a scheduler alone; `etcd` is another etcd program than the rig's own. `folder` is made for the cluster and removed
    with it; by default it is a temporary one. Programs that are missing are built first, which takes minutes once. Raises
    RigError, with everything stopped, if the cluster does not come up.
    """
    if registry and not node:
        raise RigError("expected a node with the registry, got none: nothing would pull from it")
    build.build(_programs(node=node, scheduler=scheduler), progress=progress)
    if node:
        packages.ensure(progress)
    folder = _make(folder)
    with ExitStack() as stack:
        janitor = Janitor(folder)
        stack.callback(janitor.dismiss)
        janitor.start()
        yield _start(stack, folder, Options(node, etcd, apiserver_flags, scheduler, registry))


def _programs(*, node: bool, scheduler: bool) -> tuple[programs.Program, ...]:
    if node:
        return programs.ALL
    return (*programs.CONTROL_PLANE, programs.SCHEDULER) if scheduler else programs.CONTROL_PLANE


def _make(folder: Path | None) -> Path:
    if folder is None:
        return Path(tempfile.mkdtemp(prefix="navarch-rig-")).resolve()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder.resolve()


def _start(stack: ExitStack, folder: Path, options: Options) -> Cluster:
    """Start everything in order; the stack stops it in the reverse order."""
    for part in ("certificates", "logs"):
        (folder / part).mkdir()
    authority = Authority(folder / "certificates")
    if not options.node:
        return _start_control_plane(stack, _plan(stack, folder, authority), authority, options)
    nodes.check_possible(folder)
    node_plan = nodes.plan(folder, authority)
    cluster = _start_control_plane(stack, _plan(stack, folder, authority, node_plan), authority, options)
    nodes.start(stack, node_plan, authority, cluster)
    return _add_registry(stack, cluster, node_plan.network) if options.registry else cluster


def _add_registry(stack: ExitStack, cluster: Cluster, network: Network) -> Cluster:
    """Serve a registry where the node sees it."""
    from navarch.oci.registry_server import (  # noqa: PLC0415 - the janitor and clusters without it start sooner
        RegistryServerOptions,
        serve_in_thread,
    )

    options = RegistryServerOptions(host=network.machine)
    address = stack.enter_context(serve_in_thread(cluster.folder / "images", options))
    cluster.add_registry(REGISTRY_NAME, f"http://{address}")
    return replace(cluster, registry=address)


def _plan(stack: ExitStack, folder: Path, authority: Authority, node_plan: NodePlan | None = None) -> Plan:
    """Choose ports, which are the cluster's until the stack unwinds, and write keys and certificates."""
    network = node_plan.network if node_plan else None
    hosts = [commands.LOOPBACK, "localhost", *SERVICE_NAMES]
    hosts += [network.machine, str(network.services[1])] if network else ["10.0.0.1"]
    return Plan(
        folder=folder,
        ports=Ports(*stack.enter_context(ports.reserved(5))),
        ca=authority.pair,
        serving=authority.serving("apiserver", hosts),
        kubelet_client=authority.client("kubelet-client", "kube-apiserver", ["system:masters"]),
        service_account_key=write_key(folder / "certificates" / "service-accounts.key"),
        tokens=folder / "tokens.csv",
        kubeconfig=folder / "kubeconfig.yaml",
        network=network,
    )


def _describe(plan: Plan, authority: Authority) -> Cluster:
    """Make an administrator, once with a token and once with a certificate, and write both kubeconfigs."""
    token = secrets.token_hex(16)
    plan.tokens.touch(mode=0o600)
    plan.tokens.write_text(f'{token},rig-admin,rig-admin,"system:masters"\n')
    admin = authority.client("admin", "rig-admin", ["system:masters"])
    by_token = kubeconfig.document(plan.url, plan.ca.certificate, kubeconfig.token_user(token))
    by_certificate = kubeconfig.document(plan.url, plan.ca.certificate, kubeconfig.certificate_user(admin))
    return Cluster(
        folder=plan.folder,
        url=plan.url,
        etcd_url=plan.etcd_url,
        ca_file=plan.ca.certificate,
        token=token,
        kubeconfig=kubeconfig.write(plan.kubeconfig, by_token),
        certificate_kubeconfig=kubeconfig.write(plan.folder / "kubeconfig-certificate.yaml", by_certificate),
        client_certificate=admin.certificate,
        client_key=admin.key,
        node=NODE_NAME if plan.network else None,
        machine_address=plan.network.machine if plan.network else None,
    )


def _start_control_plane(stack: ExitStack, plan: Plan, authority: Authority, options: Options) -> Cluster:
    """Start etcd, the API server and the controllers, each when the one before is ready."""
    daemons: dict[str, Daemon] = {}
    cluster = replace(_describe(plan, authority), daemons=daemons)

    def launch(name: str, command: list[str]) -> Daemon:
        daemons[name] = Daemon(name, command, cluster.log(name))
        stack.callback(daemons[name].stop)
        daemons[name].start()
        return daemons[name]

    etcd = launch("etcd", commands.etcd(plan, options.etcd or programs.ETCD.path))
    wait_for("etcd to be healthy", lambda: asking.get(f"{plan.etcd_url}/health"), seconds=STEP_LIMIT, daemon=etcd)
    server = launch("kube-apiserver", commands.apiserver(plan, options.apiserver_flags))
    wait_for(f"{plan.url}/readyz", lambda: cluster.get("/readyz"), seconds=STEP_LIMIT, daemon=server)
    manager = launch("kube-controller-manager", commands.controller_manager(plan))
    if options.node or options.scheduler:
        launch("kube-scheduler", commands.scheduler(plan))
    account = "/api/v1/namespaces/default/serviceaccounts/default"
    wait_for("the default service account", lambda: cluster.get(account), seconds=STEP_LIMIT, daemon=manager)
    return cluster
