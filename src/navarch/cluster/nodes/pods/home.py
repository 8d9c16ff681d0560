"""One pod as its containers see it: its object as it is now, its folder, its place, its volumes."""

from __future__ import annotations

from navarch.cluster.nodes.downward import Place
from navarch.cluster.nodes.network.names import own_names
from navarch.cluster.nodes.pod_folder import PodFolder
from navarch.cluster.nodes.pods.site import Site
from navarch.cluster.nodes.volumes.volumes import Volumes
from navarch.controller.events import EventType
from navarch.k8s.core.v1 import Pod

__all__ = ["Home"]


class Home:
    """What the containers of one pod share."""

    def __init__(self, site: Site, pod: Pod) -> None:
        self.site = site
        self.pod = pod
        self.folder = PodFolder(site.folder, pod.metadata.uid)
        self.place = Place(site.address, "", site.allocatable)
        self.volumes = Volumes(site.client, self.place, self.folder, site.clock)

    @property
    def uid(self) -> str:
        """The pod's uid."""
        return self.pod.metadata.uid

    @property
    def hostname(self) -> str:
        """What the pod's containers are called."""
        return own_names(self.pod)[-1]

    def container_folder(self, container: str) -> str:
        """Where the logs and the termination messages of a container are in the pod's folder."""
        return f"containers/{container}"

    def log(self, container: str, attempt: int) -> str:
        """Where the log of one start of a container is in the pod's folder."""
        return f"{self.container_folder(container)}/{attempt}.log"

    def prepare(self) -> None:
        """Makes the pod's folder and gives it an address."""
        with self.folder.open(create=0o755) as root:
            root.rewrite("hostname", f"{self.hostname}\n".encode(), 0o644)
        if self.pod.spec.host_network:
            self.place.address = self.site.address
        else:
            self.place.address = self.site.network.join(self.pod, self._write_hosts)

    def _write_hosts(self, text: bytes) -> None:
        with self.folder.open() as root:
            root.rewrite("hosts", text, 0o644)

    def say(self, reason: str, note: str, kind: EventType = "Normal", *, container: str = "") -> None:
        """An event about the pod, or about one of its containers."""
        part = f"spec.{self._list_of(container)}{{{container}}}" if container else ""
        self.site.recorder.record(self.pod, reason, note, type=kind, action=reason, part=part)

    def _list_of(self, container: str) -> str:
        spec = self.pod.spec
        lists = {"containers": spec.containers, "initContainers": spec.init_containers or []}
        found = (name for name, listed in lists.items() if any(each.name == container for each in listed))
        return next(found, "ephemeralContainers")
