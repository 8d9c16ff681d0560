"""Layers: a tree of files as a compressed tar archive and back; the same tree gives the same bytes."""

from __future__ import annotations

import gzip
import hashlib
import io
import stat
import tarfile
import zlib
from typing import IO, Final, cast

import msgspec

from navarch.errors import ImageError
from navarch.oci.documents import LAYER_GZIP, Descriptor, digest_of
from navarch.oci.file_tree import FileEntry, FileTree

LARGEST_LAYER: Final = 8 * 2**30
"""The bytes of a layer's files that we read, so that a small archive cannot fill memory and disk."""
_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_GZIP_WINDOW: Final = 31
_LEVEL: Final = 6
_WHITEOUT: Final = ".wh."
_OPAQUE: Final = ".wh..wh..opq"
_TYPES: Final = {"file": tarfile.REGTYPE, "directory": tarfile.DIRTYPE, "link": tarfile.SYMTYPE}


class Layer(msgspec.Struct, frozen=True, kw_only=True):
    """A packed layer."""

    content: bytes
    diff_id: str
    """The digest before compression."""

    @property
    def descriptor(self) -> Descriptor:
        """Returns how a manifest names it."""
        return Descriptor(media_type=LAYER_GZIP, digest=digest_of(self.content), size=len(self.content))


def pack(tree: FileTree) -> Layer:
    """Packs the tree: names in order, no times, owners as numbers."""
    target = _HashedGzip()
    with tarfile.open(fileobj=cast("IO[bytes]", target), mode="w|", format=tarfile.PAX_FORMAT) as archive:
        for path, entry in tree:
            archive.addfile(_header(path, entry), io.BytesIO(entry.content))
    return target.finish()


def unpack(content: IO[bytes], tree: FileTree, *, where: str) -> str:
    """Adds the files of a layer to the tree, applies its whiteouts, and returns its diff id.

    Raises `ImageError` for a damaged archive, and for devices, pipes and paths that leave the image.
    """
    source = _Hashed(_uncompressed(content, where))
    try:
        with tarfile.open(fileobj=cast("IO[bytes]", source), mode="r|") as archive:
            _add_all(archive, tree, where)
        source.drain()
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, UnicodeError) as error:
        raise ImageError(f"{where}: expected a whole tar archive, got a damaged one: {error}") from None
    return source.digest


def _add_all(archive: tarfile.TarFile, tree: FileTree, where: str) -> None:
    opaque: set[str] = set()
    for member in archive:
        folder, _, name = member.name.rstrip("/").rpartition("/")
        if name == _OPAQUE:
            if folder not in opaque:
                tree.clear(tree.resolve(folder) or folder)
            opaque.add(folder)
        elif name.startswith(_WHITEOUT):
            tree.remove(f"{folder}/{name.removeprefix(_WHITEOUT)}")
        else:
            add_member(archive, member, tree, where)


def add_member(archive: tarfile.TarFile, member: tarfile.TarInfo, tree: FileTree, where: str) -> None:
    """Adds one member of a tar archive to the tree; raises `ImageError` for what an image may not have."""
    if not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
        raise ImageError(f"{where}: {member.name}: expected a file, a directory or a link, got a device or a pipe")
    mode = stat.S_IMODE(member.mode)
    try:
        if member.isreg():
            file = archive.extractfile(member)
            content = file.read() if file is not None else b""
            tree.add_file(member.name, content, mode=mode, user=member.uid, group=member.gid)
        elif member.isdir():
            tree.add_directory(member.name, mode=mode, user=member.uid, group=member.gid)
        elif member.issym():
            tree.add_link(member.name, member.linkname)
        else:
            tree.add_hard_link(member.name, member.linkname)
    except ImageError as error:
        raise ImageError(f"{where}: {error}") from None


def _header(path: str, entry: FileEntry) -> tarfile.TarInfo:
    header = tarfile.TarInfo(path)
    header.type = _TYPES[entry.kind]
    header.mode = entry.mode
    header.size = len(entry.content)
    header.linkname = entry.target
    header.uid, header.gid = entry.user, entry.group
    return header


def _uncompressed(content: IO[bytes], where: str) -> IO[bytes]:
    source = io.BufferedReader(_Raw(content)) if not isinstance(content, io.BufferedReader) else content
    start = source.peek(4)[:4]
    if start.startswith(_GZIP):
        return gzip.GzipFile(fileobj=source, mode="rb")  # type: ignore[return-value] # it is an IO[bytes] but in name
    if start == _ZSTD:
        raise ImageError(
            f"{where}: expected a layer that is packed with gzip or not at all, got zstd; copy the image with gzip "
            f"layers: skopeo copy --dest-compress-format=gzip"
        )
    return source


class _Raw(io.RawIOBase):
    """Any readable stream, for a buffer that can look ahead."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override] # any buffer that can be written
        found = self._source.read(len(buffer))
        buffer[: len(found)] = found
        return len(found)


class _Hashed:
    """Reads a stream, counts its bytes and computes their digest."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._hash = hashlib.sha256()
        self._read = 0

    @property
    def digest(self) -> str:
        return f"sha256:{self._hash.hexdigest()}"

    def read(self, size: int) -> bytes:
        found = self._source.read(size)
        self._hash.update(found)
        self._read += len(found)
        if self._read > LARGEST_LAYER:
            raise tarfile.ReadError(f"it has more than {LARGEST_LAYER} bytes")
        return found

    def drain(self) -> None:
        """Reads what follows the archive's end, which belongs to the digest."""
        while self.read(2**20):
            pass


class _HashedGzip:
    """Writes gzip without time and name, and computes the digest of what came in."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._gzip = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
        self._chunks: list[bytes] = []

    def write(self, chunk: bytes) -> int:
        self._hash.update(chunk)
        self._chunks.append(self._gzip.compress(chunk))
        return len(chunk)

    def finish(self) -> Layer:
        self._chunks.append(self._gzip.flush())
        return Layer(content=b"".join(self._chunks), diff_id=f"sha256:{self._hash.hexdigest()}")
