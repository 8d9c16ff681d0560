"""OCI archives: a layout as one tar file, as `ctr images import` and skopeo read and write it."""

from __future__ import annotations

import io
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

import msgspec

from navarch.errors import ImageError
from navarch.oci.documents import INDEX, Descriptor, ImageIndex, encode
from navarch.oci.layout import CONTAINERD_NAME, LAYOUT_MARK, NAME, Layout

_BLOBS: Final = "blobs/sha256/"
_MARK: Final = "oci-layout"
_INDEX: Final = "index.json"


def write_archive(layout: Layout, descriptor: Descriptor, name: str, target: Path) -> None:
    """Writes one image of a layout under that name; the same image gives the same bytes."""
    named = msgspec.structs.replace(
        descriptor, annotations={**descriptor.annotations, NAME: name, CONTAINERD_NAME: name}
    )
    index = ImageIndex(schema_version=2, media_type=INDEX, manifests=[named])
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as archive:
        _add(archive, _MARK, io.BytesIO(LAYOUT_MARK), len(LAYOUT_MARK))
        content = encode(index)
        _add(archive, _INDEX, io.BytesIO(content), len(content))
        for each in sorted({each.digest for each in layout.reachable([descriptor])}):
            path = layout.path(each)
            with path.open("rb") as file:
                _add(archive, _BLOBS + path.name, file, path.stat().st_size)


def _add(archive: tarfile.TarFile, name: str, content: IO[bytes], size: int) -> None:
    header = tarfile.TarInfo(name)
    header.size, header.mode = size, 0o644
    archive.addfile(header, content)


@contextmanager
def opened(path: Path) -> Iterator[Layout]:
    """Opens a layout: a folder, or an archive, which is unpacked beside the machine's temporary files for that time.

    Raises `ImageError` if it is neither.
    """
    if path.is_dir():
        yield Layout.open(path)
        return
    with tempfile.TemporaryDirectory(prefix="navarch-image-") as folder:
        _extract(path, Path(folder))
        yield Layout.open(Path(folder))


def _extract(path: Path, folder: Path) -> None:
    (folder / "blobs" / "sha256").mkdir(parents=True)
    try:
        with path.open("rb") as file, tarfile.open(fileobj=file, mode="r|*") as archive:
            for member in archive:
                name = member.name.removeprefix("./")
                digest = name.removeprefix(_BLOBS)
                is_blob = name.startswith(_BLOBS) and digest.isalnum()
                content = (
                    archive.extractfile(member) if member.isreg() and (is_blob or name in {_MARK, _INDEX}) else None
                )
                if content is not None:
                    with (folder / name).open("wb") as target:
                        shutil.copyfileobj(content, target, 2**20)
    except FileNotFoundError:
        raise ImageError(f"{path}: expected an OCI layout or archive, got no file") from None
    except (tarfile.TarError, EOFError) as error:
        raise ImageError(f"{path}: expected a whole OCI archive, got something else: {error}") from None
    if not (folder / _INDEX).is_file():
        raise ImageError(
            f"{path}: expected an OCI archive, got one without index.json; of a Docker archive, "
            f"`skopeo copy docker-archive:{path} oci-archive:IMAGE.tar` makes one"
        )
