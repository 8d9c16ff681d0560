"""The Debian packages that a node needs: installed if we may, named if not."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from rig.errors import MissingToolError, RigError

CNI_PLUGINS = Path("/usr/lib/cni")

PACKAGE_OF = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "ip": "iproute2",
    "iptables": "iptables",
    "mount": "mount",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    str(CNI_PLUGINS / "ptp"): "containernetworking-plugins",
    str(CNI_PLUGINS / "host-local"): "containernetworking-plugins",
}
"""Which package brings which program."""


def ensure(progress: Callable[[str], None], package_of: Mapping[str, str] = PACKAGE_OF) -> None:
    """Install what is missing on a Debian where we are root; else raise MissingToolError with the command."""
    missing = find_missing(package_of)
    if not missing:
        return
    packages = sorted({package_of[program] for program in missing})
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise MissingToolError(", ".join(missing), "not found", install_command(packages))
    progress(f"installing {', '.join(packages)}")
    _install(packages)
    if still := find_missing(package_of):
        raise RigError(f"{', '.join(packages)} were installed, but these are still missing: {', '.join(still)}")


def find_missing(programs: Iterable[str]) -> list[str]:
    """Return the programs that are not installed."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    return [program for program in programs if shutil.which(program, path=path) is None]


def install_command(packages: Iterable[str]) -> str:
    """Return what an administrator has to type."""
    return f"apt-get update && apt-get install --yes --no-install-recommends {' '.join(packages)}"


def _install(packages: list[str]) -> None:
    # Run level 1 keeps the packages from starting their services: the rig runs a containerd of its own.
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    done = subprocess.run(
        ["sh", "-c", install_command(packages)], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RigError(f"installing {', '.join(packages)} failed:\n{done.stderr[-2000:]}")
