"""Moves blobs between a registry and a layout; both directions resume after a broken connection."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import IO, Final, Literal

import aiohttp
from yarl import URL

from navarch.errors import ImageError, RegistryError
from navarch.oci.documents import Descriptor
from navarch.oci.layout import Layout
from navarch.oci.reference import Reference
from navarch.oci.registry.authorization import Scopes
from navarch.oci.registry.failures import Interruption, place, printable
from navarch.oci.registry.session import IdleTimer, RegistryCall, RegistrySession

BlobOutcome = Literal["exists", "mounted", "sent", "received"]
OnBytes = Callable[[int], None]
"""Called with the number of bytes of the blob that have been moved so far."""
_IN_ONE_REQUEST: Final = 2**20
"""A blob of at most this size is sent in one request; a larger one in two, the first of which can be resumed."""
_CHUNK: Final = 2**18
_CONTENT_RANGE: Final = re.compile(r"bytes (\d+)-\d+/", re.ASCII)
_UPLOAD_RANGE: Final = re.compile(r"(?:bytes=)?0-(\d+)", re.ASCII)


def pull_scopes(repository: str) -> Scopes:
    """Returns what reading from the repository needs."""
    return frozenset({f"repository:{repository}:pull"})


def push_scopes(repository: str, *, mount_from: str = "") -> Scopes:
    """Returns what writing to the repository needs, with blobs of another one."""
    return frozenset({f"repository:{repository}:pull,push"}) | (pull_scopes(mount_from) if mount_from else frozenset())


def blob_url(session: RegistrySession, reference: Reference, digest: str) -> URL:
    """Returns the address of a blob."""
    return session.base(reference.registry) / reference.repository / "blobs" / digest


async def get_blob(
    session: RegistrySession, reference: Reference, descriptor: Descriptor, layout: Layout, on_bytes: OnBytes
) -> BlobOutcome:
    """Stores the blob in the layout, unless it is there.

    Raises `RegistryError`, after which nothing of it is stored, also if the registry sends another content.
    """
    if descriptor.digest in layout:
        return "exists"
    url = blob_url(session, reference, descriptor.digest)
    try:
        with layout.writing(descriptor) as file:

            async def receive(response: aiohttp.ClientResponse, timer: IdleTimer) -> None:
                if response.status != 206 or _start(response) != file.tell():
                    file.seek(0)
                    file.truncate()
                if response.status == 416:
                    raise Interruption(RegistryError(f"GET {place(url)}: expected the rest of a blob, got none"))
                while chunk := await response.content.readany():
                    timer.touch()
                    file.write(chunk)
                    if file.tell() > descriptor.size:
                        raise RegistryError(f"GET {place(url)}: expected {descriptor.size} bytes, got more")
                    on_bytes(file.tell())
                if file.tell() < descriptor.size:
                    raise Interruption(
                        RegistryError(f"GET {place(url)}: expected {descriptor.size} bytes, got {file.tell()}")
                    )

            async def attempt() -> None:
                resumed = {"Range": f"bytes={file.tell()}-"} if 0 < file.tell() < descriptor.size else {}
                call = RegistryCall(
                    registry=reference.registry,
                    method="GET",
                    url=url,
                    scopes=pull_scopes(reference.repository),
                    headers=resumed,
                    statuses=frozenset({200, 206, 416} if resumed else {200}),
                )
                await session.send(call, receive)

            await session.repeat(attempt)
    except ImageError as error:
        raise RegistryError(f"GET {place(url)}: the registry sent another blob: {error}") from None
    return "received"


async def put_blob(
    session: RegistrySession,
    reference: Reference,
    descriptor: Descriptor,
    layout: Layout,
    *,
    mount_from: str,
    on_bytes: OnBytes,
) -> BlobOutcome:
    """Stores a blob of the layout in the repository, unless it is there or the registry can take it from another one.

    Raises `RegistryError`, also if the registry reports another digest than ours.
    """
    upload = _BlobSender(
        session, reference, descriptor, layout.path(descriptor.digest), mount_from=mount_from, on_bytes=on_bytes
    )
    return await session.repeat(upload.attempt)


class _BlobSender:
    """One upload. `_location` is None before the registry has opened one; `_offset` is what the registry has of it, None
    if a broken request leaves it unknown.
    """

    def __init__(
        self,
        session: RegistrySession,
        reference: Reference,
        descriptor: Descriptor,
        file: Path,
        *,
        mount_from: str,
        on_bytes: OnBytes,
    ) -> None:
        self._session = session
        self._reference = reference
        self._descriptor = descriptor
        self._file = file
        self._mount_from = mount_from
        self._on_bytes = on_bytes
        self._scopes = push_scopes(reference.repository, mount_from=mount_from)
        self._location: URL | None = None
        self._offset: int | None = 0

    async def attempt(self) -> BlobOutcome:
        """Brings the upload to its end from where it is; raises `Interruption` if that may be tried again."""
        if self._offset is None:
            await self._resume()
        if self._location is None:
            if await self._exists():
                return "exists"
            if await self._begin():
                return "mounted"
        offset, self._offset = self._offset or 0, None
        if self._descriptor.size - offset > _IN_ONE_REQUEST:
            offset = await self._send_rest(offset)
        await self._finish(offset)
        return "sent"

    async def _exists(self) -> bool:
        """Returns whether the repository has the blob."""

        async def read(response: aiohttp.ClientResponse, _timer: IdleTimer) -> bool:
            return response.status == 200

        url = blob_url(self._session, self._reference, self._descriptor.digest)
        return await self._session.send(self._call("HEAD", url, {200, 404}), read)

    async def _begin(self) -> bool:
        """Opens an upload; returns True if the registry has mounted the blob instead."""
        url = self._session.base(self._reference.registry) / self._reference.repository / "blobs" / "uploads" / ""
        if self._mount_from and self._mount_from != self._reference.repository:
            url = url.with_query({"mount": self._descriptor.digest, "from": self._mount_from})
        call = self._call("POST", url, statuses={201, 202})

        async def read(response: aiohttp.ClientResponse, _timer: IdleTimer) -> bool:
            self._offset = 0
            if response.status == 202:
                self._move(call, response)
            return response.status == 201

        return await self._session.send(call, read)

    async def _resume(self) -> None:
        """Asks for the offset. Without an upload, or without a clear answer, the next one begins anew."""
        location, self._location, self._offset = self._location, None, 0
        if location is None:
            return
        call = self._call("GET", location, statuses={204, 404})

        async def read(response: aiohttp.ClientResponse, _timer: IdleTimer) -> None:
            found = _UPLOAD_RANGE.fullmatch(response.headers.get("Range", ""))
            last = int(found[1]) if found else 0
            if response.status == 204 and 0 < last < self._descriptor.size:  # 0-0 is no byte or one
                self._offset = last + 1
                self._location = location
                self._move(call, response)

        await self._session.send(call, read)

    async def _send_rest(self, offset: int) -> int:
        """Sends the rest of the blob and returns the offset after it."""
        assert self._location is not None
        size = self._descriptor.size
        with self._file.open("rb") as file:
            call = self._call(
                "PATCH", self._location, {202, 404, 416}, content=_FileChunks(file, offset, self._on_bytes)
            )

            async def read(response: aiohttp.ClientResponse, _timer: IdleTimer) -> None:
                found = _UPLOAD_RANGE.fullmatch(response.headers.get("Range", ""))
                if response.status != 202 or (found is not None and int(found[1]) != size - 1):
                    raise Interruption(RegistryError(f"{call.where}: expected {size} bytes to be stored, got fewer"))
                self._move(call, response)

            await self._session.send(call, read)
        return size

    async def _finish(self, offset: int) -> None:
        """Sends what is left of the blob, if anything, and ends the upload."""
        assert self._location is not None
        wanted = self._descriptor.digest
        text = str(self._location)
        url = URL(f"{text}{'&' if '?' in text else '?'}digest={wanted}", encoded=True)
        with self._file.open("rb") as file:
            call = self._call("PUT", url, {201, 404, 416}, content=_FileChunks(file, offset, self._on_bytes))

            async def read(response: aiohttp.ClientResponse, _timer: IdleTimer) -> None:
                if response.status != 201:
                    raise Interruption(
                        RegistryError(f"{call.where}: expected the end of an upload, got no such upload")
                    )
                found = response.headers.get("Docker-Content-Digest", wanted)
                if found != wanted:
                    raise RegistryError(f"{call.where}: expected {wanted} to be stored, got {printable(found)}")

            await self._session.send(call, read)

    def _call(self, method: str, url: URL, statuses: set[int], *, content: _FileChunks | None = None) -> RegistryCall:
        headers = {}
        if content is not None:
            headers = {
                "Content-Length": str(self._descriptor.size - content.offset),
                "Content-Type": "application/octet-stream",
            }
            if 0 < content.offset < self._descriptor.size:
                headers["Content-Range"] = f"{content.offset}-{self._descriptor.size - 1}"
        return RegistryCall(
            registry=self._reference.registry,
            method=method,
            url=url,
            scopes=self._scopes,
            headers=headers,
            body=None if content is None else content.begin,
            statuses=frozenset(statuses),
        )

    def _move(self, call: RegistryCall, response: aiohttp.ClientResponse) -> None:
        """Takes the address of the next request; it may be relative, and may change with each answer."""
        text = response.headers.get("Location", "")
        try:
            target = call.url.join(URL(text, encoded=True))
        except ValueError:
            text = ""
        if not text and self._location is not None:
            return
        if not text or target.scheme not in {"http", "https"} or not target.host:
            raise RegistryError(f"{call.where}: expected the address of an upload, got none")
        if call.url.scheme == "https" and target.scheme == "http":
            raise RegistryError(f"{call.where}: expected an address with TLS for the upload, got {place(target)}")
        self._location = target


class _FileChunks:
    """The chunks of a file from an offset on. No generator: aiohttp does not close those of interrupted requests."""

    def __init__(self, file: IO[bytes], offset: int, on_bytes: OnBytes) -> None:
        self.offset = offset
        self._file = file
        self._on_bytes = on_bytes
        self._timer: IdleTimer | None = None

    def begin(self, timer: IdleTimer) -> _FileChunks:
        """Begins anew."""
        self._timer = timer
        self._file.seek(self.offset)
        return self

    def __aiter__(self) -> _FileChunks:
        return self

    async def __anext__(self) -> bytes:
        assert self._timer is not None
        self._timer.touch()
        self._on_bytes(self._file.tell())
        if chunk := self._file.read(_CHUNK):
            return chunk
        raise StopAsyncIteration


def _start(response: aiohttp.ClientResponse) -> int:
    """Returns where the sent part begins; -1 if the answer does not say so."""
    found = _CONTENT_RANGE.match(response.headers.get("Content-Range", ""))
    return int(found[1]) if found else -1
