"""What the client promises with any registry: ours here, Debian's in `test_debian_registry.py`.

`NAVARCH_TEST_REGISTRY` names a registry that runs already.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from navarch.errors import ImageError, RegistryError
from navarch.oci.documents import MANIFEST, encode
from navarch.oci.reference import Reference
from navarch.oci.registry import TransferProgress, client, pull, push
from navarch.oci.registry_server import serve
from oci.registry.cutting_proxy import CuttingProxy
from oci.registry.small_images import AMD64, ARM64, artifact, image, index, layout_in, noise, plain_client

_MEBIBYTE = 2**20
_GIVEN = os.environ.get("NAVARCH_TEST_REGISTRY", "")
_KEEPS_BROKEN_UPLOADS = not _GIVEN


@pytest.fixture
async def registry(tmp_path: Path) -> AsyncIterator[str]:
    if _GIVEN:
        yield _GIVEN
        return
    async with serve(tmp_path / "registry") as address:
        yield address


def _named(registry: str, tag: str = "v1", repository: str = "") -> Reference:
    return Reference(registry, repository or f"test-{uuid.uuid4().hex}/app", tag)


async def test_pushed_index_is_pulled_whole(registry: str, tmp_path: Path) -> None:
    """What was pushed comes back under its tag and its digest, with every image and blob."""
    ours, theirs = layout_in(tmp_path / "ours"), layout_in(tmp_path / "theirs")
    root, name = index(ours), _named(registry)
    async with plain_client() as connected:
        done = await push(connected, ours, root, name)
        found = await pull(connected, name, theirs)
        head = await connected.head_manifest(name._replace(digest=root.digest))
    assert done.reference == f"{name.name}@{root.digest}"
    assert set(done.blobs.values()) == {"sent"}
    assert found.digest == root.digest
    assert head is not None
    assert head.digest == root.digest
    assert [each.digest for each in theirs.reachable([found])] == [each.digest for each in ours.reachable([root])]


async def test_second_push_sends_no_blob(registry: str, tmp_path: Path) -> None:
    """A blob that the repository has is not sent again; progress says so."""
    layout, name = layout_in(tmp_path), _named(registry)
    root = index(layout, layer=noise(100_000))
    seen: list[TransferProgress] = []
    async with plain_client() as connected:
        first = await push(connected, layout, root, name)
        second = await push(connected, layout, root, name, progress=seen.append)
    assert first.sent_bytes > 200_000
    assert second.sent_bytes < 5_000
    assert {each.outcome for each in seen} == {"exists"}


async def test_pull_for_a_platform_takes_its_blobs_alone(registry: str, tmp_path: Path) -> None:
    """The image for one platform is pulled without those for others; an absent platform is named with the present ones."""
    ours, theirs = layout_in(tmp_path / "ours"), layout_in(tmp_path / "theirs")
    root, name = index(ours), _named(registry)
    async with plain_client() as connected:
        await push(connected, ours, root, name)
        found = await pull(connected, name, theirs, ARM64)
        with pytest.raises(
            RegistryError, match="expected an image for linux/s390x, got images for linux/amd64, linux/arm"
        ):
            await pull(connected, name, theirs, AMD64.parse("linux/s390x"))
    assert found.platform == ARM64
    assert found.digest == ours.image(root, ARM64)[0].digest
    assert ours.image(root, AMD64)[0].digest not in theirs
    assert len(list(theirs.reachable([found]))) == 3


async def test_image_for_another_platform_is_refused(registry: str, tmp_path: Path) -> None:
    """A single image says in its configuration what it is for."""
    layout, name = layout_in(tmp_path / "ours"), _named(registry)
    async with plain_client() as connected:
        await push(connected, layout, image(layout, AMD64), name)
        with pytest.raises(RegistryError, match="expected an image for linux/arm64, got one for linux/amd64"):
            await pull(connected, name, layout_in(tmp_path / "theirs"), ARM64)


async def test_blobs_of_another_repository_are_mounted(registry: str, tmp_path: Path) -> None:
    """The base of an image is not sent to a registry that has it in another repository."""
    layout, base = layout_in(tmp_path), _named(registry)
    other = _named(registry)
    root = image(layout, layer=noise(50_000))
    async with plain_client() as connected:
        await push(connected, layout, root, base)
        done = await push(connected, layout, root, other, mount_from=base.repository)
        again = await pull(connected, other, layout_in(tmp_path / "again"))
    assert set(done.blobs.values()) == {"mounted"}
    assert again.digest == root.digest


async def test_lists_are_read_page_by_page(registry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Repositories and tags are all listed, however small the pages of the registry."""
    monkeypatch.setattr(client, "_PAGE", 2)
    layout, first = layout_in(tmp_path), _named(registry)
    root = image(layout)
    names = [_named(registry).repository for _ in range(5)]
    async with plain_client() as connected:
        for tag in ("v1", "v2", "v3", "v4", "v5"):
            await push(connected, layout, root, first._replace(tag=tag))
        for repository in names:
            await push(connected, layout, root, _named(registry, repository=repository))
        tags = await connected.tags(first)
        repositories = await connected.catalog(registry)
    assert tags == ["v1", "v2", "v3", "v4", "v5"]
    assert {first.repository, *names} <= set(repositories)


