"""The registry stores what it promised, refuses what is none, and keeps its contents."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

import aiohttp
import pytest
from yarl import URL

from navarch._base.clock import ManualClock
from navarch._base.connections import Connector
from navarch.errors import ConfigError
from navarch.oci.documents import INDEX, LARGEST_MANIFEST, MANIFEST, ImageIndex, digest_of, encode
from navarch.oci.reference import Reference
from navarch.oci.registry import pull, push
from navarch.oci.registry_server import RegistryServerOptions, serve, serve_in_thread
from oci.registry.small_images import AMD64, artifact, image, index, layout_in, plain_client

_UPLOADS = "/v2/team/app/blobs/uploads/"


class _Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def code(self) -> str:
        return str(json.loads(self.body)["errors"][0]["code"])


class _Raw:
    """Sends requests as they are written, paths included."""

    def __init__(self, address: str, session: aiohttp.ClientSession) -> None:
        self.address = address
        self._session = session

    async def __call__(self, method: str, path: str, body: bytes | None = None, **headers: str) -> _Answer:
        url = URL(f"http://{self.address}{path}", encoded=True)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self._session.request(method, url, data=body and BytesIO(body), headers=named) as response:
            return _Answer(response.status, dict(response.headers), await response.read())


@asynccontextmanager
async def _served(folder: Path, options: RegistryServerOptions | None = None) -> AsyncIterator[_Raw]:
    async with (
        serve(folder, options) as address,
        aiohttp.ClientSession(connector=Connector(), auto_decompress=False) as session,
    ):
        yield _Raw(address, session)


async def _push(folder: Path, address: str, make: Callable[..., object] = index) -> tuple[Reference, str]:
    layout = layout_in(folder)
    root = make(layout)
    name = Reference(address, "team/app", "v1")
    async with plain_client() as client:
        await push(client, layout, root, name)  # type: ignore[arg-type] # a descriptor
    return name, root.digest  # type: ignore[attr-defined] # as above


async def test_contents_survive_a_restart(tmp_path: Path) -> None:
    """Images, tags and referrers are there again after the registry was stopped and started."""
    layout = layout_in(tmp_path / "ours")
    root = index(layout)
    about = artifact(layout, root)
    async with serve(tmp_path / "registry") as address, plain_client() as client:
        name = Reference(address, "team/app", "v1")
        await push(client, layout, root, name)
        await push(client, layout, about, name._replace(tag="", digest=about.digest))
    async with serve(tmp_path / "registry") as address, plain_client() as client:
        name = name._replace(registry=address)
        assert await client.catalog(address) == ["team/app"]
        assert await client.tags(name) == ["v1"]
        assert [each.digest for each in await client.referrers(name._replace(digest=root.digest))] == [about.digest]
        assert (await pull(client, name, layout_in(tmp_path / "theirs"))).digest == root.digest


async def test_start_removes_what_nobody_needs(tmp_path: Path) -> None:
    """Abandoned uploads, and blobs that no manifest names, are gone at the next start; deleted images free their space."""
    folder = tmp_path / "registry"
    async with _served(folder) as send:
        name, digest = await _push(tmp_path / "ours", send.address)
        blob = digest_of(b"lost")
        assert (await send("POST", f"{_UPLOADS}?digest={blob}", b"lost")).status == 201
        assert (await send("POST", _UPLOADS)).status == 202
        assert list((folder / "uploads").iterdir())
    async with _served(folder) as send:
        assert not list((folder / "uploads").iterdir())
        assert (await send("HEAD", f"/v2/team/app/blobs/{blob}")).status == 404
        async with plain_client() as client:
            name = name._replace(registry=send.address)
            assert (await pull(client, name, layout_in(tmp_path / "theirs"))).digest == digest
            theirs = layout_in(tmp_path / "theirs")
            for each in json.loads(theirs.read(digest))["manifests"]:
                await client.delete_manifest(name._replace(tag="", digest=each["digest"]))
            await client.delete_manifest(name._replace(digest=digest))
            assert await client.catalog(send.address) == []
    async with serve(folder):
        assert not list((folder / "blobs" / "sha256").iterdir())


async def test_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    """Nobody's files are mixed with those of a registry, and no two servers share a folder."""
    (tmp_path / "letter.txt").touch()
    with pytest.raises(ConfigError, match="expected the folder of a registry, or an empty one, got other files"):
        async with serve(tmp_path):
            pass
    async with serve(tmp_path / "registry") as address:
        with pytest.raises(ConfigError, match="got one that is in use; stop the other registry"):
            async with serve(tmp_path / "registry"):
                pass
        port = int(address.rpartition(":")[2])
        with pytest.raises(ConfigError, match=f"expected to listen at 127.0.0.1:{port}, got: .*choose another port"):
            async with serve(tmp_path / "other", RegistryServerOptions(port=port)):
                pass


