"""The programs that the rig builds from source."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from rig import folders

KUBERNETES_VERSION = "v1.36.4"
ETCD_VERSION = "v3.6.8"
"""The etcd that Kubernetes of this version is released with; both also stand in the go.mod files."""
COREDNS_VERSION = "v1.14.1"
"""The newest CoreDNS that asks for no newer module than Kubernetes of this version does: since its go.mod asks for the
same ones, it is linked from packages that were compiled for Kubernetes, and costs seconds instead of minutes."""


@dataclass(frozen=True)
class Program:
    """One Go program: where its module lies, what to build in it, and where the result is kept."""

    name: str
    module: str
    """A folder of this package that has a go.mod."""
    package: str
    version: str
    """Part of the cache path: a program is built again when it changes."""
    stamps: tuple[str, ...] = ()
    """Variables that the linker sets, as `package.variable=value`."""

    @property
    def source(self) -> Path:
        """The folder of the Go module."""
        return folders.SOURCE / self.module

    @property
    def path(self) -> Path:
        """Where the finished program is, or will be."""
        return folders.cache() / self.module / self.version / self.name


def _kubernetes(name: str) -> Program:
    """Describe a program of Kubernetes, stamped with its version (else it reports v0.0.0)."""
    major, minor, _ = KUBERNETES_VERSION.removeprefix("v").split(".")
    values = {"gitVersion": KUBERNETES_VERSION, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    stamps = tuple(f"k8s.io/component-base/version.{variable}={value}" for variable, value in values.items())
    return Program(name, "kubernetes", f"k8s.io/kubernetes/cmd/{name}", KUBERNETES_VERSION, stamps)


def _probe() -> Program:
    """Describe what runs in test pods; it is ours and has no version, so its content is its version."""
    digest = hashlib.sha256()
    for file in sorted((folders.SOURCE / "podimage").iterdir()):
        digest.update(file.read_bytes())
    return Program("probe", "podimage", ".", digest.hexdigest()[:12])


ETCD = Program("etcd", "etcd", ".", ETCD_VERSION)
ETCD_TOOL = Program("etcdutl", "etcd", "go.etcd.io/etcd/etcdutl/v3", ETCD_VERSION)
"""Restores snapshots. Built by the tests that need it, and not with the rest."""
OLDER_ETCD = Program("etcd", "etcd35", ".", "v3.5.35")
"""Of the minor version before, for upgrades. Built by the tests that need it, and not with the rest."""
HELM = Program(
    "helm", "helm", "helm.sh/helm/v4/cmd/helm", "v4.3.1", ("helm.sh/helm/v4/internal/version.version=v4.3.1",)
)
"""Judges charts. Built by `make judge` when it is first needed, and not with the rest."""
APISERVER = _kubernetes("kube-apiserver")
CONTROLLER_MANAGER = _kubernetes("kube-controller-manager")
KUBECTL = _kubernetes("kubectl")
SCHEDULER = _kubernetes("kube-scheduler")
KUBELET = _kubernetes("kubelet")
PROXY = _kubernetes("kube-proxy")
DNS = Program("coredns", "coredns", ".", COREDNS_VERSION)
PROBE = _probe()

CONTROL_PLANE = (ETCD, APISERVER, CONTROLLER_MANAGER, KUBECTL)
NODE = (SCHEDULER, KUBELET, PROXY, DNS, PROBE)
ALL = CONTROL_PLANE + NODE
