"""Images are unpacked once, whole, and only if they are what their digests say."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from navarch.errors import ImageError
from navarch.oci.archive import opened, write_archive
from navarch.oci.documents import ImageManifest, Platform
from navarch.oci.file_tree import FileTree
from navarch.oci.layout import Layout
from navarch.oci.unpacked_images import UnpackedImages
from oci.tiny_images import MACHINE, add_image, add_index

_OTHER = Platform(architecture="s390x")


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """An empty layout."""
    return Layout.create(tmp_path / "layout")


@pytest.fixture
def unpacked(tmp_path: Path) -> UnpackedImages:
    """No images yet."""
    images = UnpackedImages(tmp_path / "images")
    with images.locked():
        return images


def _tree(**files: str) -> FileTree:
    tree = FileTree()
    for path, text in files.items():
        tree.add_file(path.replace("__", "/"), text.encode())
    return tree


def test_later_layers_cover_earlier_ones(layout: Layout, unpacked: UnpackedImages) -> None:
    """Files are replaced and removed by later layers; modes are kept, and links never lead out of the image."""
    first, second = _tree(app__a="1", app__b="1"), _tree(app__a="2", **{"app__.wh.b": ""})
    second.add_directory("tmp", mode=0o1777)
    second.add_link("app/absolute", "/app/a")
    second.add_link("app/up", "../../../../etc/passwd")
    found = unpacked.unpack(layout, add_image(layout, first, second, user="7", cmd=["x"]), MACHINE)
    assert sorted(each.name for each in (found.root / "app").iterdir()) == ["a", "absolute", "up"]
    assert (found.root / "app" / "absolute").read_text() == "2"
    assert (found.root / "app" / "up").readlink() == Path("../etc/passwd")
    assert stat.S_IMODE((found.root / "tmp").stat().st_mode) == 0o1777
    assert found.config.config is not None
    assert (found.config.config.user, found.config.config.cmd) == ("7", ["x"])


def test_image_is_unpacked_once(layout: Layout, unpacked: UnpackedImages) -> None:
    """Several loaders at once unpack one copy; later ones need no layer any more, and nothing else is left."""
    image = add_index(layout, add_image(layout, _tree(a="1")), add_image(layout, _tree(a="2"), platform=_OTHER))

    def load(_: int) -> Path:
        with unpacked.locked():
            return unpacked.unpack(layout, image, MACHINE).root

    with ThreadPoolExecutor(4) as pool:
        roots = set(pool.map(load, range(4)))
    assert len(roots) == 1
    manifest = layout.image(image, MACHINE)[1]
    layout.path(manifest.layers[0].digest).unlink()
    assert unpacked.unpack(layout, image, MACHINE).root in roots
    assert sorted(each.name for each in unpacked.folder.iterdir()) == [".lock", roots.pop().parent.name]


def test_interrupted_unpacking_leaves_no_image(
    layout: Layout, unpacked: UnpackedImages, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk leaves nothing; what a killed process has left is removed by the next."""
    image = add_image(layout, _tree(a="1"))
    (unpacked.folder / ".new-killed").mkdir()
    with monkeypatch.context() as patched:
        patched.setattr(FileTree, "write_to", _full_disk)
        with pytest.raises(OSError, match="No space left"):
            unpacked.unpack(layout, image, MACHINE)
    assert [each.name for each in unpacked.folder.iterdir()] == [".lock"]
    assert (unpacked.unpack(layout, image, MACHINE).root / "a").read_text() == "1"


def _full_disk(self: FileTree, folder: Path) -> None:
    raise OSError(28, "No space left on device")


def test_image_of_another_platform_is_refused(layout: Layout, unpacked: UnpackedImages) -> None:
    """Neither an image nor an index without this machine's platform is unpacked."""
    other = add_image(layout, _tree(a="1"), platform=_OTHER)
    with pytest.raises(ImageError, match=f"expected an image for {MACHINE}, got one for linux/s390x"):
        unpacked.unpack(layout, other, MACHINE)
    with pytest.raises(ImageError, match=f"expected an image for {MACHINE}, got linux/s390x"):
        unpacked.unpack(layout, add_index(layout, other), MACHINE)


def test_damaged_layer_is_refused(layout: Layout, unpacked: UnpackedImages) -> None:
    """A layer that is missing, or not the one that the configuration names, leaves no image."""
    image = add_image(layout, _tree(a="1"))
    manifest = layout.manifest(image)
    assert isinstance(manifest, ImageManifest)
    layer = layout.path(manifest.layers[0].digest)
    other = layout.manifest(add_image(layout, _tree(a="2")))
    assert isinstance(other, ImageManifest)
    layer.write_bytes(layout.path(other.layers[0].digest).read_bytes())
    with pytest.raises(ImageError, match="remove the damaged file"):
        unpacked.unpack(layout, image, MACHINE)
    layer.unlink()
    with pytest.raises(ImageError, match="expected a layer, got no file"):
        unpacked.unpack(layout, image, MACHINE)
    assert [each.name for each in unpacked.folder.iterdir()] == [".lock"]


def test_unused_images_are_swept(layout: Layout, unpacked: UnpackedImages) -> None:
    """Images that nothing names are removed, also those whose folders cannot be written."""
    kept = unpacked.unpack(layout, add_image(layout, _tree(a="1")), MACHINE)
    fixed = FileTree()
    fixed.add_directory("fixed", mode=0o555)
    fixed.add_file("fixed/a", b"")
    unpacked.unpack(layout, add_image(layout, fixed), MACHINE)
    assert unpacked.sweep({kept.root}) == 1
    assert (kept.root / "a").is_file()


def test_archive_has_one_image(layout: Layout, tmp_path: Path, unpacked: UnpackedImages) -> None:
    """An archive gives the image back under its name; the same image gives the same bytes."""
    image = add_image(layout, _tree(a="1"))
    layout.tag("other:1", add_image(layout, _tree(a="2")))
    for name in ("one.tar", "two.tar"):
        write_archive(layout, image, "registry.example.com/app:v1", tmp_path / name)
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()
    with opened(tmp_path / "one.tar") as archived:
        assert list(archived.names) == ["registry.example.com/app:v1"]
        found = unpacked.unpack(archived, archived.names["registry.example.com/app:v1"], MACHINE)
    assert (found.root / "a").read_text() == "1"
    with opened(layout.folder) as folder:
        assert list(folder.names) == ["other:1"]


@pytest.mark.parametrize("content", [b"", b"rubbish", b"\x1f\x8b rubbish"])
def test_file_that_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    """The error names the file."""
    path = tmp_path / "image.tar"
    path.write_bytes(content)
    with pytest.raises(ImageError, match=r"image\.tar: expected"), opened(path):
        pass
    with pytest.raises(ImageError, match=r"absent\.tar: expected"), opened(tmp_path / "absent.tar"):
        pass
