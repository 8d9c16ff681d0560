"""A registry is shown what it asks for, and nobody else sees it."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from aiohttp import web

from navarch._base.clock import ManualClock
from navarch.errors import RegistryError
from navarch.oci.documents import LAYER_GZIP, MANIFEST, descriptor_of
from navarch.oci.registry import RegistryCredential, RegistryOptions
from navarch.oci.registry.authorization import Challenge, RegistryAuthorization, TokenQuery, parse_challenges
from navarch.oci.registry.session import RegistrySession
from oci.registry.scripted_registry import ScriptedRegistry, answer
from oci.registry.small_images import AMD64, image, layout_in, plain_client

_SECRET = "hunter2-hunter2"
_USER = RegistryCredential(username="ada", password=_SECRET)
_BASIC = "Basic " + base64.b64encode(f"ada:{_SECRET}".encode()).decode()


class _Stored:
    def __init__(self, credential: RegistryCredential | None) -> None:
        self._credential = credential

    async def find(self, registry: str) -> RegistryCredential | None:
        return self._credential


class _Guarded(ScriptedRegistry):
    """Gives tokens at /token, and tags to whoever shows one with the scope `wanted`."""

    def __init__(self, wanted: str = "repository:team/app:pull", expires: int = 300) -> None:
        super().__init__(self._answer)
        self.wanted = wanted
        self.challenged = wanted
        self._expires = expires
        self._given: dict[str, list[str]] = {}
        self.tokens: list[list[str]] = []

    async def _answer(self, request: web.Request) -> web.Response:
        if request.path == "/token":
            form = parse_qs((await request.read()).decode())
            scopes = request.query.getall("scope", []) or form.get("scope", [""])[0].split()
            token = f"token-{len(self.tokens)}"
            self._given[f"Bearer {token}"] = scopes
            self.tokens.append(scopes)
            return answer(body=b'{"token":"%s","expires_in":%d}' % (token.encode(), self._expires))
        if self.wanted in self._given.get(request.headers.get("Authorization", ""), []):
            return answer(body=b'{"tags":["v1"]}')
        realm = f'Bearer realm="http://{self.address}/token",service="here",scope="{self.challenged}"'
        return answer(401, WWW_Authenticate=realm)


async def test_bearer_token_is_fetched_once_for_its_scope() -> None:
    """The token server gets service, scope and credentials; its token serves all further requests."""
    async with _Guarded().running() as registry, plain_client(credentials=_Stored(_USER)) as client:
        assert await client.tags(registry.name) == ["v1"]
        assert await client.tags(registry.name) == ["v1"]
    asked = [each for each in registry.seen if each.path == "/token"]
    assert len(asked) == 1
    assert asked[0].query == {"service": "here", "scope": "repository:team/app:pull"}
    assert asked[0].authorization == _BASIC
    assert all(each.authorization != _BASIC for each in registry.seen if each.path != "/token")


async def test_parallel_requests_fetch_one_token() -> None:
    """Ten requests that are challenged at once ask for one token."""
    async with _Guarded().running() as registry, plain_client(credentials=_Stored(None)) as client:
        await asyncio.gather(*(client.tags(registry.name) for _ in range(10)))
    assert len(registry.tokens) == 1


async def test_another_scope_is_asked_for() -> None:
    """A registry that wants more than the client thought gets a token with both scopes, and is remembered."""
    registry = _Guarded("repository:team/base:pull")
    async with registry.running(), plain_client(credentials=_Stored(_USER)) as client:
        assert await client.tags(registry.name) == ["v1"]
        assert registry.tokens == [["repository:team/app:pull", "repository:team/base:pull"]]
        registry.wanted = registry.challenged = "repository:team/late:pull"
        assert await client.tags(registry.name) == ["v1"]
    assert registry.tokens[-1] == ["repository:team/app:pull", "repository:team/base:pull", "repository:team/late:pull"]


async def test_registry_that_is_never_content_is_an_error() -> None:
    """A token that does not help is no endless loop; the error names the user and the remedy."""
    registry = _Guarded()
    registry.challenged = "repository:team/other:pull"
    registry.wanted = "nothing"
    async with registry.running(), plain_client(credentials=_Stored(_USER)) as client:
        with pytest.raises(
            RegistryError, match=f"expected ada to be let in, .*docker login {registry.address}"
        ) as caught:
            await client.tags(registry.name)
    assert caught.value.status == 401
    assert len(registry.seen) < 10


async def test_expired_token_is_replaced() -> None:
    """A token is used until shortly before it expires."""
    clock = ManualClock()
    async with _Guarded(expires=120).running() as registry, plain_client(clock=clock) as client:
        await client.tags(registry.name)
        await clock.advance(100)
        await client.tags(registry.name)
        assert len(registry.tokens) == 1
        await clock.advance(15)
        await client.tags(registry.name)
    assert len(registry.tokens) == 2


async def test_identity_token_is_exchanged() -> None:
    """What `docker login` stores for some registries goes to the token server as a refresh token."""
    stored = _Stored(RegistryCredential(identity_token=_SECRET))
    async with _Guarded().running() as registry, plain_client(credentials=stored) as client:
        assert await client.tags(registry.name) == ["v1"]
    asked = next(each for each in registry.seen if each.path == "/token")
    assert asked.method == "POST"
    assert asked.authorization == ""
    assert parse_qs(asked.body.decode()) == {
        "grant_type": ["refresh_token"],
        "refresh_token": [_SECRET],
        "service": ["here"],
        "client_id": ["navarch"],
        "scope": ["repository:team/app:pull"],
    }


async def test_mount_asks_for_its_source_too(tmp_path: Path) -> None:
    """A blob of another repository is mounted with a token that may read there."""
    registry = _Guarded("repository:team/base:pull")
    layout = layout_in(tmp_path)
    layer = layout.image(image(layout), AMD64)[1].layers[0]
    async with registry.running(), plain_client() as client:
        await client.put_blob(registry.name, layer, layout, mount_from="team/base")
    assert set(registry.tokens[0]) == {"repository:team/app:pull,push", "repository:team/base:pull"}


async def test_basic_credentials_are_sent_when_asked_for() -> None:
    """No password goes out before a registry asks for one."""

    async def play(request: web.Request) -> web.Response:
        if request.headers.get("Authorization") == _BASIC:
            return answer(body=b'{"repositories":["team/app"]}')
        return answer(401, WWW_Authenticate='Basic realm="here"')

    async with ScriptedRegistry(play).running() as registry, plain_client(credentials=_Stored(_USER)) as client:
        assert await client.catalog(registry.address) == ["team/app"]
        assert await client.catalog(registry.address) == ["team/app"]
    assert [each.authorization for each in registry.seen] == ["", _BASIC, _BASIC]


@pytest.mark.parametrize(
    ("stored", "text"),
    [(_USER, "expected ada to be let in"), (None, "without credentials, got a refusal; run `docker")],
)
async def test_refused_credentials_are_an_error_without_them(stored: RegistryCredential | None, text: str) -> None:
    """The error names the registry and the remedy, never the password."""

    async def play(request: web.Request) -> web.Response:
        return answer(401, WWW_Authenticate='Basic realm="here"')

    async with ScriptedRegistry(play).running() as registry, plain_client(credentials=_Stored(stored)) as client:
        with pytest.raises(RegistryError, match=text) as caught:
            await client.catalog(registry.address)
    assert _SECRET not in str(caught.value)
    assert _BASIC.removeprefix("Basic ") not in repr(caught.value)


async def test_redirected_blob_is_fetched_without_authorization(tmp_path: Path) -> None:
    """The storage behind a registry never sees its tokens, nor is its own challenge answered."""
    content = b"layer"
    layer = descriptor_of(content, LAYER_GZIP)

    async def store(request: web.Request) -> web.Response:
        if request.query.get("signature") == "refused":
            return answer(401, WWW_Authenticate='Basic realm="storage"')
        return answer(body=content, content_type="application/octet-stream")

    storage = ScriptedRegistry(store)
    signature = "given"

    async def play(request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != _BASIC:
            return answer(401, WWW_Authenticate='Basic realm="here"')
        return answer(307, Location=f"http://{storage.address}/blob?signature={signature}")

    registry = ScriptedRegistry(play)
    async with storage.running(), registry.running(), plain_client(credentials=_Stored(_USER)) as client:
        assert await client.get_blob(registry.name, layer, layout_in(tmp_path)) == "received"
        signature = "refused"
        with pytest.raises(RegistryError, match="got 401") as caught:
            await client.get_blob(registry.name, layer, layout_in(tmp_path / "other"))
    assert [each.authorization for each in storage.seen] == ["", ""]
    assert "signature" not in str(caught.value)


async def test_upload_at_another_host_gets_no_authorization(tmp_path: Path) -> None:
    """An upload's address may be elsewhere; what the registry was shown is not shown there."""
    layout = layout_in(tmp_path)
    layer = layout.add(b"layer", LAYER_GZIP)

    async def store(request: web.Request) -> web.Response:
        return answer(201)

    storage = ScriptedRegistry(store)

    async def play(request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != _BASIC:
            return answer(401, WWW_Authenticate='Basic realm="here"')
        if request.method == "HEAD":
            return answer(404)
        return answer(202, Location=f"http://{storage.address}/upload?state=1")

    registry = ScriptedRegistry(play)
    async with storage.running(), registry.running(), plain_client(credentials=_Stored(_USER)) as client:
        assert await client.put_blob(registry.name, layer, layout) == "sent"
    assert [(each.authorization, each.body) for each in storage.seen] == [("", b"layer")]
    assert storage.seen[0].query == {"state": "1", "digest": layer.digest}


async def test_token_server_without_tls_gets_no_credentials() -> None:
    """A registry cannot make a client send its password over an open line."""

    async def fetch(query: TokenQuery) -> tuple[int, bytes]:
        raise AssertionError("nothing is sent")

    guard = RegistryAuthorization("r.example.com", _Stored(_USER), fetch, ManualClock(), plain_http=False)
    for realm in ("http://auth.example.com/token", "", "ftp://auth.example.com", "https://[", "/token"):
        with pytest.raises(
            RegistryError, match=r"expected a token server with TLS|expected the address of a token server"
        ):
            await guard.answer([Challenge("bearer", {"realm": realm})], frozenset(), "")


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"token":""}', b'{"token":"a\\nb"}', b'{"token":7}'])
async def test_answer_without_a_token_is_an_error(body: bytes) -> None:
    """The token server's answer is named, and not shown."""

    async def play(request: web.Request) -> web.Response:
        if request.path == "/token":
            return answer(body=body)
        return answer(401, WWW_Authenticate=f'Bearer realm="http://{request.host}/token"')

    async with ScriptedRegistry(play).running() as registry, plain_client() as client:
        with pytest.raises(RegistryError, match="expected JSON with a token, got something else"):
            await client.get_manifest(registry.name, (MANIFEST,))


