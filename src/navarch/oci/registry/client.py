"""`RegistryClient`: manifests, blobs, tags and referrers of registries."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from typing import Final, NamedTuple, TypeVar

import aiohttp
import msgspec
from yarl import URL

from navarch._base.tasks import AsyncCloseable
from navarch.errors import ImageError, RegistryError
from navarch.oci.documents import (
    INDEX,
    LARGEST_MANIFEST,
    MANIFEST_TYPES,
    Descriptor,
    Document,
    ImageIndex,
    ImageManifest,
    decode_manifest,
    descriptor_of,
    encode,
)
from navarch.oci.layout import Layout
from navarch.oci.reference import Reference, is_digest
from navarch.oci.registry.authorization import Scopes
from navarch.oci.registry.blobs import BlobOutcome, OnBytes, get_blob, pull_scopes, push_scopes, put_blob
from navarch.oci.registry.failures import printable
from navarch.oci.registry.options import RegistryOptions
from navarch.oci.registry.session import IdleTimer, RegistryCall, RegistrySession, read_bounded

_PAGE: Final = 100
_MOST_PAGES: Final = 10_000
_LARGEST_PAGE: Final = 8 * 2**20
_NEXT: Final = re.compile(r'<([^>]*)>\s*;[^,]*\brel="?next"?', re.IGNORECASE)


class RemoteManifest(NamedTuple):
    """A manifest or an index as a registry has it."""

    descriptor: Descriptor
    content: bytes
    document: Document


class _RepositoryList(msgspec.Struct):
    repositories: list[str] | None = None


class _TagList(msgspec.Struct):
    tags: list[str] | None = None


_Page = TypeVar("_Page", _RepositoryList, _TagList, ImageIndex)


class RegistryClient(AsyncCloseable):
    """A client of OCI registries; an `async with` block closes it.

    Every answer is verified: content by its digest and its size, types by what was asked for. A request that was
    interrupted, or that met an overloaded registry, is sent again, with growing pauses. Errors are `RegistryError`, with
    the registry's own words and without secrets.
    """

    def __init__(self, options: RegistryOptions | None = None) -> None:
        self._session = RegistrySession(options or RegistryOptions())
        self._referrers_turn = asyncio.Lock()

    async def close(self) -> None:
        """Closes the connections."""
        await self._session.close()

    async def head_manifest(self, reference: Reference) -> Descriptor | None:
        """Returns the descriptor of a manifest, None if there is none; some registries have to send the manifest for it."""

        async def read(response: aiohttp.ClientResponse, _timer: IdleTimer) -> tuple[bool, Descriptor | None]:
            digest = response.headers.get("Docker-Content-Digest", "")
            if response.status == 404 or not is_digest(digest) or response.content_length is None:
                return response.status != 404, None
            return True, Descriptor(media_type=response.content_type, digest=digest, size=response.content_length)

        exists, found = await self._session.call(self._manifest_call("HEAD", reference, {200, 404}), read)
        if exists and found is None:
            found = (await self.get_manifest(reference)).descriptor
        if found is None:
            return None
        if reference.digest and found.digest != reference.digest:
            raise RegistryError(f"{reference}: expected {reference.digest}, got {found.digest}")
        return found

    async def get_manifest(self, reference: Reference, accept: Iterable[str] = MANIFEST_TYPES) -> RemoteManifest:
        """Returns the manifest or index. Raises `RegistryError`, also for another digest or type."""
        found = await self._find_manifest(reference, accept)
        if found is None:
            raise RegistryError(
                f"{reference}: expected a manifest, got none; `navarch registry tags` lists what there is"
            )
        return found

    async def put_manifest(self, reference: Reference, content: bytes, media_type: str) -> Descriptor:
        """Stores a manifest under the tag or the digest of the reference, and returns its descriptor.

        One with a `subject` is also listed under the subject's fallback tag if the registry has no referrers of its own.
        Raises `RegistryError`, also if the registry reports another digest.
        """
        document = decode_manifest(content, media_type, where=str(reference))
        descriptor = descriptor_of(content, media_type)
        if reference.digest and reference.digest != descriptor.digest:
            raise RegistryError(f"{reference}: expected a manifest of that digest, got {descriptor.digest}")

        async def read(response: aiohttp.ClientResponse, _timer: IdleTimer) -> bool:
            found = response.headers.get("Docker-Content-Digest", descriptor.digest)
            if found != descriptor.digest:
                raise RegistryError(f"{reference}: expected {descriptor.digest} to be stored, got {printable(found)}")
            return "OCI-Subject" in response.headers

        version = reference._replace(digest="") if reference.tag else reference
        call = self._manifest_call("PUT", version, {201}, body=content, headers={"Content-Type": media_type})
        is_listed = await self._session.call(call, read)
        if document.subject is not None and not is_listed:
            await self._list_as_referrer(reference, document.subject.digest, _referrer(descriptor, document))
        return descriptor

    async def delete_manifest(self, reference: Reference) -> None:
        """Deletes a tag or, by its digest, a manifest with all of its tags. Raises `RegistryError`."""

        async def read(_response: aiohttp.ClientResponse, _timer: IdleTimer) -> None:
            return

        scopes = frozenset({f"repository:{reference.repository}:pull,push,delete", *push_scopes(reference.repository)})
        call = self._manifest_call("DELETE", reference, {200, 202, 204}, scopes=scopes)
        try:
            await self._session.call(call, read)
        except RegistryError as error:
            if error.status in {400, 405} and not reference.digest:
                raise RegistryError(
                    f"{error}; this registry may delete digests alone, with all of their tags", status=error.status
                ) from None
            raise

    async def get_blob(
        self, reference: Reference, descriptor: Descriptor, layout: Layout, on_bytes: OnBytes = lambda _: None
    ) -> BlobOutcome:
        """Stores a blob in the layout, unless it is there; resumes after a broken connection. Raises `RegistryError`."""
        return await get_blob(self._session, reference, descriptor, layout, on_bytes)

    async def put_blob(
        self,
        reference: Reference,
        descriptor: Descriptor,
        layout: Layout,
        *,
        mount_from: str = "",
        on_bytes: OnBytes = lambda _: None,
    ) -> BlobOutcome:
        """Stores a blob of the layout in the repository, unless it is there; resumes after a broken connection.

        `mount_from` is another repository of the registry that may have it. Raises `RegistryError`.
        """
        return await put_blob(self._session, reference, descriptor, layout, mount_from=mount_from, on_bytes=on_bytes)

    async def tags(self, reference: Reference) -> list[str]:
        """Returns all tags of the repository, sorted. Raises `RegistryError`."""
        url = self._session.base(reference.registry) / reference.repository / "tags" / "list"
        pages = await self._pages(
            reference.registry, url.with_query(n=_PAGE), pull_scopes(reference.repository), _TagList
        )
        return sorted({tag for page in pages for tag in page.tags or ()})

    async def catalog(self, registry: str) -> list[str]:
        """Returns all repositories of the registry, sorted. Raises `RegistryError`."""
        url = (self._session.base(registry) / "_catalog").with_query(n=_PAGE)
        pages = await self._pages(registry, url, frozenset({"registry:catalog:*"}), _RepositoryList)
        return sorted({name for page in pages for name in page.repositories or ()})

    async def referrers(self, subject: Reference, artifact_type: str = "") -> list[Descriptor]:
        """Returns the manifests that have this digest as their subject, from the registry or from the fallback tag."""
        if not subject.digest:
            raise RegistryError(f"{subject}: expected the digest of a subject, got none")
        url = self._session.base(subject.registry) / subject.repository / "referrers" / subject.digest
        url = url.with_query(artifactType=artifact_type) if artifact_type else url
        try:
            pages = await self._pages(subject.registry, url, pull_scopes(subject.repository), ImageIndex)
            found = [each for page in pages for each in page.manifests]
        except RegistryError as error:
            if error.status != 404:
                raise
            fallback = await self._find_manifest(_fallback(subject, subject.digest), (INDEX,))
            found = fallback.document.manifests if fallback and isinstance(fallback.document, ImageIndex) else []
        return [each for each in found if not artifact_type or each.artifact_type == artifact_type]

    async def _find_manifest(self, reference: Reference, accept: Iterable[str]) -> RemoteManifest | None:
        accepted = tuple(accept)

        async def read(response: aiohttp.ClientResponse, timer: IdleTimer) -> RemoteManifest | None:
            if response.status == 404:
                return None
            if response.content_type not in accepted:
                raise RegistryError(
                    f"{reference}: expected {' or '.join(accepted)}, got {printable(response.content_type)}"
                )
            content = await read_bounded(response, timer, LARGEST_MANIFEST, str(reference))
            stated = reference.digest or response.headers.get("Docker-Content-Digest", "")
            return _checked(content, response.content_type, stated, reference)

        call = self._manifest_call("GET", reference, {200, 404}, headers={"Accept": ", ".join(accepted)})
        return await self._session.call(call, read)

    async def _list_as_referrer(self, reference: Reference, subject: str, referrer: Descriptor) -> None:
        tag = _fallback(reference, subject)
        async with self._referrers_turn:  # one at a time: each adds to what it has read
            found = await self._find_manifest(tag, (INDEX,))
            listed = found.document.manifests if found and isinstance(found.document, ImageIndex) else []
            if referrer.digest not in {each.digest for each in listed}:
                index = ImageIndex(schema_version=2, media_type=INDEX, manifests=[*listed, referrer])
                await self.put_manifest(tag, encode(index), INDEX)

    async def _pages(self, registry: str, url: URL, scopes: Scopes, kind: type[_Page]) -> list[_Page]:
        pages: list[_Page] = []
        following: URL | None = url
        while following is not None:
            if len(pages) >= _MOST_PAGES:
                raise RegistryError(f"GET {url}: expected at most {_MOST_PAGES} pages, got more")
            page, following = await self._page(registry, following, scopes, kind)
            pages.append(page)
        return pages

    async def _page(self, registry: str, url: URL, scopes: Scopes, kind: type[_Page]) -> tuple[_Page, URL | None]:
        call = RegistryCall(registry=registry, method="GET", url=url, scopes=scopes)

        async def read(response: aiohttp.ClientResponse, timer: IdleTimer) -> tuple[_Page, URL | None]:
            content = await read_bounded(response, timer, _LARGEST_PAGE, call.where)
            try:
                page = msgspec.json.decode(content, type=kind)
            except (msgspec.MsgspecError, ValueError):
                raise RegistryError(
                    f"{call.where}: expected a list as JSON, got {printable(response.content_type)}; is this a registry?"
                ) from None
            return page, _next_page(call, response)

        return await self._session.call(call, read)

    def _manifest_call(
        self,
        method: str,
        reference: Reference,
        statuses: set[int],
        *,
        headers: dict[str, str] | None = None,
        body: bytes | None = None,
        scopes: Scopes | None = None,
    ) -> RegistryCall:
        reads = method in {"GET", "HEAD"}
        return RegistryCall(
            registry=reference.registry,
            method=method,
            url=self._session.base(reference.registry) / reference.repository / "manifests" / reference.version,
            scopes=scopes or (pull_scopes if reads else push_scopes)(reference.repository),
            headers=headers or ({"Accept": ", ".join(MANIFEST_TYPES)} if reads else {}),
            body=body,
            statuses=frozenset(statuses),
        )


def _checked(content: bytes, media_type: str, stated: str, reference: Reference) -> RemoteManifest:
    """Returns the manifest if it has the stated digest and type."""
    descriptor = descriptor_of(content, media_type)
    if stated and stated != descriptor.digest:
        raise RegistryError(f"{reference}: expected {printable(stated)}, got a manifest of {descriptor.digest}")
    try:
        document = decode_manifest(content, media_type, where=str(reference))
    except ImageError as error:
        raise RegistryError(str(error)) from None
    if document.media_type and document.media_type != media_type:
        raise RegistryError(f"{reference}: expected {media_type}, got a manifest that says {document.media_type}")
    return RemoteManifest(descriptor, content, document)


def _referrer(descriptor: Descriptor, document: Document) -> Descriptor:
    """Returns the entry in a list of referrers."""
    kind = document.artifact_type or (document.config.media_type if isinstance(document, ImageManifest) else "")
    return msgspec.structs.replace(descriptor, artifact_type=kind, annotations=document.annotations)


def _fallback(reference: Reference, subject: str) -> Reference:
    """Returns where referrers are listed in a registry without an API for them."""
    return reference._replace(tag=subject.replace(":", "-"), digest="")


def _next_page(call: RegistryCall, response: aiohttp.ClientResponse) -> URL | None:
    found = _NEXT.search(response.headers.get("Link", ""))
    if found is None:
        return None
    try:
        target = call.url.join(URL(found[1], encoded=True))
    except ValueError:
        target = URL()
    if target == call.url or not target.absolute or target.origin() != call.url.origin():
        raise RegistryError(f"{call.where}: expected the next page at the same registry, got another address")
    return target