async def test_referrers_are_found_with_and_without_the_api(registry: str, tmp_path: Path) -> None:
    """An artifact is listed at its subject, by type; a registry without that API has the list under the fallback tag."""
    layout, name = layout_in(tmp_path), _named(registry)
    root = image(layout)
    async with plain_client() as connected:
        await push(connected, layout, root, name)
        for kind in ("application/spdx+json", "application/example+json", "application/example+json"):
            about = artifact(layout, root, kind)
            await push(connected, layout, about, name._replace(tag="", digest=about.digest))
        subject = name._replace(digest=root.digest)
        found = await connected.referrers(subject)
        chosen = await connected.referrers(subject, "application/spdx+json")
        nothing = await connected.referrers(name._replace(digest=about.digest))
    assert len(found) == 2
    assert [each.artifact_type for each in chosen] == ["application/spdx+json"]
    assert nothing == []


async def test_deleted_manifest_is_gone_with_its_tag(registry: str, tmp_path: Path) -> None:
    """A manifest is deleted by its digest."""
    layout, name = layout_in(tmp_path), _named(registry)
    root = image(layout)
    async with plain_client() as connected:
        await push(connected, layout, root, name)
        await connected.delete_manifest(name._replace(digest=root.digest))
        assert await connected.head_manifest(name) is None
        with pytest.raises(RegistryError, match="MANIFEST_UNKNOWN") as caught:
            await connected.delete_manifest(name._replace(digest=root.digest))
    assert caught.value.status == 404


async def test_incomplete_image_is_never_tagged(registry: str, tmp_path: Path) -> None:
    """A layout without a layer is refused before anything is sent, a manifest without its blobs by the registry."""
    layout, name = layout_in(tmp_path), _named(registry)
    root = image(layout)
    content = layout.read(root.digest)
    layer = layout.image(root, AMD64)[1].layers[0]
    layout.path(layer.digest).unlink()
    async with plain_client() as connected:
        with pytest.raises(ImageError, match=layer.digest):
            await push(connected, layout, root, name)
        with pytest.raises(RegistryError, match="_UNKNOWN"):
            await connected.put_manifest(name, content, MANIFEST)
        assert await connected.head_manifest(name) is None


async def test_unknown_image_is_an_error_with_its_name(registry: str, tmp_path: Path) -> None:
    """A tag that does not exist is named, with the command that lists tags."""
    name = _named(registry)
    async with plain_client() as connected:
        with pytest.raises(RegistryError, match=f"{name.repository}:v1: expected a manifest, got none"):
            await pull(connected, name, layout_in(tmp_path))
        with pytest.raises(RegistryError, match="NAME_UNKNOWN"):
            await connected.tags(name)


async def test_broken_upload_is_continued(registry: str, tmp_path: Path) -> None:
    """After a connection that broke in the middle of a blob, the rest alone is sent, or all of it where the registry
    forgets what it has: Debian's does.
    """
    layout = layout_in(tmp_path)
    root = image(layout, layer=noise(16 * _MEBIBYTE))
    async with CuttingProxy(registry).running() as proxy, plain_client() as connected:
        name = _named(proxy.address)
        proxy.cuts["up"] = 9 * _MEBIBYTE
        done = await push(connected, layout, root, name)
        assert not proxy.cuts
        assert set(done.blobs.values()) == {"sent"}
        assert proxy.passed["up"] < (22 if _KEEPS_BROKEN_UPLOADS else 27) * _MEBIBYTE
        found = await pull(connected, name, layout_in(tmp_path / "again"))
    assert found.digest == root.digest


async def test_broken_download_is_continued(registry: str, tmp_path: Path) -> None:
    """After a connection that broke in the middle of a blob, the rest alone is fetched."""
    layout = layout_in(tmp_path)
    root = image(layout, layer=noise(8 * _MEBIBYTE))
    async with CuttingProxy(registry).running() as proxy, plain_client() as connected:
        name = _named(proxy.address)
        await push(connected, layout, root, name)
        proxy.cuts["down"] = 5 * _MEBIBYTE
        found = await pull(connected, name, layout_in(tmp_path / "again"))
        assert not proxy.cuts
        assert proxy.passed["down"] < 9 * _MEBIBYTE
    assert found.digest == root.digest


async def test_manifest_of_another_digest_is_not_stored(registry: str, tmp_path: Path) -> None:
    """A manifest is stored under its own digest alone."""
    layout, name = layout_in(tmp_path), _named(registry)
    root = image(layout)
    async with plain_client() as connected:
        await push(connected, layout, root, name)
        manifest = layout.image(root, AMD64)[1]
        with pytest.raises(RegistryError, match="expected a manifest of that digest"):
            await connected.put_manifest(name._replace(digest=manifest.config.digest), encode(manifest), MANIFEST)
