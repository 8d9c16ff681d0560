"""`load_image`: unpacks an image of an OCI layout once, and names it among the images of a cluster.

`remove_unused` removes unpacked images that lost their names.
"""

from __future__ import annotations

from pathlib import Path

from navarch.cluster.nodes.images.image import Image
from navarch.cluster.nodes.images.images import Images
from navarch.errors import ConfigError
from navarch.oci.documents import Descriptor, Platform
from navarch.oci.layout import Layout
from navarch.oci.reference import Reference
from navarch.oci.unpacked_images import UnpackedImage, UnpackedImages


def load_image(images: Images, folder: Path, layout: Layout, descriptor: Descriptor, name: str) -> Image:
    """Returns the image of this machine's platform, which containers can name from now on. Blocks while it is unpacked.

    `folder` has the unpacked images. An image that has the name loses it. Raises `ImageError` for a damaged image and one
    of another platform, `InvalidValueError` for an invalid name, `ConfigError` if the file of images cannot be written.
    """
    reference = Reference.parse(name)
    unpacked = UnpackedImages(folder)
    with unpacked.locked():
        image = _image(reference, descriptor, unpacked.unpack(layout, descriptor, Platform.of_machine()))
        images.add(image)
    return image


def remove_unused(images: Images, folder: Path) -> int:
    """Removes unpacked images that have no name any more, and returns how many; no container may run.

    While the file of images is invalid, it removes nothing.
    """
    if not folder.is_dir():
        return 0
    unpacked = UnpackedImages(folder)
    with unpacked.locked():
        try:
            return unpacked.sweep({Path(root) for root in images.roots()})
        except ConfigError:
            return 0


def _image(reference: Reference, descriptor: Descriptor, found: UnpackedImage) -> Image:
    process = found.config.config
    variables = [text.partition("=") for text in (process.env if process else None) or []]
    return Image(
        name=reference.name,
        version=reference.tag,
        argv=tuple((process.entrypoint if process else None) or ()),
        args=tuple((process.cmd if process else None) or ()),
        env={name: value for name, _, value in variables if name},
        root=str(found.root.absolute()),
        digests=tuple(dict.fromkeys((descriptor.digest, found.digest))),
        user=process.user if process else "",
        working_dir=process.working_dir if process else "",
    )
