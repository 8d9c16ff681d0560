"""The uploads of blobs: opened, continued, ended or cancelled."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from aiohttp import web

from navarch._base.clock import Clock
from navarch.oci.registry_server.answers import refuse
from navarch.oci.registry_server.folder import RegistryFolder

_IDLE_SECONDS: Final = 3600.0


class BlobUpload:
    """The part of a blob that has come so far; `size` and the digest are those of the bytes in the file."""

    def __init__(self, repository: str, file: Path, now: float) -> None:
        self.repository = repository
        self.file = file
        self.size = 0
        self.touched = now
        self.is_busy = False
        self._hash = hashlib.sha256()

    @property
    def identifier(self) -> str:
        """Returns the name of the upload in its address."""
        return self.file.name

    @property
    def digest(self) -> str:
        """Returns the digest of what has come so far."""
        return f"sha256:{self._hash.hexdigest()}"

    @property
    def range(self) -> str:
        """Returns what has come so far as registries say it."""
        return f"0-{max(self.size - 1, 0)}"

    async def receive(self, request: web.Request, largest: int) -> None:
        """Appends the body of the request; what has come before a broken connection stays."""
        with self.file.open("r+b") as file:
            file.seek(self.size)
            file.truncate()
            async for chunk in request.content.iter_any():
                if self.size + len(chunk) > largest:
                    refuse("SIZE_INVALID", f"expected a blob of at most {largest} bytes, got more")
                file.write(chunk)
                self._hash.update(chunk)
                self.size += len(chunk)
            file.flush()


class BlobUploads:
    """The uploads of a registry, at most so many at once; one that nobody continues loses its place to another."""

    def __init__(self, folder: RegistryFolder, most: int, clock: Clock) -> None:
        self._folder = folder
        self._most = most
        self._clock = clock
        self._uploads: dict[str, BlobUpload] = {}

    def begin(self, repository: str) -> BlobUpload:
        """Opens an upload; refuses it while there are too many."""
        now = self._clock.monotonic()
        for each in [
            each for each in self._uploads.values() if not each.is_busy and now - each.touched > _IDLE_SECONDS
        ]:
            self.cancel(each)
        if len(self._uploads) >= self._most:
            refuse("TOOMANYREQUESTS", f"expected at most {self._most} uploads at once, got another", Retry_After="1")
        upload = BlobUpload(repository, self._folder.new_upload(), now)
        self._uploads[upload.identifier] = upload
        return upload

    def find(self, repository: str, identifier: str) -> BlobUpload:
        """Returns an open upload; refuses an unknown one, and one of another repository."""
        upload = self._uploads.get(identifier)
        if upload is None or upload.repository != repository:
            refuse("BLOB_UPLOAD_UNKNOWN", "expected an open upload, got none; begin again")
        upload.touched = self._clock.monotonic()
        return upload

    def finish(self, upload: BlobUpload) -> None:
        """Makes the blob one of its repository."""
        del self._uploads[upload.identifier]
        self._folder.add_blob(upload.repository, upload.digest, upload.file)

    def cancel(self, upload: BlobUpload) -> None:
        """Removes what has come."""
        self._uploads.pop(upload.identifier, None)
        upload.file.unlink(missing_ok=True)