async def test_blob_is_uploaded_in_parts(tmp_path: Path) -> None:
    """Parts come in order, each from where the last ended; the state can be asked for, and the end checks the digest."""
    digest = digest_of(b"0123456789")
    async with _served(tmp_path) as send:
        opened = await send("POST", _UPLOADS)
        at = opened.headers["Location"]
        assert (await send("PATCH", at, b"01234", Content_Range="0-4")).headers["Range"] == "0-4"
        late = await send("PATCH", at, b"9", Content_Range="9-9")
        assert (late.status, late.code, late.headers["Range"]) == (416, "BLOB_UPLOAD_INVALID", "0-4")
        asked = await send("GET", at)
        assert (asked.status, asked.headers["Range"], asked.headers["Location"]) == (204, "0-4", at)
        done = await send("PUT", f"{at}?digest={digest}", b"56789", Content_Range="5-9")
        assert (done.status, done.headers["Docker-Content-Digest"]) == (201, digest)
        assert (await send("GET", at)).code == "BLOB_UPLOAD_UNKNOWN"
        assert (await send("GET", done.headers["Location"])).body == b"0123456789"
        part = await send("GET", done.headers["Location"], Range="bytes=7-")
        assert (part.status, part.body, part.headers["Content-Range"]) == (206, b"789", "bytes 7-9/10")
        head = await send("HEAD", done.headers["Location"])
        assert (head.status, head.headers["Content-Length"], head.body) == (200, "10", b"")


async def test_wrong_digest_stores_nothing(tmp_path: Path) -> None:
    """An upload that is not what it says is refused and removed, in one request or in many."""
    wrong = digest_of(b"other")
    async with _served(tmp_path) as send:
        at = (await send("POST", _UPLOADS)).headers["Location"]
        assert (await send("PUT", f"{at}?digest={wrong}", b"content")).code == "DIGEST_INVALID"
        assert (await send("POST", f"{_UPLOADS}?digest={wrong}", b"content")).code == "DIGEST_INVALID"
        assert (
            await send("PUT", f"{(await send('POST', _UPLOADS)).headers['Location']}", b"")
        ).code == "DIGEST_INVALID"
        cancelled = (await send("POST", _UPLOADS)).headers["Location"]
        assert (await send("DELETE", cancelled)).status == 204
        assert (await send("PATCH", cancelled, b"x")).code == "BLOB_UPLOAD_UNKNOWN"
        assert not list((tmp_path / "blobs" / "sha256").iterdir())
        assert len(list((tmp_path / "uploads").iterdir())) == 1


