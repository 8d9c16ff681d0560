"""Describes an image of a layout: its platforms, layers and packages."""

from __future__ import annotations

import msgspec

from navarch.errors import ImageError
from navarch.oci.documents import Descriptor, ImageIndex, ImageManifest, Platform, decode_config
from navarch.oci.layout import Layout
from navarch.project.image.sbom import SPDX

_LARGEST_SBOM = 64 * 2**20


class InspectedLayer(msgspec.Struct, frozen=True, kw_only=True):
    """A layer."""

    digest: str
    size: int
    created_by: str


class InspectedPackage(msgspec.Struct, frozen=True, kw_only=True):
    """A package, as the SBOM names it."""

    type: str
    name: str
    version: str
    license: str


class InspectedPlatform(msgspec.Struct, frozen=True, kw_only=True):
    """An image for one platform."""

    platform: str
    digest: str
    size: int
    user: str
    entrypoint: list[str]
    labels: dict[str, str]
    layers: list[InspectedLayer]
    packages: list[InspectedPackage]


class InspectedImage(msgspec.Struct, frozen=True, kw_only=True):
    """An image with all of its platforms."""

    digest: str
    platforms: list[InspectedPlatform]


class _PackageUrl(msgspec.Struct, rename="camel"):
    reference_locator: str = ""


class _SpdxPackage(msgspec.Struct, rename="camel"):
    name: str
    version_info: str = ""
    license_declared: str = ""
    external_refs: list[_PackageUrl] = []


class _SpdxDocument(msgspec.Struct):
    packages: list[_SpdxPackage] = []


def inspect_image(layout: Layout, root: Descriptor) -> InspectedImage:
    """Returns what the image consists of. Raises `ImageError` for a damaged one."""
    document = layout.manifest(root)
    images = document.manifests if isinstance(document, ImageIndex) else [root]
    return InspectedImage(digest=root.digest, platforms=[_platform(layout, each) for each in images])


def _platform(layout: Layout, image: Descriptor) -> InspectedPlatform:
    manifest = layout.manifest(image)
    if not isinstance(manifest, ImageManifest):
        raise ImageError(f"{image.digest}: expected an image, got an index in an index")
    config = decode_config(layout.read(manifest.config.digest), where=manifest.config.digest)
    process = config.config
    made = [each.created_by for each in config.history or () if not each.empty_layer]
    made += [""] * (len(manifest.layers) - len(made))
    return InspectedPlatform(
        platform=str(image.platform or Platform(os=config.os, architecture=config.architecture)),
        digest=image.digest,
        size=sum(each.size for each in manifest.layers),
        user=process.user if process else "",
        entrypoint=(process.entrypoint if process else None) or [],
        labels=(process.labels if process else None) or {},
        layers=[
            InspectedLayer(digest=each.digest, size=each.size, created_by=what)
            for each, what in zip(manifest.layers, made, strict=False)
        ],
        packages=_packages(layout, image),
    )


def _packages(layout: Layout, image: Descriptor) -> list[InspectedPackage]:
    """Returns the packages of the image's SBOM; none without one."""
    found = []
    for referrer in layout.referrers({image.digest}):
        manifest = layout.manifest(referrer)
        if isinstance(manifest, ImageManifest) and manifest.artifact_type == SPDX:
            for layer in manifest.layers:
                content = layout.read(layer.digest, most=_LARGEST_SBOM)
                found += msgspec.json.decode(content, type=_SpdxDocument).packages
    return [
        InspectedPackage(
            type=address.removeprefix("pkg:").partition("/")[0],
            name=each.name,
            version=each.version_info,
            license=each.license_declared if each.license_declared != "NOASSERTION" else "",
        )
        for each in found
        for address in [reference.reference_locator for reference in each.external_refs]
    ]
