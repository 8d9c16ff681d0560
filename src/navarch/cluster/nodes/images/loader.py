"""`load_image`: unpacks an image of an OCI layout once, and names it among the images of a cluster.

`ImagesWatch` removes unpacked images that have lost their name and that no container runs.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Final

from navarch._base.clock import Clock
from navarch._base.tasks import uninterrupted
from navarch.cluster.nodes.images.image import Image
from navarch.cluster.nodes.images.images import Images
from navarch.errors import ConfigError
from navarch.oci.documents import Descriptor, Platform
from navarch.oci.layout import Layout
from navarch.oci.reference import Reference
from navarch.oci.unpacked_images import UnpackedImage, UnpackedImages

_log = logging.getLogger("navarch.nodes")

_LOOK_SECONDS: Final = 2.0


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


class ImagesWatch:
    """Reads the file of images again and again, so that a fault is known before a container needs it.

    Removes the unpacked images in `folder` that have no name any more, and that no container holds.
    """

    def __init__(self, images: Images, folder: Path, clock: Clock) -> None:
        self._images = images
        self._unpacked = UnpackedImages(folder)
        self._clock = clock

    async def run(self) -> None:
        """Runs until it is cancelled."""
        while True:
            self._images.refresh()
            if self._unpacked.roots() and self._images.fault is None:
                await uninterrupted(asyncio.to_thread(self._remove_unused))
            await self._clock.sleep(_LOOK_SECONDS)

    def _remove_unused(self) -> None:
        try:
            if self._unpacked.roots() - self._kept():
                with self._unpacked.locked():
                    self._unpacked.sweep(self._kept())
        except (ConfigError, OSError) as error:
            _log.warning("removing unused images failed: %s; retried in %d s", error, _LOOK_SECONDS)

    def _kept(self) -> set[Path]:
        return {Path(root) for root in self._images.roots()}


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
