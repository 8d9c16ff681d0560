"""Debian's buildah, and its image of the example from the scaffold's Dockerfile.

The Dockerfile's two stages are on our Debian base instead of python:3.13-slim; the first one's also has pip and a shell. Debian's
Python installs below `local` of a prefix, and is called python3. buildah runs as root without a container engine: `RUN` in a
chroot, layers in plain folders.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

from rig.packages import ensure
from ship.ours import Project, run

_PROGRAM: Final = "buildah"
_SLIM: Final = "FROM python:3.13-slim"
_COPY: Final = "COPY --from=build /install /usr/local"
_ENTRY: Final = 'ENTRYPOINT ["python",'


def prepare(progress: Callable[[str], None]) -> None:
    """Installs Debian's buildah if it is missing; raises MissingToolError where that needs another user."""
    ensure(progress, {_PROGRAM: _PROGRAM})


def write_dockerfile(project: Project, address: str) -> None:
    """Puts the scaffold's Dockerfile on our base."""
    file = project.folder / "Dockerfile"
    build, run_stage = file.read_text().split(f"\n{_SLIM}\n")
    for line, place in ((_SLIM, build), (_COPY, run_stage), (_ENTRY, run_stage)):
        if line not in place:
            raise RuntimeError(f"expected {line!r} in {file}")
    run_stage = run_stage.replace(_COPY, "COPY --from=build /install/local /usr/local")
    run_stage = run_stage.replace(_ENTRY, 'ENTRYPOINT ["python3",')
    build = build.replace(_SLIM, f"FROM {address}/python-pip:latest")
    file.write_text(f"{build}\nFROM {address}/python:latest\n{run_stage}")


def build_image(project: Project, storage: Path, wheels: Path, image: str) -> None:
    """Builds the image with an empty storage."""
    pip = storage.with_name("pip.conf")
    pip.write_text(f"[global]\nfind-links = {wheels}\ndisable-pip-version-check = true\n")
    shutil.rmtree(storage, ignore_errors=True)
    volumes = [f"--volume={pip}:/etc/pip.conf:ro", f"--volume={wheels}:{wheels}:ro"]
    certificates = os.environ.get("PIP_CERT") or os.environ.get("SSL_CERT_FILE")
    if certificates:  # of a proxy in between
        volumes.append(f"--volume={certificates}:/etc/ssl/certs/ca-certificates.crt:ro")
    options = ["--isolation=chroot", "--tls-verify=false", "--layers=false", "--format=oci", "--network=host"]
    run([*_buildah(storage), "bud", *options, *volumes, f"--tag={image}", "."], project.folder)


def push(storage: Path, image: str) -> None:
    """Pushes the image."""
    run([*_buildah(storage), "push", "--tls-verify=false", image], storage)


def _buildah(storage: Path) -> list[str]:
    return [_PROGRAM, "--storage-driver=vfs", f"--root={storage / 'root'}", f"--runroot={storage / 'run'}"]
