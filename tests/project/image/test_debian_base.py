"""A base of packages is complete without their scripts, and hostile packages are refused."""

from __future__ import annotations

import gzip
import itertools
import lzma
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from navarch.errors import ImageError
from navarch.oci.file_tree import FileTree
from navarch.oci.layers import pack
from navarch.project.image.debian import base_tree
from navarch.project.image.debian import deb_file as deb_file_module
from navarch.project.image.debian.deb_file import read_control, unpack_files
from project.image.debian_archive import Files, ar, deb, tar

_CONTROL = b"Package: app\nVersion: 1\nArchitecture: amd64\n"


def _files(folder: Path, *packages: bytes) -> list[Path]:
    files = [folder / f"{number}.deb" for number in range(len(packages))]
    for file, content in zip(files, packages, strict=True):
        file.write_bytes(content)
    return files


def _python_packages() -> list[bytes]:
    return [
        deb(
            "base-files",
            files={
                "usr/lib/os-release": b"ID=debian\n",
                "etc/os-release": "../usr/lib/os-release",
                "lib": "usr/lib",
                "usr/share/zoneinfo/Etc/UTC": b"TZif",
                "usr/share/doc/base-files/README.gz": b"...",
            },
        ),
        deb("libc6", files={"lib/x86_64-linux-gnu/libc.so.6": b"libc", "lib64/ld-linux-x86-64.so.2": b"loader"}),
        deb(
            "ca-certificates",
            architecture="all",
            files={
                "usr/share/ca-certificates/mozilla/Zeta.crt": b"ZETA",
                "usr/share/ca-certificates/mozilla/Alpha.crt": b"ALPHA\n",
                "usr/share/ca-certificates/mozilla/README": b"no certificate",
            },
        ),
        deb(
            "python3.13-minimal",
            "3.13.5-2",
            Description="interpreter\n of Python",
            files={
                "usr/bin/python3.13": b"\x7fELF",
                "usr/share/man/man1/python3.13.1.gz": b"manual",
                "usr/share/doc/python3.13-minimal/copyright": b"(c)",
                "usr/share/doc/python3.13-minimal/changelog.gz": b"...",
                "usr/lib/x86_64-linux-gnu/gconv/IBM1390.so": b"...",
            },
        ),
    ]


def test_base_has_what_the_scripts_of_its_packages_would_make(tmp_path: Path) -> None:
    """Links into /usr, certificates, users, a folder for temporary files, and Python by its short names."""
    tree = base_tree(_files(tmp_path, *_python_packages()))
    assert tree.read("usr/lib/x86_64-linux-gnu/libc.so.6") == b"libc"
    assert tree.read("lib64/ld-linux-x86-64.so.2") == b"loader"
    assert [entry.target for path, entry in tree if path in {"bin", "lib", "lib64", "sbin"}] == [
        "usr/bin",
        "usr/lib",
        "usr/lib64",
        "usr/sbin",
    ]
    assert tree.read("etc/os-release") == b"ID=debian\n"
    assert tree.read("etc/localtime") == b"TZif"
    assert tree.read("etc/ssl/certs/ca-certificates.crt") == b"ALPHA\nZETA\n"
    assert tree.read("usr/lib/ssl/cert.pem") == b"ALPHA\nZETA\n"
    assert b"nonroot:x:65532:65532:nonroot:/home/nonroot:/usr/sbin/nologin\n" in (tree.read("etc/passwd") or b"")
    assert b"nonroot:x:65532:\n" in (tree.read("etc/group") or b"")
    assert b"hosts: files dns" in (tree.read("etc/nsswitch.conf") or b"")
    temporary, home = tree.find("tmp"), tree.find("home/nonroot")
    assert temporary is not None
    assert temporary.mode == 0o1777
    assert home is not None
    assert (home.mode, home.user) == (0o700, 65532)
    for path in ("usr/bin/python3", "usr/local/bin/python3", "usr/local/bin/python"):
        assert tree.resolve(path) == "usr/bin/python3.13"