async def test_unknown_challenge_is_an_error() -> None:
    """A registry that wants something else than basic and bearer is named with what it wants."""

    async def play(request: web.Request) -> web.Response:
        return answer(401, WWW_Authenticate="Negotiate")

    async with ScriptedRegistry(play).running() as registry, plain_client() as client:
        with pytest.raises(RegistryError, match="expected it to ask for basic or bearer authorization, got negotiate"):
            await client.catalog(registry.address)


def test_challenges_are_read_as_registries_write_them() -> None:
    """Several challenges, in one header or in many, with quoted commas and escapes."""
    found = parse_challenges(
        [
            r'bearer realm="https://a/t?x=1,2", service=s ,scope="repository:a/b:pull,push",error="\"x\""',
            "Basic realm=r",
        ]
    )
    assert found == [
        Challenge(
            "bearer",
            {"realm": "https://a/t?x=1,2", "service": "s", "scope": "repository:a/b:pull,push", "error": '"x"'},
        ),
        Challenge("basic", {"realm": "r"}),
    ]
    assert parse_challenges(["", "=", '"', "a=b"]) == []


def test_docker_hub_has_an_api_of_its_own() -> None:
    """Its images are named after another host than the one that serves them; all others are asked where they say."""
    session = RegistrySession(RegistryOptions(credentials=_Stored(None)))
    assert str(session.base("docker.io")) == "https://registry-1.docker.io/v2/"
    assert str(session.base("r.example.com:5000")) == "https://r.example.com:5000/v2/"
