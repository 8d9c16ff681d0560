"""A scaffolded project as an image of Debian packages and real wheels: it runs, and its arm64 twin is what it claims."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from navarch.oci.documents import Platform
from navarch.oci.file_tree import FileTree
from navarch.oci.unpacked_images import UnpackedImages
from navarch.project.image.base import Base, find_python
from navarch.project.image.build import BuiltImage
from navarch.project.image.build_cache import BuildCache
from navarch.project.image.bytecode import interpreter_in
from navarch.project.image.elf import is_elf, machine_of_elf
from navarch.project.image.targets import MACHINES, host_platform
from project.image.image_projects import ImageProject
from project.scaffolded import MEMCACHED, cache_project

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]
CHECKOUT = Path(__file__).parents[3]
MOST_BYTES = 40_000_000
_PROGRAM = """
import importlib.metadata, ssl, sys
import aiohttp, cryptography.hazmat.primitives.asymmetric.rsa, msgspec, re2, uvloop, yaml
import cache_operator.__main__ as program
assert len(ssl.create_default_context().get_ca_certs()) > 100
assert importlib.metadata.version("cache-operator") == "0.1.0"
print(sys.version_info[:2])
"""


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> ImageProject:
    """A scaffolded project with a kind, locked with today's packages and wheels; Navarch's own wheel is built from here."""
    folder = tmp_path_factory.mktemp("real")
    wheels = folder / "wheels"
    wheel = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", f"--wheel-dir={wheels}", str(CHECKOUT)]
    subprocess.run(wheel, check=True, timeout=600)
    project = cache_project(folder / "project", MEMCACHED)
    made = ImageProject(project.root, BuildCache(folder / "cache"), wheels, no_index=False)
    assert set(made.lock().platforms) == set(MACHINES)
    return made


@pytest.fixture(scope="module")
def built(real: ImageProject) -> BuiltImage:
    """The image."""
    return real.build()


def test_image_is_small(built: BuiltImage) -> None:
    """A node pulls no more than this."""
    assert {each.platform: each.size for each in built.platforms if each.size > MOST_BYTES} == {}


def test_image_runs_with_its_own_python(real: ImageProject, built: BuiltImage, tmp_path: Path) -> None:
    """By its own loader and libraries: the operator and all of its dependencies can be imported."""
    layout = real.layout
    images = UnpackedImages(tmp_path / "images")
    with images.locked():
        unpacked = images.unpack(layout, layout.names[built.name], Platform.parse(host_platform()))
    tree = real.files(built, host_platform())
    python = find_python(Base(tree=tree), "test")
    interpreter = interpreter_in(unpacked.root, tree, python, MACHINES[host_platform()])
    environment = {"PYTHONHOME": interpreter.home, "PYTHONPATH": str(unpacked.root / python.site.path), "PATH": ""}
    environment["SSL_CERT_FILE"] = str(unpacked.root / "etc/ssl/certs/ca-certificates.crt")
    done = subprocess.run(
        [*interpreter.argv, "-c", _PROGRAM], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("(3, 13)")
    shown = subprocess.run(
        [*interpreter.argv, "-m", "cache_operator", "--help"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "--leader-elect" in shown.stdout, shown.stderr


@pytest.mark.parametrize("platform", MACHINES)
def test_every_file_is_for_the_platform(real: ImageProject, built: BuiltImage, platform: str) -> None:
    """ELF machine of each file, tags of each wheel, bytecode beside each module."""
    tree = real.files(built, platform)
    machine = MACHINES[platform]
    code = [(path, entry.content) for path, entry in tree if entry.kind == "file" and is_elf(entry.content)]
    assert len(code) > 80
    assert {machine_of_elf(content, path) for path, content in code} == {machine}
    tags = list(_wheel_tags(tree))
    assert len(tags) > 10
    assert [each for each in tags if not each.endswith(("-any", f"_{machine}"))] == []
    modules = [path for path, _ in tree if path.endswith(".py") and "/dist-packages/navarch/" in path]
    missing = [each for each in modules if _bytecode(each) not in tree]
    assert len(modules) > 300
    assert missing == []


def test_second_build_elsewhere_gives_the_same_digest(real: ImageProject, built: BuiltImage, tmp_path: Path) -> None:
    """With an empty cache, in another folder, with another umask."""
    before = os.umask(0o077)
    try:
        shutil.copytree(real.root, tmp_path / "copy", symlinks=True, ignore=shutil.ignore_patterns("dist"))
        copy = ImageProject(tmp_path / "copy", BuildCache(tmp_path / "cache"), real.wheels, no_index=False)
        shutil.copytree(real.cache.folder / "debian", copy.cache.folder / "debian")  # downloads alone
        assert copy.build().digest == built.digest
    finally:
        os.umask(before)


def _wheel_tags(tree: FileTree) -> list[str]:
    files = [entry.content.decode() for path, entry in tree if path.endswith(".dist-info/WHEEL")]
    return [line.removeprefix("Tag: ") for text in files for line in text.splitlines() if line.startswith("Tag: ")]


def _bytecode(path: str) -> str:
    folder, _, name = path.rpartition("/")
    return f"{folder}/__pycache__/{name.removesuffix('.py')}.cpython-313.pyc"
