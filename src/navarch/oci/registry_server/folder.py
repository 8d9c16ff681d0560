"""`RegistryFolder`: what a registry stores, as files that survive it.

    navarch-registry                                  locked while a server uses the folder
    blobs/sha256/HEX                                  contents, of blobs and of manifests, each whole
    uploads/UUID                                      contents on their way; removed at the next start
    repositories/NAME/_blobs/HEX                      an empty file: the repository has the blob
    repositories/NAME/_manifests/HEX                  the media type of the manifest
    repositories/NAME/_tags/TAG                       the digest that the tag names
    repositories/NAME/_referrers/HEX/HEX              an empty file: a manifest with that subject

No component of a repository's name begins with `_`.
"""

from __future__ import annotations

import fcntl
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from navarch.errors import ConfigError, ImageError
from navarch.oci.documents import Descriptor, Document, ImageManifest, decode_manifest

_MARK: Final = "navarch-registry"
_ALGORITHM: Final = "sha256:"


class RegistryFolder:
    """The files of one registry. Names and digests have been checked by the caller: they are parts of paths."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.uploads = folder / "uploads"
        self._blobs = folder / "blobs" / "sha256"
        self._repositories = folder / "repositories"

    @classmethod
    @contextmanager
    def opened(cls, folder: Path) -> Iterator[RegistryFolder]:
        """Yields the registry in that folder, which is locked until the end of the block; makes one in an empty folder.

        Removes abandoned uploads, and blobs that no manifest needs. Raises `ConfigError` for a folder of something else,
        and for one that another server has.
        """
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / _MARK).exists() and any(folder.iterdir()):
            raise ConfigError(
                f"{folder}: expected the folder of a registry, or an empty one, got other files; name another folder"
            )
        with (folder / _MARK).open("w") as mark:
            try:
                fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ConfigError(
                    f"{folder}: expected a folder that no server uses, got one that is in use; stop the other registry"
                ) from None
            found = cls(folder)
            found._clean()
            yield found

    def blob(self, repository: str, digest: str) -> Path | None:
        """Returns the file of a blob, None if the repository does not have it."""
        return self._content(digest) if (self._of(repository) / "_blobs" / _hex(digest)).exists() else None

    def new_upload(self) -> Path:
        """Returns a new, empty file."""
        file = self.uploads / str(uuid.uuid4())
        file.touch()
        return file

    def add_blob(self, repository: str, digest: str, upload: Path) -> None:
        """Makes the uploaded file a blob of the repository; its content is that of the digest."""
        upload.replace(self._content(digest))
        self._link(repository, "_blobs", digest)

    def mount(self, repository: str, digest: str, source: str) -> bool:
        """Takes a blob from another repository; returns False if that does not have it."""
        if self.blob(source, digest) is None:
            return False
        self._link(repository, "_blobs", digest)
        return True

    def remove_blob(self, repository: str, digest: str) -> bool:
        """Removes a blob from the repository; returns False if it was not there."""
        return self._unlink(repository, "_blobs", digest)

    def manifest(self, repository: str, version: str) -> tuple[str, str, bytes] | None:
        """Returns digest, media type and content of a manifest by its tag or digest, None if there is none."""
        try:
            named = version.startswith(_ALGORITHM)
            digest = version if named else (self._of(repository) / "_tags" / version).read_text()
            media_type = (self._of(repository) / "_manifests" / _hex(digest)).read_text()
            return digest, media_type, self._content(digest).read_bytes()
        except FileNotFoundError:
            return None

    def missing(self, repository: str, document: Document) -> list[str]:
        """Returns the digests that the manifest names and that the repository does not have."""
        if isinstance(document, ImageManifest):
            named = [each.digest for each in (document.config, *document.layers)]
            return [digest for digest in named if self.blob(repository, digest) is None]
        return [each.digest for each in document.manifests if self.manifest(repository, each.digest) is None]

    def add_manifest(self, repository: str, descriptor: Descriptor, content: bytes, *, subject: str, tag: str) -> None:
        """Stores a manifest whose parts are there; the tag, if there is one, comes last."""
        self._write(self._content(descriptor.digest), content)
        self._write(self._of(repository) / "_manifests" / _hex(descriptor.digest), descriptor.media_type.encode())
        if subject:
            self._link(repository, f"_referrers/{_hex(subject)}", descriptor.digest)
        if tag:
            self._write(self._of(repository) / "_tags" / tag, descriptor.digest.encode())

    def remove_manifest(self, repository: str, digest: str) -> bool:
        """Removes a manifest with its tags; returns False if it was not there."""
        if self.manifest(repository, digest) is None:
            return False
        for tag in self.tags(repository) or ():
            if (self._of(repository) / "_tags" / tag).read_text() == digest:
                self.remove_tag(repository, tag)
        for link in (self._of(repository) / "_referrers").glob(f"*/{_hex(digest)}"):
            link.unlink()
        return self._unlink(repository, "_manifests", digest)

    def remove_tag(self, repository: str, tag: str) -> bool:
        """Removes a tag; returns False if it was not there."""
        file = self._of(repository) / "_tags" / tag
        is_there = file.exists()
        file.unlink(missing_ok=True)
        return is_there

    def tags(self, repository: str) -> list[str] | None:
        """Returns the tags, sorted; None if there is no such repository."""
        if not _names(self._of(repository) / "_manifests"):
            return None
        return _names(self._of(repository) / "_tags")

    def referrers(self, repository: str, digest: str) -> list[str]:
        """Returns the digests of the manifests with that subject, sorted."""
        return [_ALGORITHM + name for name in _names(self._of(repository) / "_referrers" / _hex(digest))]

    def repositories(self) -> list[str]:
        """Returns the names of the repositories that have a manifest, sorted."""
        return sorted(
            str(folder.parent.relative_to(self._repositories)) for folder in self._all("_manifests") if _names(folder)
        )

    def _clean(self) -> None:
        """Removes what an earlier server left: uploads, and blobs that no manifest of their repository names."""
        shutil.rmtree(self.uploads, ignore_errors=True)
        for folder in (self.uploads, self._blobs, self._repositories):
            folder.mkdir(parents=True, exist_ok=True)
        kept = set()
        for manifests in self._all("_manifests"):
            repository = str(manifests.parent.relative_to(self._repositories))
            named = {
                _hex(digest) for name in _names(manifests) for digest in self._parts(repository, _ALGORITHM + name)
            }
            for link in _names(manifests.parent / "_blobs"):
                if link not in named:
                    (manifests.parent / "_blobs" / link).unlink()
            kept |= named | set(_names(manifests))
        for file in self._blobs.iterdir():
            if file.name not in kept:
                file.unlink()

    def _parts(self, repository: str, digest: str) -> list[str]:
        found = self.manifest(repository, digest)
        if found is None:
            return []
        try:
            document = decode_manifest(found[2], found[1], where=digest)
        except ImageError as error:
            raise ConfigError(f"{self._content(digest)}: expected a manifest, got a damaged file: {error}") from None
        return (
            [each.digest for each in (document.config, *document.layers)] if isinstance(document, ImageManifest) else []
        )

    def _all(self, kind: str) -> list[Path]:
        return list(self._repositories.glob(f"**/{kind}"))

    def _of(self, repository: str) -> Path:
        return self._repositories / repository

    def _content(self, digest: str) -> Path:
        return self._blobs / _hex(digest)

    def _link(self, repository: str, kind: str, digest: str) -> None:
        self._write(self._of(repository) / kind / _hex(digest), b"")

    def _unlink(self, repository: str, kind: str, digest: str) -> bool:
        link = self._of(repository) / kind / _hex(digest)
        if not link.exists():
            return False
        link.unlink()
        links = (folder / _hex(digest) for each in ("_blobs", "_manifests") for folder in self._all(each))
        if not any(each.exists() for each in links):
            self._content(digest).unlink(missing_ok=True)
        return True

    def _write(self, target: Path, content: bytes) -> None:
        """Writes a file that is there whole or not at all."""
        target.parent.mkdir(parents=True, exist_ok=True)
        new = self.new_upload()
        try:
            new.write_bytes(content)
            new.replace(target)
        except BaseException:
            new.unlink(missing_ok=True)
            raise


def _hex(digest: str) -> str:
    return digest.removeprefix(_ALGORITHM)


def _names(folder: Path) -> list[str]:
    try:
        return sorted(each.name for each in folder.iterdir())
    except FileNotFoundError:
        return []
