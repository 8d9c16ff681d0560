"""Whatever a registry does, the client ends with the image or with an error that says what to do."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from aiohttp.client_reqrep import ConnectionKey
from yarl import URL

from certificates import server_context, sign
from navarch._base.clock import ManualClock, settle
from navarch.errors import ClosedError, RegistryError
from navarch.oci.documents import (
    INDEX,
    LARGEST_MANIFEST,
    LAYER_GZIP,
    MANIFEST,
    Descriptor,
    ImageIndex,
    descriptor_of,
    digest_of,
    encode,
)
from navarch.oci.layout import Layout
from navarch.oci.reference import Reference
from navarch.oci.registry import RegistryClient, RegistryOptions, pull
from navarch.oci.registry.failures import connection_failure
from oci.registry.scripted_registry import ScriptedRegistry, always, answer, in_turn
from oci.registry.small_images import layout_in, noise, plain_client

_EMPTY_INDEX = encode(ImageIndex(schema_version=2, media_type=INDEX, manifests=[]))
_BLOB = noise(300_000)
_LAYER = descriptor_of(_BLOB, LAYER_GZIP)


def _index() -> web.Response:
    return answer(body=_EMPTY_INDEX, content_type=INDEX)


async def _fault(play: Callable[[web.Request], object], client: RegistryClient | None = None) -> str:
    """Returns the error of a request for a manifest."""
    async with ScriptedRegistry(play).running() as registry, client or plain_client(attempts=1) as connected:  # type: ignore[arg-type] # plays
        with pytest.raises(RegistryError) as caught:
            await connected.get_manifest(registry.name)
    return str(caught.value).replace(registry.address, "HOST")


async def test_refused_connection_is_an_error_at_once() -> None:
    """Nobody listens: the address is named, and nothing is tried again."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        name = Reference(f"127.0.0.1:{unused.getsockname()[1]}", "app", "v1")
        async with plain_client(clock=ManualClock()) as client:
            with pytest.raises(RegistryError, match=f"expected a registry at {name.registry}, got: Connection refused"):
                await client.get_manifest(name)


async def test_https_at_a_plain_registry_names_the_option() -> None:
    """Without --plain-http nothing goes over an open line, and the error has the remedy."""
    async with ScriptedRegistry(always(_index)).running() as registry, RegistryClient(RegistryOptions()) as client:
        with pytest.raises(RegistryError, match=r"expected TLS from .*, got something else; .* give --plain-http"):
            await client.get_manifest(registry.name)
    assert not registry.seen


async def test_certificates_are_verified(tmp_path: Path) -> None:
    """An unknown authority is an error with the remedy; a given one is trusted."""
    authority = sign("ca")
    (tmp_path / "ca.pem").write_bytes(authority.pem)
    registry = ScriptedRegistry(always(_index))
    async with registry.running(server_context(sign("registry", authority).pair)):
        async with RegistryClient(RegistryOptions()) as client:
            with pytest.raises(
                RegistryError, match=r"a certificate that this machine trusts, got another: .*SSL_CERT_FILE"
            ):
                await client.get_manifest(registry.name)
        async with RegistryClient(RegistryOptions(ca_file=tmp_path / "ca.pem")) as client:
            assert (await client.get_manifest(registry.name)).content == _EMPTY_INDEX
        async with plain_client(attempts=1) as client:
            with pytest.raises(RegistryError, match=r"expected .*; check"):
                await client.get_manifest(registry.name)


def test_unknown_host_is_named() -> None:
    """A name without an address says so; it is not tried again."""
    key = ConnectionKey("nobody.example.com", 443, True, True, None, None, None)
    error = aiohttp.ClientConnectorDNSError(key, OSError(-2, "Name or service not known"))
    found = connection_failure(
        error, "GET https://nobody.example.com/v2/", URL("https://nobody.example.com/"), answered=True
    )
    assert isinstance(found, RegistryError)
    assert "expected an address for nobody.example.com, got none; check the name and the DNS" in str(found)


