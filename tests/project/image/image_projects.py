"""Small wheels, bases and projects for the tests of images: no package index and no Debian are needed."""

from __future__ import annotations

import base64
import hashlib
import shutil
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from navarch.oci.documents import (
    CONFIG,
    INDEX,
    MANIFEST,
    Descriptor,
    ImageConfig,
    ImageIndex,
    ImageManifest,
    Platform,
    ProcessConfig,
    RootFs,
    encode,
)
from navarch.oci.file_tree import FileTree
from navarch.oci.layers import pack, unpack
from navarch.oci.layout import Layout
from navarch.oci.registry import RegistryOptions
from navarch.project.image.base import BaseSource
from navarch.project.image.base_sources import open_base
from navarch.project.image.build import BuiltImage, build_image
from navarch.project.image.build_cache import BuildCache
from navarch.project.image.debian.archive import DebianOptions
from navarch.project.image.layer_builder import LayerBuilder
from navarch.project.image.lock import lock_image
from navarch.project.image.lock_file import ImageLock, LockedWheel, inputs_of, new_lock
from navarch.project.image.pip import PipOptions
from navarch.project.image.targets import MACHINES
from navarch.project.project import Project

MINOR: Final = f"{sys.version_info.major}.{sys.version_info.minor}"
SITE: Final = f"usr/local/lib/python{MINOR}/dist-packages"
IMAGE: Final = "registry.example.com/team/cache-operator:v1"
_PROJECT: Final = """\
domain: example.com
layout:
- python.navarch.dev/v1
projectName: cache-operator
version: "3"
"""
_PYPROJECT: Final = """\
[project]
name = "cache-operator"
version = "0.3.0"
license = "Apache-2.0"
requires-python = "{requires_python}"
dependencies = {dependencies}
urls = {{ Source = "https://git.example.com/cache" }}
scripts = {{ cache = "cache_operator.__main__:main" }}

[project.optional-dependencies]
fast = ["speedy>=1"]

[tool.navarch]
image = "{image}"

[tool.navarch.build]
base = "oci:base"
{build}
"""
# Stands for the base's loader: the Python that runs the tests is the one that compiles.
_LOADER: Final = f'#!/bin/sh\nshift 3\nunset PYTHONHOME\nexec "{sys.executable}" "$@"\n'


