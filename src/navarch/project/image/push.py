"""Pushes a project's image, with its SBOMs."""

from __future__ import annotations

import msgspec

from navarch.errors import ImageError
from navarch.oci.documents import Descriptor, ImageIndex
from navarch.oci.layout import Layout
from navarch.oci.reference import Reference
from navarch.oci.registry import PushSummary, RegistryClient, push
from navarch.oci.registry.transfer import OnProgress
from navarch.project.image.build import LAYOUT_FOLDER, LOCK, check_push_name
from navarch.project.image.build_cache import lock_file
from navarch.project.project import Project


class PushedImage(msgspec.Struct, frozen=True, kw_only=True):
    """What a push has sent."""

    image: str
    """The image by its name."""
    digest: str
    reference: str
    """The image by its digest."""
    sent_bytes: int
    skipped_bytes: int
    """The bytes of blobs that the registry had already."""
    sboms: list[str]
    """The digests of the SBOMs' manifests."""


def find_image(project: Project, name: str) -> tuple[Layout, Descriptor]:
    """Returns the built image of that name or, if there is none, of the project's own name. Raises `ImageError`."""
    folder = project.root / LAYOUT_FOLDER
    layout = Layout.open(folder) if (folder / "index.json").exists() else None
    names = layout.names if layout is not None else {}
    for each in (name, project.settings.image):
        found = names.get(str(Reference.parse(each)))
        if layout is not None and found is not None:
            return layout, found
    raise ImageError(
        f"expected the image {name} in {LAYOUT_FOLDER}, got {', '.join(names) or 'none'}; run: navarch image build"
    )


async def push_image(
    client: RegistryClient, project: Project, name: str, progress: OnProgress = lambda _: None
) -> PushedImage:
    """Pushes the image under that name: its SBOMs first, its tag last. Raises `ImageError` and `RegistryError`."""
    reference = check_push_name(name)
    find_image(project, name)
    with lock_file(project.root / LAYOUT_FOLDER / LOCK, shared=True):
        layout, root = find_image(project, name)
        document = layout.manifest(root)
        images = {each.digest for each in document.manifests} if isinstance(document, ImageIndex) else {root.digest}
        sboms = layout.referrers(images)
        done = [await push(client, layout, each, _by_digest(reference, each), progress=progress) for each in sboms]
        pushed = await push(client, layout, root, reference, progress=progress)
    sizes = {each.digest: each.size for each in layout.reachable([root, *sboms])}
    return PushedImage(
        image=str(reference),
        digest=root.digest,
        reference=pushed.reference,
        sent_bytes=sum(each.sent_bytes for each in (*done, pushed)),
        skipped_bytes=sum(_skipped(each, sizes) for each in (*done, pushed)),
        sboms=[each.digest for each in sboms],
    )


def _by_digest(reference: Reference, descriptor: Descriptor) -> Reference:
    return reference._replace(tag="", digest=descriptor.digest)


def _skipped(summary: PushSummary, sizes: dict[str, int]) -> int:
    return sum(sizes[digest] for digest, outcome in summary.blobs.items() if outcome != "sent")