async def test_slow_registry_is_given_up() -> None:
    """No byte for the time limit ends an attempt; the last one is an error."""
    clock, never = ManualClock(), asyncio.Event()

    async def play(_request: web.Request) -> web.Response:
        await never.wait()
        return answer()

    async with ScriptedRegistry(play).running() as registry, plain_client(clock=clock, attempts=2) as client:
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(_caught(client, registry.name))
            for _ in range(3):  # an attempt, a pause, an attempt
                await clock.until_sleeping()
                await clock.advance(60)
        never.set()
    assert "expected an answer within 60 s, got none" in waiting.result()
    assert len(registry.seen) <= 2


async def _caught(client: RegistryClient, name: Reference) -> str:
    with pytest.raises(RegistryError) as caught:
        await client.get_manifest(name)
    return str(caught.value)


async def test_registry_that_stops_reading_is_given_up(tmp_path: Path) -> None:
    """No byte that the registry takes for the time limit ends an upload, too."""
    clock, never = ManualClock(), asyncio.Event()
    layout = layout_in(tmp_path)
    layer = layout.add(noise(32 * 2**20), LAYER_GZIP)

    async def play(request: web.Request) -> web.Response:
        if request.method == "PATCH":
            stalled.set()
            await never.wait()
        return answer(404) if request.method == "HEAD" else answer(202, Location="/upload")

    stalled = asyncio.Event()
    registry = ScriptedRegistry(play, read_bodies=False)
    async with registry.running(), plain_client(clock=clock, attempts=1) as client:
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(_caught_upload(client, registry.name, layer, layout))
            await stalled.wait()
            while not waiting.done():
                await clock.advance(60)
        never.set()
        await settle()
    assert waiting.result().endswith("expected an answer within 60 s, got none")


async def _caught_upload(client: RegistryClient, name: Reference, layer: Descriptor, layout: Layout) -> str:
    with pytest.raises(RegistryError) as caught:
        await client.put_blob(name, layer, layout)
    return str(caught.value)


