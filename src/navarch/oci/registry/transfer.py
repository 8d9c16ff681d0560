"""Pushes and pulls whole images: parts before the whole, and the tag last."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Final, Literal, NamedTuple

import msgspec

from navarch.errors import ImageError, InvalidValueError, RegistryError
from navarch.oci.documents import CONFIG, Descriptor, ImageIndex, ImageManifest, Platform, decode_config
from navarch.oci.layout import Layout
from navarch.oci.reference import Reference
from navarch.oci.registry.blobs import BlobOutcome
from navarch.oci.registry.client import RegistryClient, RemoteManifest

_AT_ONCE: Final = 4
_DEEPEST_INDEX: Final = 4
_IMAGE_CONFIGS: Final = frozenset({CONFIG, "application/vnd.docker.container.image.v1+json"})


class TransferProgress(NamedTuple):
    """How far a blob is."""

    descriptor: Descriptor
    done: int
    """The bytes that were moved so far."""
    outcome: BlobOutcome | Literal["moving"]


OnProgress = Callable[[TransferProgress], None]


class PushSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What a push has done."""

    reference: str
    """The image by its digest."""
    sent_bytes: int
    """The bytes of blobs and manifests that were sent."""
    blobs: dict[str, BlobOutcome]
    """What became of each blob, by digest."""


async def push(
    client: RegistryClient,
    layout: Layout,
    root: Descriptor,
    reference: Reference,
    *,
    mount_from: str = "",
    progress: OnProgress = lambda _: None,
) -> PushSummary:
    """Pushes an image, or an index with all of its images: blobs, then images, then the index, under the tag last.

    A push that ends early leaves no tag, and the next one sends only what is missing. Raises `ImageError` if a part is
    not in the layout, and `RegistryError`.
    """
    if reference.digest and reference.digest != root.digest:
        raise InvalidValueError(f"{reference}: expected the digest of the image, {root.digest}, got another")
    documents = list(_documents(layout, root))
    blobs = {each.digest: each for _, document in documents for each in _blobs(document)}
    for each in blobs.values():
        if each.digest not in layout:
            raise ImageError(
                f"{layout.folder}: expected the blob {each.digest} of {root.digest}, got none; build it again"
            )
    outcomes: dict[str, BlobOutcome] = {}

    async def send(blob: Descriptor) -> None:
        def moved(done: int) -> None:
            progress(TransferProgress(blob, done, "moving"))

        outcome = await client.put_blob(reference, blob, layout, mount_from=mount_from, on_bytes=moved)
        outcomes[blob.digest] = outcome
        progress(TransferProgress(blob, blob.size, outcome))

    await _in_parallel(send, blobs.values())
    for descriptor, _ in documents:
        target = reference._replace(digest=descriptor.digest)
        target = target if descriptor.digest == root.digest else target._replace(tag="")
        await client.put_manifest(target, layout.read(descriptor.digest), descriptor.media_type)
    sent = sum(blobs[digest].size for digest, outcome in outcomes.items() if outcome == "sent")
    return PushSummary(
        reference=f"{reference.name}@{root.digest}",
        sent_bytes=sent + sum(descriptor.size for descriptor, _ in documents),
        blobs={digest: outcomes[digest] for digest in blobs},
    )


async def pull(
    client: RegistryClient,
    reference: Reference,
    layout: Layout,
    platform: Platform | None = None,
    *,
    progress: OnProgress = lambda _: None,
) -> Descriptor:
    """Pulls an image into the layout and returns its descriptor: the image for the platform or, without one, all of them.

    The layout has a manifest only once it has all parts of it. The caller gives it a name. Raises `RegistryError`, also
    if there is no image for the platform, or if the image is for another one.
    """
    root = await client.get_manifest(reference)
    if platform is not None:
        root = await _for_platform(client, reference, root, platform)
    documents = await _all_documents(client, reference, root)
    blobs = {each.digest: each for found in documents for each in _blobs(found.document)}
    if platform is not None:
        await _check_platform(client, reference, root, layout, platform)

    async def receive(blob: Descriptor) -> None:
        def moved(done: int) -> None:
            progress(TransferProgress(blob, done, "moving"))

        outcome = await client.get_blob(reference, blob, layout, moved)
        progress(TransferProgress(blob, blob.size, outcome))

    await _in_parallel(receive, blobs.values())
    for found in documents:
        layout.add(found.content, found.descriptor.media_type)
    return msgspec.structs.replace(root.descriptor, platform=platform)


