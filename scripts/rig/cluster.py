"""A real Kubernetes control plane as a context manager."""

from __future__ import annotations

import json
import secrets
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rig import asking, build, commands, kubeconfig, ports, programs
from rig.certificates import Authority, Pair, write_key
from rig.commands import Plan
from rig.errors import RigError
from rig.janitor import Janitor
from rig.process import CLEAN_ENVIRONMENT, Daemon
from rig.waiting import wait_for

START_LIMIT = 60.0
"""Seconds for each step of a start; a start takes about five in all, on a busy machine much more."""


@dataclass(frozen=True)
class Cluster:
    """A running cluster as its users see it; every path is absolute."""

    folder: Path
    url: str
    etcd_url: str
    ca_file: Path
    token: str
    """A bearer token of the group system:masters."""
    kubeconfig: Path
    """Authenticates with the token."""
    certificate_kubeconfig: Path
    """Authenticates with a client certificate of the same rights."""
    client_certificate: Path
    client_key: Path
    node: str | None = None
    """The name of the real node, if there is one."""

    def kubectl(self, *arguments: str, stdin: str | None = None, seconds: float = 60) -> str:
        """Run kubectl as administrator and return what it prints; raises RigError with its complaint."""
        command = [str(programs.KUBECTL.path), f"--kubeconfig={self.kubeconfig}", *arguments]
        # Its discovery cache would otherwise outlive the cluster in the home folder.
        environment = {**CLEAN_ENVIRONMENT, "KUBECACHEDIR": str(self.folder / "kubectl")}
        try:
            done = subprocess.run(
                command, input=stdin, env=environment, capture_output=True, text=True, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired:
            raise RigError(f"kubectl {' '.join(arguments)} did not end within {seconds:.0f} s") from None
        if done.returncode != 0:
            raise RigError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def get(self, path: str) -> bytes | None:
        """Read one path of the API as administrator; None if the server does not answer with success."""
        return asking.get(self.url + path, ca_file=self.ca_file, token=self.token)

    def log(self, daemon: str) -> Path:
        """Return the file with the output of one of the cluster's programs."""
        return self.folder / "logs" / f"{daemon}.log"

    def to_json(self) -> str:
        """Describe the cluster for another process."""
        return json.dumps(asdict(self), default=str, indent=2)

    @classmethod
    def from_json(cls, text: str) -> Cluster:
        """Read what `to_json` wrote."""
        fields: dict[str, Any] = json.loads(text)
        paths = {
            name: Path(value) for name, value in fields.items() if name not in {"url", "etcd_url", "token", "node"}
        }
        return cls(**{**fields, **paths})


@contextmanager
def running(
    *,
    node: bool = False,
    etcd: Path | None = None,
    apiserver_flags: tuple[str, ...] = (),
    folder: Path | None = None,
    progress: build.Report = build.report,
) -> Iterator[Cluster]:
    """Run a cluster for the length of a `with` block; nothing of it remains afterwards.

    Programs that are missing are built first, which takes minutes once. `folder` is made for the cluster and removed
    with it; by default it is a temporary one. Raises RigError (and stops what was started) if it does not come up.
    """
    if node:
        raise RigError("a real node is not supported yet")
    build.build(programs.CONTROL_PLANE, progress=progress)
    folder = _make(folder)
    with ExitStack() as stack:
        janitor = Janitor(folder)
        stack.callback(janitor.dismiss)
        janitor.start()
        plan, cluster = _prepare(folder)
        _start_control_plane(stack, plan, cluster, etcd or programs.ETCD.path, apiserver_flags)
        yield cluster


def _make(folder: Path | None) -> Path:
    if folder is None:
        return Path(tempfile.mkdtemp(prefix="navarch-rig-"))
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder.resolve()


def _prepare(folder: Path) -> tuple[Plan, Cluster]:
    """Write keys, certificates, tokens and kubeconfigs."""
    certificates = folder / "certificates"
    certificates.mkdir()
    (folder / "logs").mkdir()
    authority = Authority(certificates)
    admin = authority.client("admin", "rig-admin", ["system:masters"])
    token = secrets.token_hex(16)
    plan = Plan(
        folder=folder,
        ports=ports.find_free(),
        ca=authority.pair,
        serving=authority.serving("apiserver", [commands.LOOPBACK, "localhost", *SERVICE_NAMES]),
        kubelet_client=authority.client("kubelet-client", "kube-apiserver", ["system:masters"]),
        service_account_key=write_key(certificates / "service-accounts.key"),
        tokens=_write_tokens(folder / "tokens.csv", token),
        kubeconfig=folder / "kubeconfig.yaml",
    )
    return plan, _describe(plan, token, admin)


SERVICE_NAMES = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "10.0.0.1")
"""How pods address the API server: its service's names and the first address of the service range."""


def _write_tokens(path: Path, token: str) -> Path:
    path.touch(mode=0o600)
    path.write_text(f'{token},rig-admin,rig-admin,"system:masters"\n')
    return path


def _describe(plan: Plan, token: str, admin: Pair) -> Cluster:
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
    )


def _start_control_plane(
    stack: ExitStack, plan: Plan, cluster: Cluster, etcd: Path, apiserver_flags: tuple[str, ...]
) -> None:
    """Start etcd, the API server and the controllers, each when the one before is ready."""
    storage = launch(stack, cluster, "etcd", commands.etcd(plan, etcd))
    wait_for("etcd to be healthy", lambda: asking.get(f"{plan.etcd_url}/health"), seconds=START_LIMIT, daemon=storage)
    server = launch(stack, cluster, "kube-apiserver", commands.apiserver(plan, apiserver_flags))
    wait_for(f"{plan.url}/readyz", lambda: cluster.get("/readyz"), seconds=START_LIMIT, daemon=server)
    manager = launch(stack, cluster, "kube-controller-manager", commands.controller_manager(plan))
    account = "/api/v1/namespaces/default/serviceaccounts/default"
    wait_for("the default service account", lambda: cluster.get(account), seconds=START_LIMIT, daemon=manager)


def launch(stack: ExitStack, cluster: Cluster, name: str, command: list[str]) -> Daemon:
    """Start one program; it is stopped when the stack unwinds."""
    daemon = Daemon(name, command, cluster.log(name))
    daemon.start()
    stack.callback(daemon.stop)
    return daemon