async def test_slow_blob_is_no_fault_while_bytes_come(tmp_path: Path) -> None:
    """The limit is the time without a byte, not that of the whole blob."""
    clock, go_on = ManualClock(), asyncio.Semaphore(0)

    async def play(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": str(len(_BLOB))})
        await response.prepare(request)
        for start in range(0, len(_BLOB), 100_000):
            await response.write(_BLOB[start : start + 100_000])
            await go_on.acquire()
        return response

    moved = asyncio.Event()
    async with (
        ScriptedRegistry(play).running() as registry,
        plain_client(clock=clock) as client,
        asyncio.TaskGroup() as group,
    ):
        waiting = group.create_task(client.get_blob(registry.name, _LAYER, layout_in(tmp_path), lambda _: moved.set()))
        for _ in range(3):
            await moved.wait()
            moved.clear()
            await clock.advance(50)
            go_on.release()
        assert await waiting == "received"


async def test_overloaded_registry_is_asked_again() -> None:
    """503 and 429 are repeated after the pause that the registry asks for."""
    clock = ManualClock()
    play = in_turn(lambda: answer(503), lambda: answer(429, Retry_After="30"), _index)
    async with (
        ScriptedRegistry(play).running() as registry,
        plain_client(clock=clock) as client,
        asyncio.TaskGroup() as group,
    ):
        waiting = group.create_task(client.get_manifest(registry.name))
        while len(registry.seen) < 2:
            await clock.advance(0.01)
        await clock.advance(29)
        assert len(registry.seen) == 2
        await clock.advance(1)
        assert (await waiting).content == _EMPTY_INDEX


@pytest.mark.parametrize("status", [500, 502, 503, 504, 429])
async def test_registry_that_stays_overloaded_is_an_error(status: int) -> None:
    """The number of attempts is bounded; the error has the last answer's status."""
    async with ScriptedRegistry(always(lambda: answer(status))).running() as registry, plain_client() as client:
        with pytest.raises(RegistryError, match=f"expected success, got {status}") as caught:
            await client.get_manifest(registry.name)
    assert caught.value.status == status
    assert len(registry.seen) == 5


async def test_upload_is_tried_as_often_as_anything(tmp_path: Path) -> None:
    """The attempts of a blob are counted once, not once more for each of its requests."""
    layout = layout_in(tmp_path)
    layer = layout.add(b"layer", LAYER_GZIP)
    async with ScriptedRegistry(always(lambda: answer(503))).running() as registry, plain_client() as client:
        with pytest.raises(RegistryError, match="got 503"):
            await client.put_blob(registry.name, layer, layout)
    assert len(registry.seen) == 5


async def test_registry_that_asks_for_an_hour_is_an_error() -> None:
    """Nobody waits longer than a minute."""
    play = always(lambda: answer(429, b'{"errors":[{"code":"TOOMANYREQUESTS"}]}', Retry_After="3600"))
    assert "429 Too Many Requests: TOOMANYREQUESTS" in await _fault(play, plain_client(clock=ManualClock()))


async def test_words_of_the_registry_are_shown() -> None:
    """Code and message of the protocol's errors are in ours, without control characters, and cut."""
    body = b'{"errors":[{"code":"DENIED","message":"not\\u001b[31m yours"},{"code":"X","message":"%s"}]}' % (
        b"y" * 9999
    )
    text = await _fault(always(lambda: answer(403, body)))
    assert text.startswith(
        "GET http://HOST/v2/team/app/manifests/v1: expected success, got 403 Forbidden: DENIED: not "
    )
    assert "\x1b" not in text
    assert len(text) < 800


async def test_page_of_html_is_no_registry() -> None:
    """A proxy's or a web site's page is recognised, as an error and as an answer."""
    html = {"body": b"<html>", "content_type": "text/html"}
    assert "a page of HTML: it is no registry" in await _fault(always(lambda: answer(403, **html)))  # type: ignore[arg-type]
    assert "got text/html" in await _fault(always(lambda: answer(200, **html)))  # type: ignore[arg-type]
    play = always(lambda: answer(200, **html))  # type: ignore[arg-type]
    async with ScriptedRegistry(play).running() as registry, plain_client() as client:
        with pytest.raises(RegistryError, match=r"expected a list as JSON, got text/html; is this a registry\?"):
            await client.catalog(registry.address)


async def test_redirects_are_bounded() -> None:
    """A registry that redirects for ever, or nowhere, is an error."""
    count = iter(range(100))
    loop = always(lambda: answer(307, Location=f"/v2/{next(count)}"))
    assert "expected at most 5 redirects, got more" in await _fault(loop)
    assert "expected a redirect to another address, got none" in await _fault(always(lambda: answer(302)))
    elsewhere = always(lambda: answer(302, Location="ftp://storage.example.com/"))
    assert "expected a redirect to another address, got none" in await _fault(elsewhere)


async def test_redirect_to_an_open_line_is_refused(tmp_path: Path) -> None:
    """From an address with TLS nobody is led to one without."""
    authority = sign("ca")
    (tmp_path / "ca.pem").write_bytes(authority.pem)
    registry = ScriptedRegistry(always(lambda: answer(307, Location="http://storage.example.com/x?signature=y")))
    options = RegistryOptions(ca_file=tmp_path / "ca.pem")
    async with registry.running(server_context(sign("registry", authority).pair)), RegistryClient(options) as client:
        with pytest.raises(
            RegistryError, match="expected a redirect to an address with TLS, got http://storage"
        ) as caught:
            await client.get_manifest(registry.name)
    assert "signature" not in str(caught.value)


async def test_redirected_write_is_refused() -> None:
    """A manifest is not stored by a redirect that turns it into a read."""
    registry = ScriptedRegistry(always(lambda: answer(302, Location="/elsewhere")))
    async with registry.running(), plain_client() as client:
        with pytest.raises(RegistryError, match="expected an answer, got a redirect to http://"):
            await client.put_manifest(registry.name, _EMPTY_INDEX, INDEX)
    assert len(registry.seen) == 1


async def test_manifest_of_another_digest_is_refused() -> None:
    """A manifest is what its digest says, whether the reference has it or the registry."""
    right, wrong = digest_of(_EMPTY_INDEX), digest_of(b"other")
    async with ScriptedRegistry(always(_index)).running() as registry, plain_client() as client:
        by_digest = Reference(registry.address, "team/app", "", right)
        assert (await client.get_manifest(by_digest)).descriptor.digest == right
        with pytest.raises(RegistryError, match=f"expected {wrong}, got a manifest of {right}"):
            await client.get_manifest(by_digest._replace(digest=wrong))
    lying = always(lambda: answer(body=_EMPTY_INDEX, content_type=INDEX, Docker_Content_Digest=wrong))
    assert f"expected {wrong}, got a manifest of {right}" in await _fault(lying)


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        (b"{}", INDEX, "expected an index as JSON"),
        (b"nonsense", MANIFEST, "expected a manifest as JSON"),
        (_EMPTY_INDEX, MANIFEST, f"expected {MANIFEST}, got a manifest that says {INDEX}"),
        (b"{}", "application/vnd.docker.distribution.manifest.v1+prettyjws", "got application/vnd.docker"),
        (b"[" * 100_000, INDEX, "expected a manifest as JSON"),
        (b" " * (LARGEST_MANIFEST + 1), INDEX, f"expected at most {LARGEST_MANIFEST} bytes, got more"),
        (
            b'{"schemaVersion":2,"manifests":[{"mediaType":"x","digest":"sha256:../../x","size":1}]}',
            INDEX,
            "expected a sha256 digest",
        ),
    ],
)
async def test_bad_manifest_is_refused(body: bytes, content_type: str, text: str) -> None:
    """A manifest is read up to its limit, and as what it says that it is."""
    assert text in await _fault(always(lambda: answer(body=body, content_type=content_type)))


