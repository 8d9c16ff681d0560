"""`base_tree`: the files of an image from Debian packages, with the work of their maintainer scripts done."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from navarch.errors import ImageError
from navarch.oci.file_tree import FileTree
from navarch.project.image.debian.deb_file import ControlFiles, read_control, unpack_files

NONROOT: Final = 65532
"""The user of the container, under the number that distroless images gave it."""
_DOCUMENTATION: Final = "usr/share/doc/"
_LEFT_OUT: Final = (
    "usr/games/",
    "usr/include/",
    "usr/lib/binfmt.d/",  # for the kernel of a machine
    "usr/share/applications/",
    "usr/share/bash-completion/",
    "usr/share/binfmts/",
    "usr/share/bug/",
    "usr/share/doc-base/",
    "usr/share/info/",
    "usr/share/lintian/",
    "usr/share/locale/",  # translations of programs
    "usr/share/man/",
    "usr/share/menu/",
    "usr/share/pixmaps/",
)
_GCONV: Final = re.compile(r"usr/lib/[a-z0-9_]+-linux-gnu/gconv")
"""Old character sets for `iconv`, a sixth of the base: Python has codecs of its own, and the C library has UTF-8 built in."""
_MERGED: Final = ("bin", "lib", "sbin")
_MERGED_AMD64: Final = (*_MERGED, "lib64")
_CERTIFICATES: Final = "usr/share/ca-certificates"
_BUNDLE: Final = "etc/ssl/certs/ca-certificates.crt"
_TIME_ZONE: Final = "usr/share/zoneinfo/Etc/UTC"
_PACKAGES: Final = "var/lib/dpkg/status.d"
_PYTHON: Final = re.compile(r"usr/bin/(python3\.\d+)")
_USERS: Final = (("root", 0, "/root"), ("nobody", 65534, "/nonexistent"), ("nonroot", NONROOT, "/home/nonroot"))
_NAME_SERVICES: Final = b"passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n"


def base_tree(debs: Iterable[Path]) -> FileTree:
    """Returns the files of these packages, ready to run.

    The same packages give the same tree, in whatever order they come. No script of a package runs; what an image needs
    of their work is done here:

    - `/bin`, `/lib`, `/lib64` and `/sbin` are links into `/usr`;
    - the bundle of CA certificates, also where OpenSSL looks for it;
    - users root, nobody and nonroot (65532) in `/etc/passwd` and `/etc/group`, and `/etc/nsswitch.conf`;
    - `/tmp` for everybody, `/etc/localtime` in UTC;
    - `python3` and `python`, also in `/usr/local/bin`;
    - the list of packages in `/var/lib/dpkg/status.d`, where scanners look in images without dpkg.

    There is no cache of ldconfig: the loader finds Debian's libraries in the folders that it has built in. Manuals,
    translations and documentation are left out, copyright files are not. Raises `ImageError` for a damaged package, and
    for packages of two architectures.
    """
    packages = sorted(((read_control(file), file) for file in debs), key=lambda each: each[0].name)
    tree = FileTree()
    _merge_usr(tree, [control for control, _ in packages])
    for _, file in packages:
        unpack_files(file, tree, keep=_is_kept)
    _add_certificates(tree)
    _add_users(tree)
    _add_python(tree)
    for path in ("tmp", "var/tmp"):
        tree.add_directory(path, mode=0o1777)
    if _TIME_ZONE in tree:
        tree.add_link("etc/localtime", f"/{_TIME_ZONE}")
    for control, _ in packages:
        _add_record(tree, control)
    return tree


def _is_kept(path: str) -> bool:
    if path.startswith(_DOCUMENTATION):
        return path.removeprefix(_DOCUMENTATION).partition("/")[2] in {"", "copyright"}
    return _GCONV.match(path) is None and not f"{path}/".startswith(_LEFT_OUT)


def _merge_usr(tree: FileTree, packages: Iterable[ControlFiles]) -> None:
    """Adds the links that Debian's installers make: packages may still have files in `/lib`."""
    architectures = {each.architecture for each in packages} - {"all"}
    if len(architectures) > 1:
        raise ImageError(f"expected packages of one architecture, got those of {' and '.join(sorted(architectures))}")
    for folder in _MERGED_AMD64 if architectures == {"amd64"} else _MERGED:
        tree.add_directory(f"usr/{folder}")
        tree.add_link(folder, f"usr/{folder}")


def _add_certificates(tree: FileTree) -> None:
    """Joins the certificates; a bundle is enough, so neither single files nor links under their hashes are needed."""
    found = [entry.content for path, entry in tree if path.startswith(f"{_CERTIFICATES}/") and path.endswith(".crt")]
    if not found:
        return
    tree.add_file(_BUNDLE, b"".join(content.rstrip(b"\n") + b"\n" for content in found))
    tree.remove(_CERTIFICATES)
    tree.add_link("usr/lib/ssl/cert.pem", f"/{_BUNDLE}")
    tree.add_link("usr/lib/ssl/certs", "/etc/ssl/certs")


def _add_users(tree: FileTree) -> None:
    users = "".join(f"{name}:x:{number}:{number}:{name}:{home}:/usr/sbin/nologin\n" for name, number, home in _USERS)
    groups = "".join(f"{name}:x:{number}:\n" for name, number, _ in _USERS)
    tree.add_file("etc/passwd", users.encode())
    tree.add_file("etc/group", groups.encode())
    tree.add_file("etc/nsswitch.conf", _NAME_SERVICES)
    tree.add_directory("root", mode=0o700)
    tree.add_directory("home/nonroot", mode=0o700, user=NONROOT, group=NONROOT)


def _add_python(tree: FileTree) -> None:
    """Adds the names without a version, which Debian's package `python3` has, and the folder of its modules."""
    names = [matched[1] for path, _ in tree if (matched := _PYTHON.fullmatch(path)) is not None]
    if not names:
        return
    tree.add_link("usr/bin/python3", names[-1])
    tree.add_link("usr/local/bin/python3", f"/usr/bin/{names[-1]}")
    tree.add_link("usr/local/bin/python", "python3")
    tree.add_directory("usr/lib/python3/dist-packages")


def _add_record(tree: FileTree, package: ControlFiles) -> None:
    """Adds the package to the list: its control file, and the digests of those files that the image has.

    trivy, syft and grype know this folder from distroless images. A file `/var/lib/dpkg/status` beside it would list each
    package twice, and would promise a dpkg that can remove them.
    """
    tree.add_file(f"{_PACKAGES}/{package.name}", package.control.rstrip("\n").encode() + b"\n")
    kept = [line for line in package.md5sums.splitlines() if line.partition("  ")[2] in tree]
    if kept:
        tree.add_file(f"{_PACKAGES}/{package.name}.md5sums", "".join(f"{line}\n" for line in kept).encode())