@pytest.mark.parametrize(
    "path",
    [
        "/v2/../../etc/manifests/passwd",
        "/v2/a/%2e%2e/%2e%2e/b/manifests/v1",
        "/v2/a/..%2f..%2fb/manifests/v1",
        "/v2/a/manifests/..%2f..%2fx",
        "/v2/a/manifests/sha256:..%2f..%2fx",
        "/v2/a/blobs/sha256:..%2f..%2f..%2fetc",
        "/v2/a/blobs/uploads/..%2f..%2fnavarch-registry",
        "/v2/a/referrers/sha256:x",
        "/v2/_blobs/tags/list",
        "/v2/A/tags/list",
        "/v2/a/tags/list?n=-1",
        "/v2/a/blobs/sha512:" + "a" * 128,
        "/etc/passwd",
        "/v2/" + "a" * 300 + "/tags/list",
    ],
)
async def test_paths_out_of_the_folder_are_refused(tmp_path: Path, path: str) -> None:
    """Names, tags, digests and uploads are what they have to be, with an error of the protocol otherwise."""
    async with _served(tmp_path / "registry") as send:
        for method in ("GET", "DELETE", "PUT", "PATCH"):
            body = _EMPTY_INDEX if method in {"PUT", "PATCH"} else None
            found = await send(method, path, body, Content_Type=INDEX)
            assert found.status in {400, 404, 405}
            assert found.code
    assert _names(tmp_path) == {"registry"}
    assert not _names(tmp_path / "registry" / "repositories")


def _names(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir()}


_EMPTY_INDEX = encode(ImageIndex(schema_version=2, media_type=INDEX, manifests=[]))


async def test_manifest_without_its_parts_is_refused(tmp_path: Path) -> None:
    """Config and layers, and the images of an index, have to be there before; then nothing is tagged."""
    layout = layout_in(tmp_path / "ours")
    root = index(layout)
    single = layout.image(root, AMD64)[0]
    async with _served(tmp_path / "registry") as send:
        for tag, each in (("v1", single), ("v2", root)):
            body = layout.read(each.digest)
            found = await send("PUT", f"/v2/team/app/manifests/{tag}", body, Content_Type=each.media_type)
            assert (found.status, found.code) == (404, "MANIFEST_BLOB_UNKNOWN")
        assert (await send("GET", "/v2/team/app/tags/list")).code == "NAME_UNKNOWN"


@pytest.mark.parametrize(
    ("body", "content_type", "code"),
    [
        (b"{", INDEX, "MANIFEST_INVALID"),
        (_EMPTY_INDEX, MANIFEST, "MANIFEST_INVALID"),
        (_EMPTY_INDEX, "text/plain", "MANIFEST_INVALID"),
        (b"{}", "application/json", "MANIFEST_INVALID"),
        (b" " * (LARGEST_MANIFEST + 1), INDEX, "SIZE_INVALID"),
    ],
)
async def test_bad_manifest_is_not_stored(tmp_path: Path, body: bytes, content_type: str, code: str) -> None:
    """A manifest is JSON of its type and of bounded size."""
    async with _served(tmp_path) as send:
        assert (await send("PUT", "/v2/app/manifests/v1", body, Content_Type=content_type)).code == code
        other = await send("PUT", f"/v2/app/manifests/{digest_of(b'')}", _EMPTY_INDEX, Content_Type=INDEX)
        assert other.code == "DIGEST_INVALID"
        assert (await send("GET", "/v2/_catalog")).body == b'{"repositories":[]}'


async def test_large_blob_is_refused(tmp_path: Path) -> None:
    """A blob has a largest size, whatever it is sent with."""
    async with _served(tmp_path, RegistryServerOptions(largest_blob=10)) as send:
        at = (await send("POST", _UPLOADS)).headers["Location"]
        assert (await send("PATCH", at, b"x" * 11)).code == "SIZE_INVALID"
        assert not list((tmp_path / "uploads").iterdir())


async def test_uploads_are_bounded(tmp_path: Path) -> None:
    """Only so many uploads are open at once; one that nobody continues for an hour makes room."""
    clock = ManualClock()
    async with _served(tmp_path, RegistryServerOptions(uploads=2, clock=clock)) as send:
        first = (await send("POST", _UPLOADS)).headers["Location"]
        await send("POST", _UPLOADS)
        refused = await send("POST", _UPLOADS)
        assert (refused.status, refused.code, refused.headers["Retry-After"]) == (429, "TOOMANYREQUESTS", "1")
        await clock.advance(3601)
        assert (await send("POST", _UPLOADS)).status == 202
        assert (await send("GET", first)).code == "BLOB_UPLOAD_UNKNOWN"
        assert len(list((tmp_path / "uploads").iterdir())) == 1


