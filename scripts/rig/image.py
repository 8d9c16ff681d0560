"""The image that test pods run, as an OCI archive: no registry is needed."""

from __future__ import annotations

import tempfile
from pathlib import Path

from navarch.oci import archive
from navarch.oci.documents import (
    CONFIG,
    MANIFEST,
    ImageConfig,
    ImageManifest,
    Platform,
    ProcessConfig,
    RootFs,
    encode,
)
from navarch.oci.file_tree import FileTree
from navarch.oci.layers import pack
from navarch.oci.layout import Layout

PROBE_IMAGE = "navarch.test/probe:1"
"""Runs `/probe`; use it with `imagePullPolicy: Never`. What it can do: scripts/rig/podimage/main.go."""


def write_archive(target: Path, program: Path, name: str = PROBE_IMAGE) -> Path:
    """Write an image whose only file is the program; the same input gives the same bytes."""
    tree = FileTree()
    tree.add_file("probe", program.read_bytes(), mode=0o755)
    return write_image(target, tree, name, ProcessConfig(entrypoint=["/probe"], cmd=["pause"], env=["PATH=/"]))


def write_image(target: Path, tree: FileTree, name: str, settings: ProcessConfig) -> Path:
    """Write an image for this machine whose files are those of the tree, and which runs as the settings say."""
    layer, platform = pack(tree), Platform.of_machine()
    config = ImageConfig(
        architecture=platform.architecture,
        os=platform.os,
        config=settings,
        rootfs=RootFs(type="layers", diff_ids=[layer.diff_id]),
    )
    with tempfile.TemporaryDirectory() as folder:
        layout = Layout.create(Path(folder))
        layout.add(layer.content, layer.descriptor.media_type)
        described = layout.add(encode(config), CONFIG)
        manifest = ImageManifest(schema_version=2, media_type=MANIFEST, config=described, layers=[layer.descriptor])
        archive.write_archive(layout, layout.add_document(manifest, platform=platform), name, target)
    return target
