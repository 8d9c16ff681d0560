"""`Layout`: images in a folder, as the OCI image layout has them."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

import msgspec

from navarch.errors import ImageError
from navarch.oci.documents import (
    INDEX_TYPES,
    LARGEST_MANIFEST,
    Descriptor,
    Document,
    ImageIndex,
    ImageManifest,
    Platform,
    decode_manifest,
    descriptor_of,
    encode,
)

NAME: Final = "org.opencontainers.image.ref.name"
"""The annotation with the name of an image in a layout."""
CONTAINERD_NAME: Final = "io.containerd.image.name"
LAYOUT_MARK: Final = b'{"imageLayoutVersion":"1.0.0"}'
_CHUNK: Final = 2**20


class Layout:
    """A folder of blobs, and of names for some of them. A blob is there whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def create(cls, folder: Path) -> Layout:
        """Returns the layout in that folder; makes an empty one if there is none."""
        layout = cls(folder)
        (folder / "blobs" / "sha256").mkdir(parents=True, exist_ok=True)
        if not (folder / "oci-layout").exists():
            _replace(folder / "oci-layout", LAYOUT_MARK)
        if not (folder / "index.json").exists():
            layout._write_index([])
        return layout

    @classmethod
    def open(cls, folder: Path) -> Layout:
        """Returns the layout in that folder; raises `ImageError` if there is none."""
        if not (folder / "oci-layout").is_file() or not (folder / "index.json").is_file():
            raise ImageError(
                f"{folder}: expected a folder with an OCI layout, got one without oci-layout or index.json"
            )
        return cls(folder)

    def path(self, digest: str) -> Path:
        """Returns the file of the blob, whether it is there or not."""
        algorithm, _, name = digest.partition(":")
        return self.folder / "blobs" / algorithm / name

    def __contains__(self, digest: str) -> bool:
        return self.path(digest).is_file()

    def read(self, digest: str, *, most: int = LARGEST_MANIFEST) -> bytes:
        """Returns a small blob. Raises `ImageError` if it is missing, larger, or not what its digest says."""
        try:
            with self.path(digest).open("rb") as file:
                content = file.read(most + 1)
        except FileNotFoundError:
            raise ImageError(
                f"{self.folder}: expected the blob {digest}, got none; pull or build the image again"
            ) from None
        if len(content) > most:
            raise ImageError(f"{self.path(digest)}: expected at most {most} bytes, got more")
        found = f"sha256:{hashlib.sha256(content).hexdigest()}"
        if found != digest:
            raise ImageError(f"{self.path(digest)}: expected {digest}, got {found}: remove the damaged file")
        return content

    def manifest(self, descriptor: Descriptor) -> Document:
        """Returns the manifest or index that the descriptor names."""
        return decode_manifest(self.read(descriptor.digest), descriptor.media_type, where=str(self.folder))

    def image(self, descriptor: Descriptor, platform: Platform) -> tuple[Descriptor, ImageManifest]:
        """Returns the image for the platform; raises `ImageError` with the platforms that there are."""
        document = self.manifest(descriptor)
        if isinstance(document, ImageManifest):
            return descriptor, document
        for each in document.manifests:
            if each.platform is not None and each.platform.fits(platform):
                return self.image(each, platform)
        there = ", ".join(str(each.platform) for each in document.manifests if each.platform) or "none"
        raise ImageError(f"{descriptor.digest}: expected an image for {platform}, got {there}")

    def add(self, content: bytes, media_type: str, *, platform: Platform | None = None) -> Descriptor:
        """Stores a blob and returns its descriptor."""
        descriptor = descriptor_of(content, media_type, platform=platform)
        if descriptor.digest not in self:
            _replace(self.path(descriptor.digest), content)
        return descriptor

    def add_document(self, document: Document, *, platform: Platform | None = None) -> Descriptor:
        """Stores a manifest or an index, which states its type, and returns its descriptor."""
        return self.add(encode(document), document.media_type, platform=platform)

    @contextmanager
    def writing(self, descriptor: Descriptor) -> Iterator[IO[bytes]]:
        """Opens a file for the content of a blob, which becomes the blob at the end of the block.

        Raises `ImageError` there if size or digest differ; after any error nothing remains.
        """
        target = self.path(descriptor.digest)
        with _replacing(target) as file:
            yield file
            file.flush()
            file.seek(0)
            _check(file, descriptor, str(target))

    @property
    def roots(self) -> list[Descriptor]:
        """Returns the images of its index, named or not."""
        return self._index().manifests

    @property
    def names(self) -> dict[str, Descriptor]:
        """Returns the named images."""
        return {each.annotations[NAME]: each for each in self._index().manifests if NAME in each.annotations}

    def tag(self, name: str, descriptor: Descriptor) -> None:
        """Names an image; the last one of that name loses it."""
        others = [each for each in self._index().manifests if each.annotations.get(NAME) != name]
        annotations = {**descriptor.annotations, NAME: name, CONTAINERD_NAME: name}
        self._write_index([*others, msgspec.structs.replace(descriptor, annotations=annotations)])

    def untag(self, name: str) -> None:
        """Takes the name away; the blobs stay until `sweep`."""
        self._write_index([each for each in self._index().manifests if each.annotations.get(NAME) != name])

    def add_referrer(self, manifest: ImageManifest) -> Descriptor:
        """Stores a manifest about another one, its subject, and lists it without a name; `sweep` removes it with that."""
        descriptor = msgspec.structs.replace(self.add_document(manifest), artifact_type=manifest.artifact_type)
        listed = self._index().manifests
        if descriptor.digest not in {each.digest for each in listed}:
            self._write_index([*listed, descriptor])
        return descriptor

    def referrers(self, subjects: Collection[str]) -> list[Descriptor]:
        """Returns the listed manifests whose subject has one of these digests."""
        unnamed = [each for each in self._index().manifests if NAME not in each.annotations]
        found = [(each, self.manifest(each).subject) for each in unnamed]
        return [each for each, subject in found if subject is not None and subject.digest in subjects]

    def reachable(self, roots: Iterable[Descriptor]) -> Iterator[Descriptor]:
        """Yields what the roots consist of, each once, a part before the whole; absent images of an index are left out."""
        seen: set[str] = set()

        def walk(descriptor: Descriptor) -> Iterator[Descriptor]:
            if descriptor.digest in seen:
                return
            seen.add(descriptor.digest)
            document = self.manifest(descriptor)
            if isinstance(document, ImageManifest):
                for each in (document.config, *document.layers):
                    if each.digest not in seen:
                        seen.add(each.digest)
                        yield each
            else:
                for each in document.manifests:
                    if each.digest in self:
                        yield from walk(each)
            yield descriptor

        for root in roots:
            yield from walk(root)

    def sweep(self) -> int:
        """Removes the blobs that no named image and none of its referrers needs, and returns how many."""
        named = [each for each in self._index().manifests if NAME in each.annotations]
        kept = {each.digest for each in self.reachable(named)}
        referrers = self.referrers(kept)
        kept |= {each.digest for each in self.reachable(referrers)}
        if len(named) + len(referrers) < len(self._index().manifests):
            self._write_index([*named, *referrers])
        found = [each for each in (self.folder / "blobs" / "sha256").iterdir() if f"sha256:{each.name}" not in kept]
        for file in found:
            file.unlink()
        return len(found)

    def _index(self) -> ImageIndex:
        content = (self.folder / "index.json").read_bytes()
        found = decode_manifest(content, next(iter(INDEX_TYPES)), where=str(self.folder / "index.json"))
        if isinstance(found, ImageManifest):
            raise ImageError(f"{self.folder / 'index.json'}: expected an index, got a manifest")
        return found

    def _write_index(self, manifests: list[Descriptor]) -> None:
        _replace(self.folder / "index.json", encode(ImageIndex(schema_version=2, manifests=manifests)))


def _check(file: IO[bytes], descriptor: Descriptor, where: str) -> None:
    computed, size = hashlib.sha256(), 0
    while chunk := file.read(_CHUNK):
        computed.update(chunk)
        size += len(chunk)
    found = f"sha256:{computed.hexdigest()}"
    if (found, size) != (descriptor.digest, descriptor.size):
        raise ImageError(
            f"{where}: expected {descriptor.digest} with {descriptor.size} bytes, got {found} with {size} bytes"
        )


def _replace(target: Path, content: bytes) -> None:
    with _replacing(target) as file:
        file.write(content)


@contextmanager
def _replacing(target: Path) -> Iterator[IO[bytes]]:
    """Opens a file that takes the target's place at the end of the block, and vanishes after an error."""
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".new-", delete=False) as file:
        try:
            yield file
            file.flush()
            os.fchmod(file.fileno(), 0o644)
            Path(file.name).replace(target)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