async def _for_platform(
    client: RegistryClient, reference: Reference, found: RemoteManifest, platform: Platform
) -> RemoteManifest:
    for _ in range(_DEEPEST_INDEX):
        if isinstance(found.document, ImageManifest):
            return found
        images = found.document.manifests
        chosen = next((each for each in images if each.platform is not None and each.platform.fits(platform)), None)
        if chosen is None:
            there = ", ".join(str(each.platform) for each in images if each.platform) or "none"
            raise RegistryError(f"{reference}: expected an image for {platform}, got images for {there}")
        found = await _child(client, reference, chosen)
    raise RegistryError(f"{reference}: expected at most {_DEEPEST_INDEX} indexes in one another, got more")


async def _check_platform(
    client: RegistryClient, reference: Reference, root: RemoteManifest, layout: Layout, platform: Platform
) -> None:
    """Raises `RegistryError` if the image says that it is for another platform; other artifacts are for any."""
    assert isinstance(root.document, ImageManifest)
    config = root.document.config
    if config.media_type not in _IMAGE_CONFIGS:
        return
    await client.get_blob(reference, config, layout)
    try:
        stated = decode_config(layout.read(config.digest), where=str(reference)).platform
    except ImageError as error:
        raise RegistryError(str(error)) from None
    if not stated.fits(platform):
        raise RegistryError(f"{reference}: expected an image for {platform}, got one for {stated}")


async def _all_documents(
    client: RegistryClient, reference: Reference, root: RemoteManifest, depth: int = 0
) -> list[RemoteManifest]:
    """Returns the manifests of which the root consists, each before those that name it."""
    if isinstance(root.document, ImageManifest):
        return [root]
    if depth >= _DEEPEST_INDEX:
        raise RegistryError(f"{reference}: expected at most {_DEEPEST_INDEX} indexes in one another, got more")
    found: dict[str, RemoteManifest] = {}
    for each in root.document.manifests:
        if each.digest not in found:
            child = await _child(client, reference, each)
            found |= {
                part.descriptor.digest: part for part in await _all_documents(client, reference, child, depth + 1)
            }
    return [*found.values(), root]


async def _child(client: RegistryClient, reference: Reference, descriptor: Descriptor) -> RemoteManifest:
    found = await client.get_manifest(reference._replace(tag="", digest=descriptor.digest))
    if found.descriptor.size != descriptor.size:
        raise RegistryError(
            f"{reference}: expected {descriptor.size} bytes of {descriptor.digest}, got {found.descriptor.size}"
        )
    return found


def _documents(layout: Layout, root: Descriptor) -> Iterator[tuple[Descriptor, ImageManifest | ImageIndex]]:
    """Yields the manifests of which the root consists, each before those that name it. Raises `ImageError`."""
    seen: set[str] = set()

    def walk(descriptor: Descriptor) -> Iterator[tuple[Descriptor, ImageManifest | ImageIndex]]:
        if descriptor.digest in seen:
            return
        seen.add(descriptor.digest)
        document = layout.manifest(descriptor)
        if isinstance(document, ImageIndex):
            for each in document.manifests:
                yield from walk(each)
        yield descriptor, document

    return walk(root)


def _blobs(document: ImageManifest | ImageIndex) -> list[Descriptor]:
    return [document.config, *document.layers] if isinstance(document, ImageManifest) else []


async def _in_parallel(work: Callable[[Descriptor], Awaitable[None]], blobs: Iterable[Descriptor]) -> None:
    """Does the work for each blob, some at once; the first error ends all of it and is raised."""
    turn = asyncio.Semaphore(_AT_ONCE)

    async def in_turn(blob: Descriptor) -> None:
        async with turn:
            await work(blob)

    try:
        async with asyncio.TaskGroup() as group:
            for blob in blobs:
                group.create_task(in_turn(blob))
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