def test_base_leaves_out_documentation_but_no_licence(tmp_path: Path) -> None:
    """Nobody reads manuals in a container; copyright files go wherever the programs go."""
    paths = [path for path, _ in base_tree(_files(tmp_path, *_python_packages()))]
    assert "usr/share/doc/python3.13-minimal/copyright" in paths
    assert not [path for path in paths if "man1" in path or "changelog" in path or "README" in path or "gconv" in path]


def test_base_lists_its_packages_where_scanners_look(tmp_path: Path) -> None:
    """One control file for each package, and the digests of those files that are in the image."""
    tree = base_tree(_files(tmp_path, *_python_packages()))
    listed = [path for path, entry in tree if path.startswith("var/lib/dpkg/status.d/") and entry.kind == "file"]
    assert [path.rpartition("/")[2] for path in listed] == [
        "base-files",
        "base-files.md5sums",
        "ca-certificates",
        "libc6",
        "libc6.md5sums",
        "python3.13-minimal",
        "python3.13-minimal.md5sums",
    ]
    control = (tree.read("var/lib/dpkg/status.d/python3.13-minimal") or b"").decode()
    assert control.startswith("Package: python3.13-minimal\nVersion: 3.13.5-2\nArchitecture: amd64\n")
    sums = (tree.read("var/lib/dpkg/status.d/python3.13-minimal.md5sums") or b"").decode().splitlines()
    assert [line.partition("  ")[2] for line in sums] == [
        "usr/bin/python3.13",
        "usr/share/doc/python3.13-minimal/copyright",
    ]


def test_base_is_the_same_in_whatever_order_packages_come(tmp_path: Path) -> None:
    """The layer's digest depends on the packages alone."""
    files = _files(tmp_path, *_python_packages())
    assert len({pack(base_tree(order)).diff_id for order in itertools.permutations(files)}) == 1


def test_base_of_other_packages_has_no_python(tmp_path: Path) -> None:
    """The same function makes images of any program; what belongs to Python or TLS is not in them."""
    tree = base_tree(_files(tmp_path, deb("memcached", architecture="arm64", files={"usr/bin/memcached": b"\x7fELF"})))
    paths = [path for path, _ in tree]
    assert "usr/bin/memcached" in paths
    assert "lib64" not in paths
    assert not [path for path in paths if "python" in path or "ssl" in path]


def test_base_of_two_architectures_is_refused(tmp_path: Path) -> None:
    """Packages of one image run on one machine."""
    files = _files(tmp_path, deb("one"), deb("two", architecture="arm64"), deb("three", architecture="all"))
    with pytest.raises(ImageError, match="expected packages of one architecture, got those of amd64 and arm64"):
        base_tree(files)


@pytest.mark.parametrize("packed", ["", ".gz", ".xz"])
def test_package_may_be_packed_in_three_ways(packed: str, tmp_path: Path) -> None:
    """xz, gzip, or not at all."""
    ways: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}
    parts = {f"control.tar{packed}": {"control": _CONTROL}, f"data.tar{packed}": {"usr/bin/app": b"program"}}
    archive = ar({"debian-binary": b"2.0\n"} | {name: ways[packed](tar(files)) for name, files in parts.items()})
    assert base_tree(_files(tmp_path, archive)).read("usr/bin/app") == b"program"


def _member(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"../../etc/passwd": b"root"}, "expected a path inside the archive"),
        ({"device": _member("dev/null", tarfile.CHRTYPE)}, "got a device or a pipe"),
        ({"pipe": _member("run/pipe", tarfile.FIFOTYPE)}, "got a device or a pipe"),
        ({"hard": _member("etc/shadow", tarfile.LNKTYPE, "../../etc/shadow")}, "expected a path inside the archive"),
        ({"hard": _member("etc/copy", tarfile.LNKTYPE, "etc/none")}, "expected a hard link to a file of the image"),
        ({"etc/app": b"file", "etc/app/below": b"file"}, "expected a directory at etc/app, got a file"),
        ({"loop": "loop", "loop/file": b""}, "expected at most 40 links"),
    ],
)
def test_package_with_files_that_no_image_may_have_is_refused(files: Files, expected: str, tmp_path: Path) -> None:
    """Paths that leave the image, devices, pipes, and links to nothing; the error names the package's file."""
    with pytest.raises(ImageError, match=rf"^0\.deb: .*{expected}"):
        base_tree(_files(tmp_path, deb("app", files=files)))