async def test_image_of_another_size_is_refused(tmp_path: Path) -> None:
    """An index names its images with their size."""
    listed = Descriptor(media_type=INDEX, digest=digest_of(_EMPTY_INDEX), size=1)
    outer = encode(ImageIndex(schema_version=2, media_type=INDEX, manifests=[listed]))
    play = in_turn(lambda: answer(body=outer, content_type=INDEX), _index)
    async with ScriptedRegistry(play).running() as registry, plain_client() as client:
        with pytest.raises(RegistryError, match="expected 1 bytes of sha256"):
            await pull(client, registry.name, layout_in(tmp_path))


@pytest.mark.parametrize("wrong", [noise(300_000, seed=2), _BLOB + b"x"])
async def test_blob_of_another_content_leaves_nothing(tmp_path: Path, wrong: bytes) -> None:
    """Another digest and another size are errors, and nothing of the blob is stored."""
    layout = layout_in(tmp_path)
    async with ScriptedRegistry(always(lambda: answer(body=wrong))).running() as registry, plain_client() as client:
        with pytest.raises(
            RegistryError, match=r"sent another blob: .*expected sha256|expected 300000 bytes, got more"
        ):
            await client.get_blob(registry.name, _LAYER, layout)
    assert not list((tmp_path / "blobs" / "sha256").iterdir())


