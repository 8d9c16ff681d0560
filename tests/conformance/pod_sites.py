"""Where the probe runs in pods: in containers of a real node, or as processes of an embedded one."""

from __future__ import annotations

import itertools
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

import rig
from namespaces import in_new_namespace
from navarch.client import Client, Impersonation, Transport, connect, load
from navarch.cluster.embedded.cluster import EmbeddedCluster
from navarch.cluster.embedded.components import ComponentOptions
from navarch.cluster.embedded.https_front import ThreadedCluster
from navarch.cluster.nodes.images import Image, Images

if TYPE_CHECKING:  # a peer, which `make oldest` does without
    from kubernetes import client as k8s

PROGRAM = Path(__file__).parent / "probe.py"
SECONDS = 60
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Site:
    """A cluster with a node; `client` has a namespace of its own."""

    client: Client
    connect: Callable[[], Client]
    """Another client of the same namespace."""
    connect_as: Callable[[str], Client]
    """A client of somebody else."""

    @property
    def transport(self) -> Transport:
        """What the client sends its requests through."""
        kept: list[Transport] = []

        def keep(transport: Transport) -> Transport:
            kept.append(transport)
            return transport

        self.client.through(keep)
        return kept[0]


@asynccontextmanager
async def real_site(cluster: rig.Cluster) -> AsyncIterator[Site]:
    """The node of the rig, which has the probe as an image."""
    config = load(cluster.kubeconfig)
    async with connect(config) as connected, in_new_namespace(connected) as client:
        here = msgspec.structs.replace(config, namespace=client.options.namespace)

        def connect_as(name: str) -> Client:
            return connect(msgspec.structs.replace(here, impersonate=Impersonation(user=name)))

        yield Site(client, lambda: connect(here), connect_as)


@asynccontextmanager
async def embedded_site(folder: Path) -> AsyncIterator[Site]:
    """A process node that knows the image of the probe: the same program in Python."""
    components = ComponentOptions(nodes=1, folder=folder / "node", images=probe_image(folder))
    async with EmbeddedCluster(components=components) as cluster, in_new_namespace(cluster.client()) as client:
        namespace = client.options.namespace
        yield Site(
            client,
            lambda: cluster.client(namespace),
            lambda name: cluster.client_as(name, namespace=namespace),
        )


@dataclass(frozen=True)
class Served:
    """A cluster with a node as programs reach it that block; `core` is the official client."""

    kubeconfig: Path
    namespace: str
    core: k8s.CoreV1Api

    def start(self, *arguments: str, **fields: Any) -> None:
        """Runs the probe in a pod named web; returns when it is ready."""
        probe = {
            "name": "probe",
            "image": rig.PROBE_IMAGE,
            "imagePullPolicy": "Never",
            "args": list(arguments),
            **fields,
        }
        from kubernetes import watch as k8s_watch

        spec = {"terminationGracePeriodSeconds": 0, "containers": [probe]}
        self.core.create_namespaced_pod(self.namespace, {"metadata": {"name": "web"}, "spec": spec})
        watch = k8s_watch.Watch()
        for event in watch.stream(self.core.list_namespaced_pod, self.namespace, timeout_seconds=SECONDS):
            statuses = event["object"].status.container_statuses or []
            if statuses and statuses[0].ready:
                watch.stop()
                return
        pytest.fail(f"expected the pod to be ready within {SECONDS} s")


@contextmanager
def served_site(cluster: rig.Cluster | None, folder: Path) -> Iterator[Served]:
    """The real one, or else an embedded one over HTTPS."""
    if cluster is not None:
        with _in_new_namespace(cluster.kubeconfig) as served:
            yield served
        return
    components = ComponentOptions(nodes=1, folder=folder / "node", images=probe_image(folder))
    with ThreadedCluster(partial(EmbeddedCluster, components=components)) as threaded:
        kubeconfig = folder / "kubeconfig.json"
        kubeconfig.write_bytes(threaded.access.kubeconfig_file())
        with _in_new_namespace(kubeconfig) as served:
            yield served


@contextmanager
def _in_new_namespace(kubeconfig: Path) -> Iterator[Served]:
    from kubernetes import client as k8s
    from kubernetes import config as k8s_config
    from kubernetes import watch as k8s_watch

    name = f"served-{next(_numbers)}"
    with k8s_config.new_client_from_config(str(kubeconfig)) as api:
        core = k8s.CoreV1Api(api)
        core.create_namespace({"metadata": {"name": name}})
        accounts = k8s_watch.Watch()
        for _ in accounts.stream(core.list_namespaced_service_account, name, timeout_seconds=SECONDS):
            accounts.stop()
        try:
            yield Served(kubeconfig, name, core)
        finally:
            core.delete_namespace(name)


def probe_image(folder: Path) -> Path:
    """The file with the image of the probe, which listens on its pod's own address."""
    program = folder / "bin" / "probe"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable} -IS\n{PROGRAM.read_text()}")
    program.chmod(0o755)
    path = folder / "images.json"
    name = rig.PROBE_IMAGE.partition(":")[0]
    Images(path=path).add(Image(name=name, argv=(str(program),), always=("--address", "$(POD_IP)")))
    return path
