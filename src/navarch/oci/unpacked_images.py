"""`UnpackedImages`: the files of images in a folder, each image once; `flatten` puts its layers together."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from navarch.errors import ImageError
from navarch.oci.documents import Descriptor, ImageConfig, ImageManifest, Platform, decode_config
from navarch.oci.file_tree import FileTree
from navarch.oci.layers import unpack
from navarch.oci.layout import Layout

_LOCK: Final = ".lock"
_NEW: Final = ".new-"
_CONFIG: Final = "config.json"
_FILES: Final = "rootfs"


class UnpackedImage(NamedTuple):
    """The files of an image for one platform."""

    digest: str
    """The digest of its manifest."""
    root: Path
    config: ImageConfig


class UnpackedImages:
    """A folder of unpacked images. An image is there whole or not at all, whoever is killed while it is unpacked.

    Nobody changes an unpacked image. Whoever unpacks or removes one holds the lock, `with images.locked():`, until it has
    noted what it did.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def unpack(self, layout: Layout, descriptor: Descriptor, platform: Platform) -> UnpackedImage:
        """Returns the image for the platform; unpacks it if it is not there yet.

        Raises `ImageError` for an image of another platform, a missing or damaged blob, and a layer that is no layer.
        """
        found, manifest = layout.image(descriptor, platform)
        content = layout.read(manifest.config.digest)
        config = decode_config(content, where=str(layout.path(manifest.config.digest)))
        if not config.platform.fits(platform):
            raise ImageError(
                f"{found.digest}: expected an image for {platform}, got one for {config.platform}; "
                f"build or pull it for {platform}"
            )
        place = self.folder / found.digest.partition(":")[2]
        if not place.is_dir():
            self._write(place, flatten(layout, manifest, config), content)
        return UnpackedImage(found.digest, place / _FILES, config)

    def roots(self) -> set[Path]:
        """Returns the roots of all images."""
        if not self.folder.is_dir():
            return set()
        return {each / _FILES for each in self.folder.iterdir() if not each.name.startswith(".")}

    def sweep(self, kept: Collection[Path]) -> int:
        """Removes the images whose root is not in `kept`, which nobody may be using, and returns how many."""
        unused = self.roots().difference(kept)
        for each in unused:
            left = each.parent.rename(each.parent.with_name(f"{_NEW}{each.parent.name}"))  # half of one is no image
            shutil.rmtree(left)
        return len(unused)

    def _write(self, place: Path, tree: FileTree, config: bytes) -> None:
        for left in self.folder.glob(f"{_NEW}*"):  # of a process that was killed
            shutil.rmtree(left)
        fresh = Path(tempfile.mkdtemp(prefix=_NEW, dir=self.folder))
        try:
            (fresh / _FILES).mkdir()
            tree.write_to(fresh / _FILES)
            (fresh / _FILES).chmod(0o755)
            (fresh / _CONFIG).write_bytes(config)
            fresh.chmod(0o755)
            fresh.rename(place)
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Makes the folder, and waits until no other process has the lock."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / _LOCK).open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def flatten(layout: Layout, manifest: ImageManifest, config: ImageConfig) -> FileTree:
    """Returns the files of all layers, the later over the earlier ones.

    Raises `ImageError` if a layer is missing, or is not the one that the configuration names.
    """
    if len(manifest.layers) != len(config.rootfs.diff_ids):
        raise ImageError(
            f"{layout.folder}: expected as many layers as the configuration names, {len(config.rootfs.diff_ids)}, "
            f"got {len(manifest.layers)}; pull or build the image again"
        )
    tree = FileTree()
    for layer, expected in zip(manifest.layers, config.rootfs.diff_ids, strict=True):
        path = layout.path(layer.digest)
        try:
            with path.open("rb") as file:
                found = unpack(file, tree, where=str(path))
        except FileNotFoundError:
            raise ImageError(f"{path}: expected a layer, got no file; pull or build the image again") from None
        if found != expected:
            raise ImageError(f"{path}: expected {expected} before compression, got {found}: remove the damaged file")
    return tree
