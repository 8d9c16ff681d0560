"""Debian's `docker-registry` on loopback, and under a name that exists in one mount namespace alone.

`python -m rig.debian_registry COMMAND...` in a mount and a network namespace of its own (`isolated` prefixes the command for that) runs the
command beside a registry at `mock.com:5000`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rig.commands import LOOPBACK
from rig.debian_package import program_of
from rig.errors import MissingToolError
from rig.packages import find_missing, install_command
from rig.process import Daemon
from rig.waiting import wait_for

NAME = "mock.com"
PORT = 5000
_HOSTS = Path("/etc/hosts")
_CONFIGURATION = """\
version: 0.1
log:
  level: warn
  accesslog:
    disabled: true
storage:
  filesystem:
    rootdirectory: {storage}
  delete:
    enabled: true
http:
  addr: {address}
"""
"""Without an address it would listen on all of them."""


@contextmanager
def running(folder: Path, port: int) -> Iterator[str]:
    """Runs the registry inside the block, with its files in the folder, and yields its address on loopback."""
    address = f"{LOOPBACK}:{port}"
    folder.mkdir(parents=True, exist_ok=True)
    configuration = folder / "config.yml"
    configuration.write_text(_CONFIGURATION.format(storage=folder / "storage", address=address))
    daemon = Daemon("docker-registry", [program_of("docker-registry"), "serve", configuration], folder / "registry.log")
    daemon.start()
    try:
        wait_for("docker-registry to answer", lambda: _answers(address), seconds=20, daemon=daemon)
        yield address
    finally:
        daemon.stop()


def isolated(command: Sequence[str]) -> list[str]:
    """Returns the command, to be run beside a registry at `mock.com:5000`; needs root. Raises MissingToolError."""
    if missing := find_missing(("unshare", "mount", "ip")):
        raise MissingToolError(", ".join(missing), "not found", install_command(("util-linux", "mount", "iproute2")))
    program_of("docker-registry")  # from here: the namespace has no network
    return ["unshare", "--mount", "--net", sys.executable, "-m", "rig.debian_registry", *command]


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{address}/v2/", timeout=5):
            return True
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


def _main(command: list[str]) -> int:
    folder = Path(tempfile.mkdtemp(prefix="navarch-registry-"))
    try:
        hosts = folder / "hosts"
        hosts.write_text(f"{_HOSTS.read_text()}\n{LOOPBACK} {NAME}\n")
        for step in (
            ["mount", "--make-rprivate", "/"],
            ["mount", "--bind", str(hosts), str(_HOSTS)],
            ["ip", "link", "set", "lo", "up"],
        ):
            subprocess.run(step, check=True)
        with running(folder / "registry", PORT):
            return subprocess.run(command, check=False).returncode
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
