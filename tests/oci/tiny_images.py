"""Small images for tests: a few programs of this machine with their loader and libraries, and whatever a test adds."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
from navarch.oci.elf import ElfProgram
from navarch.oci.file_tree import FileTree
from navarch.oci.layers import pack
from navarch.oci.layout import Layout

MACHINE = Platform.of_machine()
_FOLDERS = (
    f"/lib/{os.uname().machine}-linux-gnu",
    f"/usr/lib/{os.uname().machine}-linux-gnu",
    "/lib64",
    "/lib",
    "/usr/lib",
)


def add_image(layout: Layout, *trees: FileTree, platform: Platform = MACHINE, **settings: Any) -> Descriptor:
    """Adds an image with a layer for each tree; the settings are those of `ProcessConfig`."""
    layers = [pack(tree) for tree in trees]
    for layer in layers:
        layout.add(layer.content, layer.descriptor.media_type)
    config = ImageConfig(
        architecture=platform.architecture,
        os=platform.os,
        config=ProcessConfig(**settings),
        rootfs=RootFs(type="layers", diff_ids=[layer.diff_id for layer in layers]),
    )
    described = layout.add(encode(config), CONFIG)
    manifest = ImageManifest(
        schema_version=2, media_type=MANIFEST, config=described, layers=[layer.descriptor for layer in layers]
    )
    return layout.add_document(manifest, platform=platform)


def add_index(layout: Layout, *images: Descriptor) -> Descriptor:
    """Adds an index of the images."""
    return layout.add_document(ImageIndex(schema_version=2, media_type=INDEX, manifests=list(images)))


def with_programs(*names: str) -> FileTree:
    """A tree with programs of this machine in /bin, and their loader and libraries at their paths."""
    tree = FileTree()
    tree.add_directory("tmp", mode=0o1777)
    for name in names:
        program = Path(shutil.which(name) or name).resolve()
        tree.add_file(f"bin/{name}", program.read_bytes(), mode=0o755)
        for library in _needed(program):
            tree.add_file(str(library), library.read_bytes(), mode=0o755)
        found = ElfProgram.read(program)
        if found is not None and found.loader:
            tree.add_file(found.loader, Path(found.loader).read_bytes(), mode=0o755)
    return tree


def _needed(program: Path) -> Iterator[Path]:
    waiting, seen = [program], set[str]()
    while waiting:
        found = ElfProgram.read(waiting.pop().resolve())
        for name in found.needed if found is not None else ():
            if name not in seen:
                seen.add(name)
                place = next(path for folder in _FOLDERS if (path := Path(folder, name)).exists())
                waiting.append(place)
                yield place
