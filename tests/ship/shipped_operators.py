"""The operators that are shipped: that of a new project, and that of etcd."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rig
from navarch.oci.file_tree import FileTree
from rig import programs
from ship.shipping import ShippedProject, debian_tree, push_image

_ETCD = Path(__file__).parents[2] / "operators" / "etcd"
_ASKS_MEMCACHED = """
import socket
with socket.create_connection(("sample.default.svc", 11211), 10) as connection:
    connection.sendall(b"version\\r\\n")
    print(connection.recv(100).decode())
"""
_ASKS_ETCD = """
import urllib.request
print(urllib.request.urlopen("http://sample-client.default.svc:2379/version", timeout=10).read().decode())
"""


@dataclass(frozen=True)
class ShippedOperator:
    """A project with what a test has to know of its operator."""

    project: ShippedProject
    name: str
    """With which the names of its objects begin, and its repository."""
    namespace: str
    lease: str
    api_version: str
    kind: str
    sample: dict[str, Any]
    """The spec of an object whose pods run."""
    small: dict[str, Any]
    """The spec of an object that costs nothing."""
    changed: tuple[dict[str, Any], dict[str, Any]]
    """Two other specs of the sample, of which the second one undoes the first."""
    service_port: int
    """Of a Service that the test makes for the sample's Deployment; 0 if the operator makes its own."""
    asks: str
    """A program that reaches the sample's pods by the name of a Service."""
    answer: str

    @property
    def cluster(self) -> rig.Cluster:
        return self.project.cluster

    @property
    def deployment(self) -> str:
        return f"{self.name}-controller-manager"

    def manifest(self, name: str, spec: dict[str, Any]) -> str:
        metadata = {"name": name, "namespace": "default"}
        return json.dumps({"apiVersion": self.api_version, "kind": self.kind, "metadata": metadata, "spec": spec})

    def change_code(self) -> None:
        """One more line in the operator's package."""
        file = next(self.project.folder.glob("src/*/__init__.py"))
        file.write_text(f"{file.read_text()}\nRELEASE = 2\n")


def tutorial_operator(cluster: rig.Cluster, wheels: Path, folder: Path) -> ShippedOperator:
    """The project of the tutorial, whose pods run the memcached of Debian."""
    tree = debian_tree(folder / "packages", "memcached")
    memcached = push_image(cluster, folder / "images", "memcached:1.6", tree, ["/usr/bin/memcached"])
    project = ShippedProject(folder / "memcached-operator", cluster, wheels)
    project.folder.mkdir()
    project.navarch("init", "--domain=example.com")
    kind = ("--group=cache", "--version=v1alpha1", "--kind=Memcached", "--resource", "--controller")
    project.navarch("create", "api", *kind, f"--image={memcached}", "--port=11211")
    return ShippedOperator(
        project=project,
        name="memcached-operator",
        namespace="memcached-operator-system",
        lease="memcached-operator",
        api_version="cache.example.com/v1alpha1",
        kind="Memcached",
        sample={"size": 2},
        small={"size": 1},
        changed=({"size": 1}, {"size": 2}),
        service_port=11211,
        asks=_ASKS_MEMCACHED,
        answer="VERSION 1.",
    )


def etcd_operator(cluster: rig.Cluster, wheels: Path, folder: Path) -> ShippedOperator:
    """The etcd operator with its webhooks, and an image of the etcd that the rig has built."""
    tree = FileTree()
    tree.add_file("usr/local/bin/etcd", programs.ETCD.path.read_bytes(), mode=0o755)
    version = programs.ETCD.version.removeprefix("v")
    etcd = push_image(cluster, folder / "images", f"etcd:v{version}", tree, ["/usr/local/bin/etcd"])
    project = ShippedProject(folder / "etcd", cluster, wheels)
    shutil.copytree(_ETCD, project.folder, ignore=shutil.ignore_patterns("tests", "__pycache__", "dist"), symlinks=True)
    settings = project.folder / "pyproject.toml"
    settings.write_text(f'{settings.read_text()}environment = {{ ETCD_OPERATOR_WEBHOOKS = "yes" }}\n')
    spec = {"size": 3, "version": version, "repository": etcd.rpartition(":")[0]}
    return ShippedOperator(
        project=project,
        name="etcd-operator",
        namespace="etcd-operator",
        lease="etcd-operator",
        api_version="etcd.database.coreos.com/v1beta2",
        kind="EtcdCluster",
        sample=spec,
        small={**spec, "paused": True},
        changed=({"paused": True}, {"paused": False}),
        service_port=0,
        asks=_ASKS_ETCD,
        answer=version,
    )
