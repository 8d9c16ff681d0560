"""The bases of the compared images, in the registry on loopback."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from navarch.oci.documents import CONFIG, MANIFEST, ImageConfig, ImageManifest, Platform, ProcessConfig, RootFs, encode
from navarch.oci.file_tree import FileTree
from navarch.oci.layers import pack
from navarch.oci.layout import Layout
from navarch.project.image.base import CA_BUNDLE, DEFAULT_PATH
from navarch.project.image.base_sources import DebianSource
from navarch.project.image.debian.archive import DebianOptions
from ship.local_registry import push_image

PLATFORM: Final = "linux/amd64"
SUITE: Final = "trixie"
_PIP: Final = ("dash", "python3-pip")
_ACCOUNTS: Final = {
    "etc/passwd": b"root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n",
    "etc/group": b"root:x:0:\nnonroot:x:65532:\n",
}


def push_bases(address: str, folder: Path) -> None:
    """Pushes `static` for programs in Go, `python` and, for stages that install, `python-pip`."""
    python = _debian((), folder)
    static = FileTree()
    for path, content in _ACCOUNTS.items():
        static.add_file(path, content)
    bundle = python.read(CA_BUNDLE)
    assert bundle is not None
    static.add_file(CA_BUNDLE, bundle)
    static.add_directory("tmp", mode=0o1777)
    trees = {"static": static, "python": python, "python-pip": _debian(_PIP, folder)}
    for name, tree in trees.items():
        _push(tree, f"{address}/{name}:latest", folder / name)


def _debian(packages: Sequence[str], folder: Path) -> FileTree:
    source = DebianSource(SUITE, packages, folder / "debian", DebianOptions(suite=SUITE))
    return source.tree(PLATFORM, source.lock(PLATFORM)).tree


def _push(tree: FileTree, name: str, folder: Path) -> None:
    layout, layer, platform = Layout.create(folder), pack(tree), Platform.parse(PLATFORM)
    config = ImageConfig(
        architecture=platform.architecture,
        os=platform.os,
        config=ProcessConfig(env=[f"PATH={DEFAULT_PATH}"]),
        rootfs=RootFs(type="layers", diff_ids=[layer.diff_id]),
    )
    manifest = ImageManifest(
        schema_version=2,
        media_type=MANIFEST,
        config=layout.add(encode(config), CONFIG),
        layers=[layout.add(layer.content, layer.descriptor.media_type)],
    )
    push_image(layout, layout.add_document(manifest, platform=platform), name)
