"""Small images for tests of registries."""

from __future__ import annotations

import random
from pathlib import Path

from navarch._base.backoff import Backoff
from navarch.oci.documents import (
    CONFIG,
    EMPTY,
    EMPTY_CONTENT,
    INDEX,
    LAYER_GZIP,
    MANIFEST,
    Descriptor,
    ImageConfig,
    ImageIndex,
    ImageManifest,
    Platform,
    RootFs,
    digest_of,
    encode,
)
from navarch.oci.layout import Layout
from navarch.oci.registry import DockerCredentials, RegistryClient, RegistryOptions

AMD64, ARM64 = Platform(architecture="amd64"), Platform(architecture="arm64")


def image(layout: Layout, platform: Platform = AMD64, *, layer: bytes = b"layer") -> Descriptor:
    """Returns an image of one layer, which is no real archive: registries do not look into it."""
    content = layout.add(layer, LAYER_GZIP)
    config = ImageConfig(
        architecture=platform.architecture,
        os=platform.os,
        rootfs=RootFs(type="layers", diff_ids=[digest_of(layer)]),
    )
    described = layout.add(encode(config), CONFIG)
    manifest = ImageManifest(schema_version=2, media_type=MANIFEST, config=described, layers=[content])
    return layout.add_document(manifest, platform=platform)


def index(layout: Layout, *, layer: bytes = b"layer") -> Descriptor:
    """Returns an index of two images with different layers."""
    images = [image(layout, each, layer=layer + each.architecture.encode()) for each in (AMD64, ARM64)]
    return layout.add_document(ImageIndex(schema_version=2, media_type=INDEX, manifests=images))


def artifact(layout: Layout, subject: Descriptor, kind: str = "application/spdx+json") -> Descriptor:
    """Returns an artifact about the subject."""
    empty = layout.add(EMPTY_CONTENT, EMPTY)
    content = layout.add(b'{"spdxVersion": "SPDX-2.3"}', kind)
    manifest = ImageManifest(
        schema_version=2, media_type=MANIFEST, artifact_type=kind, config=empty, layers=[content], subject=subject
    )
    return layout.add_document(manifest)


def noise(size: int, seed: int = 1) -> bytes:
    """Returns bytes that are the same in each run."""
    return random.Random(seed).randbytes(size)


def layout_in(folder: Path) -> Layout:
    """Returns an empty layout."""
    return Layout.create(folder)


def plain_client(**options: object) -> RegistryClient:
    """Returns a client for loopback, without the credentials of whoever runs the test and with short pauses."""
    chosen = {
        "plain_http": True,
        "credentials": DockerCredentials([]),
        "backoff": Backoff(initial=0.001, maximum=0.01),
        **options,
    }
    return RegistryClient(RegistryOptions(**chosen))  # type: ignore[arg-type] # the tests name them
