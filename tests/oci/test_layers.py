"""Layers are packed the same way each time, and unpacked without leaving the image."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from navarch.errors import ImageError
from navarch.oci.file_tree import FileTree
from navarch.oci.layers import pack, unpack


def _tree() -> FileTree:
    tree = FileTree()
    tree.add_link("bin", "usr/bin")
    tree.add_file("bin/app", b"program", mode=0o755)
    tree.add_file("etc/app.conf", b"a=1", user=65532, group=65532)
    tree.add_directory("tmp", mode=0o1777)
    return tree


def _archive(*members: tuple[str, dict[str, object]], content: bytes = b"x") -> io.BytesIO:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, fields in members:
            member = tarfile.TarInfo(name)
            for field, value in fields.items():
                setattr(member, field, value)
            member.size = len(content) if member.isreg() else 0
            archive.addfile(member, io.BytesIO(content))
    buffer.seek(0)
    return buffer


def test_layer_holds_the_tree() -> None:
    """What was packed is unpacked with modes, owners and links, and the diff id is that of the archive."""
    layer = pack(_tree())
    tree = FileTree()
    assert unpack(io.BytesIO(layer.content), tree, where="layer") == layer.diff_id
    assert list(tree) == list(_tree())
    assert tree.read("bin/app") == b"program"


def test_layer_is_the_same_whatever_the_order() -> None:
    """Two trees with equal files give one digest."""
    other = FileTree()
    for path, entry in reversed(list(_tree())):
        if entry.kind != "directory":
            other.add(path, entry)
    other.add_directory("tmp", mode=0o1777)
    assert pack(other).content == pack(_tree()).content


def test_file_lands_where_a_link_above_it_points_to() -> None:
    """As in a container, `/bin/x` is `/usr/bin/x` where /bin is a link."""
    assert _tree().find("usr/bin/app") is not None
    assert [path for path, _ in _tree()] == ["bin", "etc", "etc/app.conf", "tmp", "usr", "usr/bin", "usr/bin/app"]


def test_upper_layer_removes_files_of_lower_ones() -> None:
    """Whiteouts remove a path; opaque ones empty a directory."""
    tree = _tree()
    unpack(_archive(("usr/bin/.wh.app", {}), ("etc/.wh..wh..opq", {}), ("etc/new", {})), tree, where="layer")
    assert [path for path, _ in tree] == ["bin", "etc", "etc/new", "tmp", "usr", "usr/bin"]


@pytest.mark.parametrize(
    ("archive", "fault"),
    [
        (lambda: _archive(("../x", {})), "leaves it"),
        (lambda: _archive(("a/../../x", {})), "leaves it"),
        (lambda: _archive(("x", {"type": tarfile.CHRTYPE})), "device"),
        (lambda: _archive(("x", {"type": tarfile.FIFOTYPE})), "device"),
        (lambda: _archive(("x", {"type": tarfile.LNKTYPE, "linkname": "/etc/passwd"})), "hard link"),
        (lambda: _archive(("x", {}), ("x/y", {})), "expected a directory at x"),
        (lambda: _archive(("a", {"type": tarfile.SYMTYPE, "linkname": "a"}), ("a/b", {})), "links"),
        (lambda: io.BytesIO(b"no archive at all" * 100), "damaged"),
        (lambda: io.BytesIO(gzip.compress(b"x" * 600)[:-9]), "damaged"),
        (lambda: io.BytesIO(b"\x28\xb5\x2f\xfd" + b"x" * 100), "zstd"),
    ],
)
def test_hostile_archive_is_refused(archive: Callable[[], io.BytesIO], fault: str) -> None:
    """Traversal, devices, links out of the image and damaged archives are errors that name the member."""
    with pytest.raises(ImageError, match=fault):
        unpack(archive(), FileTree(), where="layer")


def test_absolute_paths_and_links_stay_inside(tmp_path: Path) -> None:
    """`/x` and links to `/` and `..` are of the image, not of the machine."""
    tree = FileTree()
    link = {"type": tarfile.SYMTYPE}
    unpack(_archive(("root", {**link, "linkname": "/"}), ("up", {**link, "linkname": "../../.."})), tree, where="layer")
    unpack(_archive(("root/first", {}), ("up/second", {}), ("/third", {})), tree, where="layer")
    assert [path for path, entry in tree if entry.kind == "file"] == ["first", "second", "third"]
    tree.write_to(tmp_path)
    assert (tmp_path / "second").read_bytes() == b"x"


def test_unpacked_programs_have_no_set_uid(tmp_path: Path) -> None:
    """An image cannot leave a set-uid program on the machine."""
    tree = FileTree()
    tree.add_file("su", b"x", mode=0o4755)
    tree.write_to(tmp_path)
    assert (tmp_path / "su").stat().st_mode & 0o7777 == 0o755