@pytest.mark.parametrize("resumed", ["from the beginning", "another part", "not at all"])
async def test_registry_that_cannot_resume_sends_the_whole_blob(tmp_path: Path, resumed: str) -> None:
    """After a part of a blob, the answer to a request for the rest may be the whole, something else, or none."""

    async def play(request: web.Request) -> web.StreamResponse:
        if len(registry.seen) == 1:
            response = web.StreamResponse(headers={"Content-Length": str(len(_BLOB))})
            await response.prepare(request)
            await response.write(_BLOB[:200_000])
            assert request.transport is not None
            request.transport.abort()
            return response
        if len(registry.seen) == 2 and resumed == "not at all":
            return answer(416)
        if len(registry.seen) == 2 and resumed == "another part":
            return answer(206, _BLOB, Content_Range=f"bytes 0-{len(_BLOB) - 1}/{len(_BLOB)}")
        return answer(body=_BLOB)

    registry = ScriptedRegistry(play)
    async with registry.running(), plain_client() as client:
        assert await client.get_blob(registry.name, _LAYER, layout_in(tmp_path)) == "received"


async def test_upload_that_the_registry_forgot_begins_anew(tmp_path: Path) -> None:
    """A registry that restarts loses its uploads; the blob is sent to another one."""
    layout = layout_in(tmp_path)
    layer = layout.add(b"layer", LAYER_GZIP)
    puts = iter((404, 416, 503, 201))

    async def play(request: web.Request) -> web.Response:
        if request.method in {"HEAD", "GET"}:
            return answer(404)
        if request.method == "POST":
            return answer(202, Location=f"/upload/{len(registry.seen)}")
        return answer(next(puts))

    registry = ScriptedRegistry(play)
    async with registry.running(), plain_client() as client:
        assert await client.put_blob(registry.name, layer, layout) == "sent"
    assert len({each.path for each in registry.seen if each.method == "PUT"}) == 4


async def test_upload_of_another_digest_is_refused(tmp_path: Path) -> None:
    """What the registry says that it has stored is compared with what was sent."""
    layout = layout_in(tmp_path)
    layer = layout.add(b"layer", LAYER_GZIP)
    wrong = digest_of(b"other")

    async def play(request: web.Request) -> web.Response:
        if request.method == "HEAD":
            return answer(404)
        return answer(202 if request.method == "POST" else 201, Location="/upload", Docker_Content_Digest=wrong)

    async with ScriptedRegistry(play).running() as registry, plain_client() as client:
        with pytest.raises(RegistryError, match=f"expected {layer.digest} to be stored, got {wrong}"):
            await client.put_blob(registry.name, layer, layout)
        with pytest.raises(RegistryError, match="to be stored, got sha256"):
            await client.put_manifest(registry.name, _EMPTY_INDEX, INDEX)


async def test_upload_without_an_address_is_an_error(tmp_path: Path) -> None:
    """A registry that opens no upload is named."""
    layout = layout_in(tmp_path)
    layer = layout.add(b"layer", LAYER_GZIP)
    play = in_turn(lambda: answer(404), lambda: answer(202))
    async with ScriptedRegistry(play).running() as registry, plain_client() as client:
        with pytest.raises(RegistryError, match="expected the address of an upload, got none"):
            await client.put_blob(registry.name, layer, layout)


@pytest.mark.parametrize("link", ["http://other.example.com/v2/_catalog?last=a", "/v2/_catalog?n=100", "http://["])
async def test_next_page_stays_at_the_registry(link: str) -> None:
    """A list cannot lead the client, and its token, to another host, nor in a circle."""
    play = always(lambda: answer(body=b'{"repositories":["a"]}', Link=f'<{link}>; rel="next"'))
    async with ScriptedRegistry(play).running() as registry, plain_client() as client:
        with pytest.raises(RegistryError, match="expected the next page at the same registry, got another address"):
            await client.catalog(registry.address)


async def test_head_without_a_digest_reads_the_manifest() -> None:
    """Some registries leave the digest out of their answer."""
    async with ScriptedRegistry(always(_index)).running() as registry, plain_client() as client:
        assert await client.head_manifest(registry.name) == descriptor_of(_EMPTY_INDEX, INDEX)


async def test_closed_client_says_so() -> None:
    """A client is used inside its block."""
    client = plain_client()
    await client.close()
    with pytest.raises(ClosedError, match="use it inside its `async with`"):
        await client.catalog("127.0.0.1:1")