def write_wheel(
    folder: Path,
    name: str,
    version: str,
    files: Mapping[str, str | bytes],
    *,
    tag: str = "py3-none-any",
    requires: Sequence[str] = (),
    metadata: Mapping[str, str] | None = None,
) -> Path:
    """Writes a wheel with these files; `{info}` in a path is its dist-info."""
    info = f"{name}-{version}.dist-info"
    headers = {"Metadata-Version": "2.1", "Name": name, "Version": version, **(metadata or {})}
    lines = [f"{key}: {value}" for key, value in headers.items()] + [f"Requires-Dist: {each}" for each in requires]
    contents = {
        **{path.format(info=info): text.encode() if isinstance(text, str) else text for path, text in files.items()},
        f"{info}/METADATA": ("\n".join(lines) + "\n").encode(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: {str('none-any' in tag).lower()}\nTag: {tag}\n".encode(),
    }
    record = "".join(f"{path},sha256={_digest(content)},{len(content)}\n" for path, content in contents.items())
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(target, "w") as archive:
        for path, content in {**contents, f"{info}/RECORD": f"{record}{info}/RECORD,,\n".encode()}.items():
            archive.writestr(zipfile.ZipInfo(path), content)
    return target


def write_wheels(folder: Path) -> Path:
    """Writes wheels of `cachelib`, pure, and of `speedy`, one for each platform, and returns their folder."""
    write_wheel(
        folder,
        "cachelib",
        "2.0",
        {
            "cachelib/__init__.py": "def get() -> int:\n    return 1\n",
            "{info}/entry_points.txt": "[console_scripts]\ncachectl = cachelib:get\n",
        },
        requires=["speedy>=1", 'absent; python_version < "3"', 'absent; platform_machine == "s390x"'],
        metadata={"License-Expression": "MIT"},
    )
    cpython = f"cp{MINOR.replace('.', '')}"
    for machine in MACHINES.values():
        tag = f"{cpython}-{cpython}-manylinux_2_28_{machine}"
        write_wheel(folder, "speedy", "1.1", {"speedy/__init__.py": "", "speedy/_c.so": machine}, tag=tag)
    return folder


def base_files(machine: str, *, python: str = MINOR, glibc: str = "2.41") -> FileTree:
    """Returns the files of a base like Debian's: its Python is a name, its loader starts the Python of the tests."""
    loader = "lib64/ld-linux-x86-64.so.2" if machine == "x86_64" else "lib/ld-linux-aarch64.so.1"
    tree = FileTree()
    tree.add_file(loader, _LOADER.encode(), mode=0o755)
    tree.add_file(f"usr/bin/python{python}", f"ELF of {machine} /{loader}\0".encode(), mode=0o755)
    tree.add_link("usr/local/bin/python3", f"/usr/bin/python{python}")
    tree.add_directory("usr/lib/python3/dist-packages")
    tree.add_file(f"usr/lib/python{python}/os.py", b"name = 'posix'\n")
    tree.add_file(
        f"usr/lib/{machine}-linux-gnu/libc.so.6", f"GNU C Library (Test) stable release version {glibc}.\n".encode()
    )
    tree.add_file("etc/ssl/certs/ca-certificates.crt", b"certificates\n")
    return tree


def write_base(folder: Path, *, python: str = MINOR, glibc: str = "2.41") -> Layout:
    """Writes a layout with such a base for both platforms."""
    layout = Layout.create(folder)
    images = [
        _base_image(layout, name, base_files(machine, python=python, glibc=glibc)) for name, machine in MACHINES.items()
    ]
    layout.tag("base:1", layout.add_document(ImageIndex(schema_version=2, media_type=INDEX, manifests=images)))
    return layout


def _base_image(layout: Layout, name: str, tree: FileTree) -> Descriptor:
    platform, layer = Platform.parse(name), pack(tree)
    config = ImageConfig(
        architecture=platform.architecture,
        os=platform.os,
        config=ProcessConfig(env=["PATH=/usr/local/bin:/usr/bin", "BASE=yes"]),
        rootfs=RootFs(type="layers", diff_ids=[layer.diff_id]),
    )
    manifest = ImageManifest(
        schema_version=2,
        media_type=MANIFEST,
        config=layout.add(encode(config), CONFIG),
        layers=[layout.add(layer.content, layer.descriptor.media_type)],
    )
    return layout.add_document(manifest, platform=platform)


class ImageProject(NamedTuple):
    """A project, with the cache and the wheels that its image is built from."""

    root: Path
    cache: BuildCache
    wheels: Path
    no_index: bool = True

    @property
    def project(self) -> Project:
        return Project.find(self.root)

    @property
    def layout(self) -> Layout:
        return Layout.open(self.root / "dist" / "image")

    @property
    def pip(self) -> PipOptions:
        return PipOptions(no_index=self.no_index, find_links=(str(self.wheels),))

    def base(self) -> BaseSource:
        return open_base(self.project, self.cache, RegistryOptions(plain_http=True), DebianOptions())

    def lock(self) -> ImageLock:
        found = lock_image(self.project, self.base(), self.pip)
        found.write(self.project)
        return found

    def lock_by_hand(self) -> ImageLock:
        """Locks the wheels of the folder without pip, and puts them into the cache: most tests need no resolver."""
        platforms = {}
        for name in self.project.settings.build.platforms:
            found = [each for each in sorted(self.wheels.glob("*.whl")) if each.stem.endswith(("any", MACHINES[name]))]
            platforms[name] = msgspec.structs.replace(
                self.base().lock(name), wheels=tuple(self._cached(each) for each in found)
            )
        locked = new_lock(inputs_of(self.project), self.project.settings.build.base, platforms)
        locked.write(self.project)
        return locked

    def _cached(self, file: Path) -> LockedWheel:
        name, version = file.name.split("-")[:2]
        sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
        wheel = LockedWheel(name=name, version=version, filename=file.name, sha256=sha256)
        self.cache.wheel(wheel).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, self.cache.wheel(wheel))
        return wheel

    def build(self, name: str = IMAGE) -> BuiltImage:
        locked = ImageLock.read(self.project, inputs_of(self.project))
        layers = LayerBuilder(locked, self.base, self.cache, self.pip, lambda _: None)
        return build_image(self.project, name, locked, layers, self.cache)

    def files(self, built: BuiltImage, platform: str, *, layer: int | None = None) -> FileTree:
        """Returns the files of one layer, by default of all of them."""
        _, manifest = self.layout.image(self.layout.names[built.name], Platform.parse(platform))
        tree = FileTree()
        for each in manifest.layers if layer is None else [manifest.layers[layer]]:
            with self.layout.path(each.digest).open("rb") as content:
                unpack(content, tree, where=each.digest)
        return tree


def new_image_project(folder: Path, *, wheels: Path | None = None, **settings: Any) -> ImageProject:
    """Returns a project in the folder, with its base, the wheels, and an empty cache."""
    root = write_image_project(folder / "project", **settings)
    write_base(root / "base")
    return ImageProject(root, BuildCache(folder / "cache"), wheels or write_wheels(folder / "wheels"))


def write_image_project(
    root: Path,
    *,
    dependencies: Sequence[str] = ("cachelib>=1",),
    requires_python: str = ">=3.11",
    image: str = IMAGE,
    build: str = "",
) -> Path:
    """Writes a project whose base is the layout `base` beside its code; `build` are lines of `[tool.navarch.build]`."""
    listed = "[" + ", ".join(f"'{each}'" for each in dependencies) + "]"
    files = {
        "PROJECT": _PROJECT,
        "pyproject.toml": _PYPROJECT.format(
            dependencies=listed, requires_python=requires_python, image=image, build=build
        ),
        "src/cache_operator/__init__.py": '"""The operator."""\n\nVERSION = 1\n',
        "src/cache_operator/__main__.py": '"""Runs it."""\n\n\ndef main() -> None:\n    print("started")\n\n\nmain()\n',
        "src/cache_operator/crds/cache.yaml": "kind: CustomResourceDefinition\n",
    }
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
