"""`.deb` files: an ar archive of two tar archives, one with files and one with what the package says about itself."""

from __future__ import annotations

import gzip
import io
import lzma
import re
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final, cast

import msgspec

from navarch.errors import ImageError
from navarch.oci.file_tree import FileTree
from navarch.oci.layers import add_member
from navarch.project.image.debian.control import parse_paragraph

LARGEST_CONTENT: Final = 2**31
"""The bytes of a package's files that we read, so that a small package cannot fill memory."""
_LARGEST_CONTROL: Final = 64 * 2**20
_ARCHIVE: Final = b"!<arch>\n"
_HEADER: Final = re.compile(rb"(?P<name>[ -~]{16})[ -~]{12}[ -~]{6}[ -~]{6}[ -~]{8}(?P<size>[0-9]+ *)`\n")
_HEADER_SIZE: Final = 60
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9+.-]+")
_CONTROL: Final = "control"
_MD5SUMS: Final = "md5sums"
_FAULTS: Final = (tarfile.TarError, lzma.LZMAError, gzip.BadGzipFile, zlib.error, EOFError, UnicodeError, ValueError)


class ControlFiles(msgspec.Struct, frozen=True, kw_only=True):
    """What a package says about itself."""

    control: str
    fields: dict[str, str]
    md5sums: str = ""
    """Its files with their digests, as scanners and auditors read them."""

    @property
    def name(self) -> str:
        return self.fields["Package"]

    @property
    def architecture(self) -> str:
        return self.fields["Architecture"]


def read_control(file: Path) -> ControlFiles:
    """Returns the control files of a package; raises `ImageError` for a damaged one."""
    found: dict[str, str] = {}
    with _opened(file, "control.tar", _LARGEST_CONTROL) as archive:
        for member in archive:
            name = member.name.removeprefix("./")
            if name in {_CONTROL, _MD5SUMS} and member.isreg() and (text := archive.extractfile(member)) is not None:
                found[name] = text.read().decode()
    fields = parse_paragraph(found.get(_CONTROL, ""), where=file.name)
    if missing := sorted({"Package", "Version", "Architecture"} - set(fields)):
        raise ImageError(f"{file.name}: expected the fields {', '.join(missing)} in its control file, got none of them")
    if not _NAME.fullmatch(fields["Package"]):
        raise ImageError(f"{file.name}: expected a package's name, got {fields['Package'][:80]!r}")
    return ControlFiles(control=found[_CONTROL], fields=fields, md5sums=found.get(_MD5SUMS, ""))


def unpack_files(file: Path, tree: FileTree, *, keep: Callable[[str], bool]) -> None:
    """Adds those files of the package to the tree that `keep` takes, asked with each path.

    Raises `ImageError` for a damaged package, and for devices, pipes and paths that leave the tree.
    """
    with _opened(file, "data.tar", LARGEST_CONTENT) as archive:
        for member in archive:
            if keep(member.name.removeprefix("./").rstrip("/")):
                add_member(archive, member, tree, file.name)


@contextmanager
def _opened(file: Path, name: str, largest: int) -> Iterator[tarfile.TarFile]:
    """Opens the tar archive of that name in the package; all faults of reading it are `ImageError`."""
    try:
        with file.open("rb") as content:
            bounded = cast("IO[bytes]", _Bounded(_part(content, name, file.name), largest))
            with tarfile.open(fileobj=bounded, mode="r|") as archive:
                yield archive
    except _FAULTS as error:
        raise ImageError(f"{file.name}: expected a whole Debian package, got a damaged {name}: {error}") from None


def _part(content: IO[bytes], wanted: str, where: str) -> IO[bytes]:
    """Returns the unpacked stream of a part of the package."""
    if content.read(len(_ARCHIVE)) != _ARCHIVE:
        raise ImageError(f"{where}: expected a Debian package, got a file that is no ar archive")
    while header := content.read(_HEADER_SIZE):
        matched = _HEADER.fullmatch(header)
        if matched is None:
            raise ImageError(f"{where}: expected a whole Debian package, got a damaged ar archive")
        name, size = matched["name"].decode().rstrip().rstrip("/"), int(matched["size"])
        part = content.read(size)
        if len(part) < size:
            raise ImageError(f"{where}: expected a whole Debian package, got one that ends in {name}")
        if name == "debian-binary" and not part.startswith(b"2."):
            raise ImageError(f"{where}: expected a Debian package of format 2, got {part[:20]!r}")
        if name == wanted or name.startswith(f"{wanted}."):
            return _unpacked(io.BytesIO(part), name.removeprefix(wanted), f"{where}: {name}")
        content.seek(size % 2, io.SEEK_CUR)
    raise ImageError(f"{where}: expected a Debian package with {wanted}, got none in it")


def _unpacked(content: IO[bytes], ending: str, where: str) -> IO[bytes]:
    match ending:
        case "":
            return content
        case ".xz":
            return cast("IO[bytes]", lzma.LZMAFile(content))
        case ".gz":
            return cast("IO[bytes]", gzip.GzipFile(fileobj=content))
    raise ImageError(
        f"{where}: expected a package that is packed with xz or gzip, as Debian's are, got {ending}; name a mirror of "
        f"Debian itself"
    )


class _Bounded:
    """Reads a stream up to so many bytes."""

    def __init__(self, source: IO[bytes], largest: int) -> None:
        self._source = source
        self._largest = largest
        self._left = largest

    def read(self, size: int) -> bytes:
        found = self._source.read(size)
        self._left -= len(found)
        if self._left < 0:
            raise tarfile.ReadError(f"it has more than {self._largest} bytes")
        return found
