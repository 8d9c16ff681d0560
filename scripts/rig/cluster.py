"""A running cluster, as its users see it."""

from __future__ import annotations

import json
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rig import asking, programs
from rig.errors import RigError
from rig.process import CLEAN_ENVIRONMENT


@dataclass(frozen=True)
class Cluster:
    """How to reach a cluster; every path is absolute and valid as long as the cluster runs."""

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

    def log(self, program: str) -> Path:
        """Return the file with the output of one of the cluster's programs."""
        return self.folder / "logs" / f"{program}.log"

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
