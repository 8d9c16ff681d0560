"""Bases from Debian's own mirror: complete, small, and of the right machine."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import msgspec
import pytest

from navarch.oci.file_tree import FileTree
from navarch.oci.layers import pack
from navarch.project.image.debian import (
    DebianArchive,
    DebianOptions,
    DebianPackage,
    base_packages,
    base_tree,
    glibc_version,
    python_version,
)

pytestmark = pytest.mark.long
SUITES = ("trixie", "bookworm")
ARCHITECTURES = ("amd64", "arm64")
MACHINES = {"amd64": 62, "arm64": 183}
"""The numbers of machines in ELF files."""
VERSIONS = {"trixie": ((3, 13), (2, 41)), "bookworm": ((3, 11), (2, 36))}
PROGRAM = """
import asyncio, bz2, ctypes, curses, dbm.ndbm, lzma, readline, sqlite3, ssl, sys, uuid, zlib, zoneinfo
assert len(ssl.create_default_context().get_ca_certs()) > 100
zoneinfo.ZoneInfo("Europe/Berlin")
ctypes.CDLL("libstdc++.so.6")
print(sys.version_info[:2])
"""


class Base(msgspec.Struct, frozen=True, kw_only=True):
    suite: str
    architecture: str
    packages: tuple[DebianPackage, ...]
    tree: FileTree


async def _base(suite: str, architecture: str, cache: Path) -> Base:
    async with DebianArchive(DebianOptions(suite=suite), cache) as archive:
        packages = await archive.resolve(base_packages(suite), architecture)
        files = await archive.fetch(packages)
    return Base(suite=suite, architecture=architecture, packages=packages, tree=base_tree(files))


@pytest.fixture(scope="module", params=[(suite, each) for suite in SUITES for each in ARCHITECTURES], ids="-".join)
def base(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Base:
    """The base of one suite for one architecture, fetched once."""
    suite, architecture = request.param
    return asyncio.run(_base(suite, architecture, tmp_path_factory.mktemp("cache")))


def test_base_is_small(base: Base) -> None:
    """Some thirty packages, below 50 MB on disk for amd64, and below 18 MB packed."""
    assert 20 <= len(base.packages) <= 40
    assert (python_version(base.packages), glibc_version(base.packages)) == VERSIONS[base.suite]
    assert base.tree.size < {"amd64": 50, "arm64": 56}[base.architecture] * 10**6
    assert len(pack(base.tree).content) < 18 * 10**6


def test_base_has_programs_of_its_machine_alone(base: Base) -> None:
    """Every program and library is for the architecture of the image."""
    machines = [
        (path, int.from_bytes(entry.content[18:20], "little"))
        for path, entry in base.tree
        if entry.content.startswith(b"\x7fELF")
    ]
    assert len(machines) > 50
    assert [path for path, machine in machines if machine != MACHINES[base.architecture]] == []


def test_base_has_no_broken_links(base: Base) -> None:
    """What a link points to is in the image, too."""
    links = [(path, base.tree.resolve(path)) for path, entry in base.tree if entry.kind == "link"]
    assert [path for path, target in links if target is None or target not in base.tree] == []


def _runs_here(base: Base) -> bool:
    return base.architecture == {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]


def _output(*command: str | Path, **environment: str) -> str:
    found = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (found.returncode, found.stderr) == (0, "")
    return found.stdout.strip()


def test_python_of_the_base_runs_with_its_own_loader(base: Base, tmp_path: Path) -> None:
    """The interpreter, its libraries and the certificates are those of the image, not of this machine."""
    if not _runs_here(base):
        pytest.skip("of another machine")
    base.tree.write_to(tmp_path)
    loader = next(path for path, _ in base.tree if path.startswith("usr/lib") and "/ld-linux-" in path)
    libraries = tmp_path / "usr/lib" / f"{os.uname().machine}-linux-gnu"
    python = tmp_path / (base.tree.resolve("usr/local/bin/python3") or "")
    command = (tmp_path / loader, "--inhibit-cache", "--library-path", libraries, python, "-B", "-c", PROGRAM)
    places = {
        "PYTHONHOME": "usr",
        "PYTHONTZPATH": "usr/share/zoneinfo",
        "SSL_CERT_FILE": "etc/ssl/certs/ca-certificates.crt",
    }
    output = _output(*command, **{name: str(tmp_path / path) for name, path in places.items()})
    assert output == str(VERSIONS[base.suite][0])


def test_base_is_a_whole_root_file_system(base: Base, tmp_path: Path) -> None:
    """As in a container, without any variable: Python under its short name, certificates, users and time zones."""
    if not _runs_here(base):
        pytest.skip("of another machine")
    base.tree.write_to(tmp_path)
    python = "/usr/local/bin/python3"
    program = f"{PROGRAM}\nimport pwd\nassert pwd.getpwuid(65532).pw_name == 'nonroot'"
    output = _output("/usr/bin/unshare", "--map-root-user", f"--root={tmp_path}", python, "-B", "-c", program)
    assert output == str(VERSIONS[base.suite][0])


async def test_the_same_functions_make_the_image_of_memcached(tmp_path: Path) -> None:
    """Other names give other images: memcached with its libraries, without Python, Perl or a shell."""
    architecture = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
    async with DebianArchive(DebianOptions(), tmp_path / "cache") as archive:
        packages = await archive.resolve(["base-files", "memcached"], architecture)
        tree = base_tree(await archive.fetch(packages))
    assert len(packages) < 20
    assert not [path for path, _ in tree if path in {"usr/bin/perl", "usr/bin/sh", "usr/bin/dpkg"}]
    root = tmp_path / "root"
    root.mkdir()
    tree.write_to(root)
    output = _output("/usr/bin/unshare", "--map-root-user", f"--root={root}", "/usr/bin/memcached", "--version")
    assert output.startswith("memcached 1.6")
