"""A running cluster, as its users see it."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rig import asking, nodefiles, programs
from rig.errors import RigError
from rig.process import CLEAN_ENVIRONMENT, Daemon
from rig.waiting import wait_for

_NOT_PATHS = {"url", "etcd_url", "token", "node", "machine_address", "registry"}


@dataclass(frozen=True)
class Cluster:
    """How to reach a cluster; every path is absolute and valid as long as the cluster runs."""

    folder: Path
    url: str
    etcd_url: str
    ca_file: Path
    token: str = field(repr=False)
    """A bearer token of the group system:masters."""
    kubeconfig: Path
    """Authenticates with the token."""
    certificate_kubeconfig: Path
    """Authenticates with a client certificate of the same rights."""
    client_certificate: Path
    client_key: Path
    node: str | None = None
    """The name of the real node, if there is one."""
    machine_address: str | None = None
    """Where pods and the node's containerd reach programs of this machine that listen there, if there is a node."""
    registry: str | None = None
    """Where to push images, as `HOST:PORT` without TLS; in the cluster their names begin with `REGISTRY_NAME`."""
    daemons: Mapping[str, Daemon] = field(default_factory=dict, repr=False, compare=False)
    """The control plane's processes by program name; empty in any process but the one that started them."""

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

    def add_registry(self, name: str, url: str) -> None:
        """Have the node pull images whose names begin with `name` (`registry.test:5000`) from a registry's URL.

        The registry must listen on `machine_address`, since the node sees nothing else. Holds from the next pull on.
        Raises RigError if it listens elsewhere, or if there is no node.
        """
        if self.machine_address is None:
            raise RigError("expected a cluster with a node, got one without: nothing pulls images here")
        if urlsplit(url).hostname != self.machine_address:
            raise RigError(f"expected a registry on {self.machine_address}, which the node can reach, got {url}")
        folder = self.folder / "registries" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "hosts.toml").write_text(nodefiles.registry_hosts(url))

    def log(self, program: str) -> Path:
        """Return the file with the output of one of the cluster's programs."""
        return self.folder / "logs" / f"{program}.log"

    def restart(self, program: str) -> None:
        """Stop one program of the control plane and start it again; returns when the API server is ready.

        State, addresses and credentials stay; every connection to the program breaks.
        """
        daemon = self._daemon(program)
        daemon.stop()
        daemon.start()
        wait_for(f"{self.url}/readyz", lambda: self.get("/readyz"), seconds=60, daemon=daemon)

    @contextmanager
    def suspended(self, program: str) -> Iterator[None]:
        """Stop a program's clock for the length of a block: its connections stay open but nothing answers."""
        process = self._daemon(program).process
        process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            process.send_signal(signal.SIGCONT)

    def _daemon(self, program: str) -> Daemon:
        if program not in self.daemons:
            known = ", ".join(self.daemons) or "none, since another process started the cluster"
            raise RigError(f"expected a program that this process runs ({known}), got {program!r}")
        return self.daemons[program]

    def to_json(self) -> str:
        """Describe the cluster for another process."""
        described = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "daemons"}
        return json.dumps(described, default=str, indent=2)

    @classmethod
    def from_json(cls, text: str) -> Cluster:
        """Read what `to_json` wrote."""
        described: dict[str, Any] = json.loads(text)
        paths = {name: Path(value) for name, value in described.items() if name not in _NOT_PATHS}
        return cls(**{**described, **paths})