async def test_blob_of_another_repository_has_to_be_mounted(tmp_path: Path) -> None:
    """A repository has its own blobs; a mount of an absent one opens an upload instead."""
    digest = digest_of(b"content")
    async with _served(tmp_path) as send:
        await send("POST", f"{_UPLOADS}?digest={digest}", b"content")
        assert (await send("GET", f"/v2/other/blobs/{digest}")).code == "BLOB_UNKNOWN"
        assert (await send("POST", f"/v2/other/blobs/uploads/?mount={digest}&from=nobody")).status == 202
        assert (await send("POST", f"/v2/other/blobs/uploads/?mount={digest}&from=team/app")).status == 201
        assert (await send("DELETE", f"/v2/team/app/blobs/{digest}")).status == 202
        assert (await send("GET", f"/v2/other/blobs/{digest}")).body == b"content"
        assert (await send("DELETE", f"/v2/other/blobs/{digest}")).status == 202
        assert not list((tmp_path / "blobs" / "sha256").iterdir())


async def test_tag_is_deleted_alone(tmp_path: Path) -> None:
    """Without the tag the manifest is still there by its digest."""
    async with _served(tmp_path / "registry") as send:
        name, digest = await _push(tmp_path / "ours", send.address, image)
        async with plain_client() as client:
            await client.delete_manifest(name)
            assert await client.tags(name) == []
            assert await client.head_manifest(name._replace(digest=digest)) is not None
        assert (await send("DELETE", "/v2/team/app/manifests/v1")).code == "MANIFEST_UNKNOWN"


async def test_lists_have_pages(tmp_path: Path) -> None:
    """A list is sorted, and has a link to its next page as long as there is one."""
    async with _served(tmp_path) as send:
        for tag in "cab":
            await send("PUT", f"/v2/app/manifests/{tag}", _EMPTY_INDEX, Content_Type=INDEX)
        first = await send("GET", "/v2/app/tags/list?n=2")
        assert json.loads(first.body) == {"name": "app", "tags": ["a", "b"]}
        assert first.headers["Link"] == '</v2/app/tags/list?n=2&last=b>; rel="next"'
        second = await send("GET", "/v2/app/tags/list?n=2&last=b")
        assert json.loads(second.body)["tags"] == ["c"]
        assert "Link" not in second.headers
        assert json.loads((await send("GET", "/v2/app/tags/list?n=0")).body)["tags"] == []


async def test_broken_upload_keeps_what_came(tmp_path: Path) -> None:
    """After a connection that breaks, the upload says how far it came, and takes the rest."""
    async with _served(tmp_path) as send:
        at = (await send("POST", _UPLOADS)).headers["Location"]
        host, _, port = send.address.rpartition(":")
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"PATCH {at} HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n01234".encode())
        await writer.drain()
        while (await send("GET", at)).headers["Range"] != "0-4":
            pass
        busy = await send("PATCH", at, b"x")
        assert busy.code == "BLOB_UPLOAD_INVALID"
        writer.transport.abort()
        digest = digest_of(b"0123456789")
        while (await send("PATCH", at, b"56789", Content_Range="5-9")).status != 202:
            pass
        assert (await send("PUT", f"{at}?digest={digest}")).status == 201


def test_registry_runs_in_a_thread(tmp_path: Path) -> None:
    """Programs without an event loop have a registry, too; an unusable folder is the same error."""
    with serve_in_thread(tmp_path / "registry") as address:
        with urlopen(f"http://{address}/v2/") as answer:
            assert answer.headers["Docker-Distribution-API-Version"] == "registry/2.0"
        with pytest.raises(ConfigError, match="in use"), serve_in_thread(tmp_path / "registry"):
            pass
    with serve_in_thread(tmp_path / "registry") as again:
        assert again
