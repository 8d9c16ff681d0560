"""Members of an etcd cluster, for tests: started, stopped, killed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rig import asking, ports, programs, tools
from rig.process import Daemon
from rig.waiting import wait_for

SECONDS = 60.0

PROGRAMS = [
    pytest.param(tools.old_etcd, id="old etcd"),
    pytest.param(lambda: programs.ETCD.path, id="new etcd", marks=pytest.mark.real),
]
"""The one from PyPI, and the one that Kubernetes is released with; each is asked for when it is needed."""


@dataclass
class EtcdMember:
    """One member. Data stays in its folder when it ends."""

    name: str
    folder: Path
    program: Path
    client_url: str
    peer_url: str
    flags: tuple[str, ...] = ()
    daemon: Daemon = field(init=False)

    def start(self, cluster: Sequence[str], *, joining: bool = False) -> None:
        """Starts it; returns at once."""
        command = [
            str(self.program),
            f"--name={self.name}",
            f"--data-dir={self.folder / self.name}",
            f"--listen-client-urls={self.client_url}",
            f"--advertise-client-urls={self.client_url}",
            f"--listen-peer-urls={self.peer_url}",
            f"--initial-advertise-peer-urls={self.peer_url}",
            f"--initial-cluster={','.join(cluster)}",
            f"--initial-cluster-state={'existing' if joining else 'new'}",
            "--unsafe-no-fsync",
            "--heartbeat-interval=50",
            "--election-timeout=500",
            "--experimental-watch-progress-notify-interval=1s",
            *self.flags,
        ]
        self.daemon = Daemon(self.name, command, self.folder / f"{self.name}.log")
        self.daemon.start()

    def until_healthy(self) -> None:
        """Returns when it answers; of one with TLS, when it says that it will."""
        if self.client_url.startswith("https"):
            log = self.daemon.log
            said = "serving client traffic securely"
            wait_for(said, lambda: said in log.read_text(), seconds=SECONDS, daemon=self.daemon)
            return
        url = f"{self.client_url}/health"
        wait_for(f"{self.name} to be healthy", lambda: asking.get(url), seconds=SECONDS, daemon=self.daemon)

    def kill(self) -> None:
        """Ends it at once, as a crash would."""
        self.daemon.process.kill()
        self.daemon.process.wait()


@dataclass
class EtcdCluster:
    """Members that know each other."""

    folder: Path
    program: Path
    flags: tuple[str, ...] = ()
    scheme: str = "http"
    members: list[EtcdMember] = field(default_factory=list)
    held: ExitStack = field(default_factory=ExitStack)
    """The members' ports."""

    @property
    def urls(self) -> tuple[str, ...]:
        return tuple(member.client_url for member in self.members)

    @property
    def names(self) -> list[str]:
        return [f"{member.name}={member.peer_url}" for member in self.members]

    def new_member(self) -> EtcdMember:
        """One more, not started."""
        name = f"member{len(self.members)}"
        client, peer = self.held.enter_context(ports.reserved(2))
        urls = (f"{self.scheme}://127.0.0.1:{client}", f"http://127.0.0.1:{peer}")
        self.members.append(EtcdMember(name, self.folder, self.program, *urls, self.flags))
        return self.members[-1]

    def stop(self) -> None:
        """Ends what still runs."""
        for member in self.members:
            if hasattr(member, "daemon"):
                member.daemon.stop(grace=0.0)
        self.held.close()


@contextmanager
def running_etcd(
    find: Callable[[], Path], folder: Path, *, size: int = 1, flags: Sequence[str] = (), tls: bool = False
) -> Iterator[EtcdCluster]:
    """A healthy cluster of so many members; with `tls`, flags name the certificates."""
    cluster = EtcdCluster(folder, find(), tuple(flags), "https" if tls else "http")
    for _ in range(size):
        cluster.new_member()
    try:
        for member in cluster.members:
            member.start(cluster.names)
        for member in cluster.members:
            member.until_healthy()
        yield cluster
    finally:
        cluster.stop()
