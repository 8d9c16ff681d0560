"""A layout has whole blobs, and finds an image by name and platform."""

from __future__ import annotations

from pathlib import Path

import pytest

from navarch.errors import ImageError
from navarch.oci.documents import CONFIG, INDEX, MANIFEST, Descriptor, ImageIndex, ImageManifest, Platform, digest_of
from navarch.oci.layers import pack
from navarch.oci.layout import Layout
from oci.test_layers import _tree

_AMD64, _ARM64 = Platform(architecture="amd64"), Platform(architecture="arm64")


def _image(layout: Layout, platform: Platform) -> Descriptor:
    layer = pack(_tree())
    layout.add(layer.content, layer.descriptor.media_type)
    config = layout.add(b'{"architecture":"%s"}' % platform.architecture.encode(), CONFIG)
    manifest = ImageManifest(schema_version=2, media_type=MANIFEST, config=config, layers=[layer.descriptor])
    return layout.add_document(manifest, platform=platform)


def _index(layout: Layout) -> Descriptor:
    images = [_image(layout, platform) for platform in (_AMD64, _ARM64)]
    return layout.add_document(ImageIndex(schema_version=2, media_type=INDEX, manifests=images))


def test_image_is_found_by_name_and_platform(tmp_path: Path) -> None:
    """An index leads to the image of the machine's platform; an absent platform is named with the present ones."""
    layout = Layout.create(tmp_path)
    layout.tag("app:v1", _index(layout))
    again = Layout.open(tmp_path)
    found, manifest = again.image(again.names["app:v1"], _ARM64)
    assert found.platform == _ARM64
    assert again.read(manifest.config.digest) == b'{"architecture":"arm64"}'
    with pytest.raises(ImageError, match="linux/amd64, linux/arm64"):
        again.image(again.names["app:v1"], Platform(architecture="s390x"))


def test_blob_of_another_digest_leaves_nothing(tmp_path: Path) -> None:
    """A blob is stored under its digest or not at all, and no temporary file remains."""
    layout = Layout.create(tmp_path)
    promised = Descriptor(media_type=CONFIG, digest=digest_of(b"right"), size=5)
    with pytest.raises(ImageError, match="expected sha256"), layout.writing(promised) as file:
        file.write(b"wrong")
    assert not list((tmp_path / "blobs" / "sha256").iterdir())
    with layout.writing(promised) as file:
        file.write(b"right")
    assert layout.read(promised.digest) == b"right"


def test_damaged_blob_is_refused(tmp_path: Path) -> None:
    """A blob that was changed on disk is never used."""
    layout = Layout.create(tmp_path)
    blob = layout.add(b"content", CONFIG)
    layout.path(blob.digest).write_bytes(b"changed")
    with pytest.raises(ImageError, match="remove the damaged file"):
        layout.read(blob.digest)


def test_sweep_keeps_what_named_images_need(tmp_path: Path) -> None:
    """Blobs without a name that leads to them are removed; a moved name frees the last image."""
    layout = Layout.create(tmp_path)
    layout.tag("app:v1", _index(layout))
    layout.add(b"left", CONFIG)
    assert layout.sweep() == 1
    kept = list(layout.reachable(layout.names.values()))
    assert [each.media_type for each in kept][-1] == INDEX
    assert all(each.digest in layout for each in kept)
    layout.untag("app:v1")
    assert layout.sweep() == len(kept)


def test_folder_without_a_layout_is_refused(tmp_path: Path) -> None:
    """A wrong path is an error that says what was expected."""
    with pytest.raises(ImageError, match="expected a folder with an OCI layout"):
        Layout.open(tmp_path)