def test_link_that_points_out_of_the_image_stays_in_it(tmp_path: Path) -> None:
    """A file below such a link lands inside the tree, as in a container."""
    files: Files = {"escape": "/../../outside", "escape/file": b"inside"}
    tree = base_tree(_files(tmp_path, deb("app", files=files)))
    assert tree.read("outside/file") == b"inside"


_GOOD = {"debian-binary": b"2.0\n", "control.tar": tar({"control": _CONTROL})}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "got a file that is no ar archive"),
        (b"PK\x03\x04 a zip archive", "got a file that is no ar archive"),
        (b"!<arch>\n" + b"x" * 60, "got a damaged ar archive"),
        (b"!<arch>\n" + b"x" * 10, "got a damaged ar archive"),
        (ar({**_GOOD})[:-5000], "expected a whole Debian package"),
        (ar({**_GOOD, "debian-binary": b"3.0\n"}), "expected a Debian package of format 2"),
        (ar({"debian-binary": b"2.0\n"}), "expected a Debian package with control.tar, got none"),
        (ar(_GOOD), "expected a Debian package with data.tar, got none"),
        (
            ar({**_GOOD, "data.tar.zst": b"\x28\xb5\x2f\xfd"}),
            r"data.tar.zst: expected a package .* xz or gzip.*got .zst",
        ),
        (ar({**_GOOD, "data.tar.xz": b"no xz at all"}), "got a damaged data.tar"),
        (ar({**_GOOD, "data.tar.xz": lzma.compress(tar({"a": b"b" * 4096}))[:-40]}), "got a damaged data.tar"),
        (ar({**_GOOD, "data.tar.gz": gzip.compress(b"no tar" * 1000)}), "got a damaged data.tar"),
        (
            ar({**_GOOD, "control.tar": tar({"md5sums": b""}), "data.tar": tar({})}),
            "expected the fields Architecture, Package, Version",
        ),
        (ar({**_GOOD, "control.tar": tar({"control": b"\xff\xfe"}), "data.tar": tar({})}), "got a damaged control.tar"),
        (
            ar({**_GOOD, "control.tar": tar({"control": _CONTROL.replace(b"app", b"../app")}), "data.tar": tar({})}),
            "expected a package's name",
        ),
    ],
)
def test_damaged_package_is_refused(content: bytes, expected: str, tmp_path: Path) -> None:
    """Whatever is wrong with a file, the error names the file and what is wrong."""
    with pytest.raises(ImageError, match=rf"^0\.deb: .*{expected}"):
        base_tree(_files(tmp_path, content))


def test_package_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few bytes can be packed zeros without end: reading stops at a limit."""
    monkeypatch.setattr(deb_file_module, "LARGEST_CONTENT", 100_000)
    (file,) = _files(tmp_path, deb("app", files={"zeros": bytes(10_000_000)}))
    assert file.stat().st_size < 10_000
    with pytest.raises(ImageError, match="it has more than 100000 bytes"):
        unpack_files(file, FileTree(), keep=lambda _: True)


def test_control_file_is_read_without_its_scripts(tmp_path: Path) -> None:
    """A package says who it is; what its scripts would do is nobody's business here."""
    (file,) = _files(tmp_path, deb("app", "2:1.0-1", Depends="libc6"))
    found = read_control(file)
    assert (found.name, found.fields["Version"], found.fields["Depends"]) == ("app", "2:1.0-1", "libc6")
    assert "postinst" not in found.control
