"""Bad answers through real sockets: each is an error of ours that says what, where and what to do; nothing hangs."""

import asyncio
import json
import logging
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

import navarch.client.watch
from faulty_server import (
    Play,
    Received,
    chunked,
    faulty,
    http,
    says,
    says_and_ends,
    says_and_resets,
    says_json,
    says_nothing,
)
from navarch import errors
from navarch.api import Dynamic, Kind
from navarch.client import Client, WatchOptions
from navarch.k8s.core.v1 import ConfigMap
from scripted import config_map, event

KIND = Kind("", "v1", "ConfigMap", plural="configmaps")
WHERE = "GET /api/v1/namespaces/default/configmaps/a"
BODY = json.dumps(config_map()).encode()
SECRET = "hunter2-token"
HTML = http(b"<html>hello</html>", "200 OK", "Content-Type: text/html")

FAULTS: dict[str, tuple[Play, type[Exception], tuple[str, ...]]] = {
    "html with 200": (says(HTML), errors.BadAnswerError, (WHERE, "18 bytes of text/html with status 200", "check")),
    "html with 502": (says(HTML.replace(b"200 OK", b"502 Bad Gateway")), errors.ServerError, ("text/html with status 502", "check")),
    "truncated json, right length": (says(http(BODY[:30])), errors.BadAnswerError, (WHERE, "30 bytes", "truncated", "check")),
    "truncated json, wrong length": (says_and_ends(http(BODY[:30], length=200)), errors.ConnectionLostError, (WHERE, "broke off")),
    "cut chunk": (says_and_ends(chunked(BODY)[:-30]), errors.ConnectionLostError, (WHERE, "broke off")),
    "empty": (says(http(b"")), errors.BadAnswerError, (WHERE, "0 bytes", "check")),
    "no http": (says_and_ends(b"SSH-2.0-OpenSSH_9.2\r\n"), errors.BadAnswerError, (WHERE, "expected HTTP", "check the address")),
    "half a header": (says_and_ends(b"HTTP/1.1 200 OK\r\nContent-"), errors.ConnectionLostError, (WHERE, "broke off")),
    "ends before headers": (says_and_ends(b""), errors.ConnectionLostError, (WHERE, "broke off")),
    "reset before headers": (says_and_resets(b""), errors.ConnectionLostError, (WHERE, "broke off")),
    "reset after headers": (says_and_resets(http(b"", length=10)), errors.ConnectionLostError, (WHERE, "broke off")),
    "silence": (says_nothing(), errors.DeadlineError, (WHERE, "within 0.2 s")),
    "silence after headers": (says_nothing(http(b"", length=10)), errors.DeadlineError, (WHERE, "within 0.2 s")),
    "redirect": (says(http(b"", "302 Found", "Location: http://127.0.0.1:1/")), errors.BadAnswerError, (WHERE, "status 302", "leads elsewhere")),
    "bad gzip": (says(http(b"no gzip", "200 OK", "Content-Encoding: gzip")), errors.NavarchError, ()),
}  # fmt: skip


def exposures(error: BaseException) -> Iterator[str]:
    """Everything that a traceback would print of an error and what led to it."""
    seen: BaseException | None = error
    while seen is not None:
        yield from (str(seen), repr(seen))
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)


@pytest.mark.parametrize("name", FAULTS)
async def test_bad_answer_is_an_error_of_ours(name: str, reaching: Any, caplog: pytest.LogCaptureFixture) -> None:
    """With the class and the words that help, in bounded time, and without the token anywhere."""
    play, expected, words = FAULTS[name]
    caplog.set_level(logging.DEBUG)
    seconds = 0.2 if expected is errors.DeadlineError else 60.0
    async with faulty(play) as server, reaching(server.url, token=SECRET, options={"timeout": seconds}) as client:
        with pytest.raises(expected) as caught:
            await client.get(KIND, "a")
    for word in words:
        assert word in str(caught.value)
    assert not [text for text in exposures(caught.value) if SECRET in text or "hello" in text]
    assert SECRET not in caplog.text


async def test_refused_connection_names_the_address(reaching: Any) -> None:
    """And asks whether the server is up."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
        async with reaching(address) as client:
            with pytest.raises(
                errors.ConnectError, match=r"nobody answered at .*refused.*is the API server up"
            ) as caught:
                await client.get(KIND, "a")
    assert address in str(caught.value)


async def test_unknown_host_is_named(reaching: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a name that is wrong, and not as a server that is down."""

    def unknown(*_: object, **__: object) -> list[Any]:
        """As a resolver that knows all names; one that cannot be reached may take longer than the call has."""
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    async with reaching("http://does-not-exist.invalid") as client:
        with pytest.raises(errors.ConnectError, match=r"nobody knows the host of http://does-not-exist\.invalid .*DNS"):
            await client.get(KIND, "a")


async def test_read_survives_what_passes(reaching: Any) -> None:
    """A reset, half an answer and a gateway's page, and then the object."""
    script = (
        says_and_resets(b""),
        says_and_ends(http(BODY[:9], length=99)),
        FAULTS["html with 502"][0],
        says(http(BODY)),
    )
    async with faulty(*script) as server, reaching(server.url) as client:
        assert (await client.get(KIND, "a")).name == "a"
    assert len(server.requests) == 4


async def test_create_that_was_cut_off_is_not_sent_again(reaching: Any) -> None:
    """Not by the client, and not by what is below it."""
    listed = {"kind": "APIResourceList", "groupVersion": "v1",
              "resources": [{"name": "configmaps", "kind": "ConfigMap", "namespaced": True, "verbs": []}]}  # fmt: skip
    async with faulty(says_json(listed), says_and_ends(b"")) as server, reaching(server.url) as client:
        with pytest.raises(errors.ConnectionLostError):
            await client.create(Dynamic(config_map()))
    assert [request.method for request in server.requests] == ["GET", "POST"]


WRITES: dict[str, Any] = {
    "PUT": lambda client: client.replace(ConfigMap(name="a")),
    "DELETE": lambda client: client.delete(KIND, "a"),
    "POST": lambda client: client.create(ConfigMap(name="a")),
}


@pytest.mark.parametrize("method", WRITES)
async def test_write_cut_off_on_a_kept_connection_is_not_sent_again(method: str, reaching: Any) -> None:
    """A delete that was carried out would otherwise be answered with NotFound, or meet an object that is new."""
    async with faulty(says(http(BODY)), says_and_ends(b""), says(http(BODY))) as server, reaching(server.url) as client:
        await client.get(KIND, "a")
        with pytest.raises(errors.ConnectionLostError, match="broke off"):
            await WRITES[method](client)
    assert [(request.method, request.connection) for request in server.requests] == [("GET", 0), (method, 0)]


async def test_request_without_tls_to_a_server_with_it_is_told(reaching: Any) -> None:
    """In its own words it is no answer of Kubernetes."""
    play = says(http(b"Client sent an HTTP request to an HTTPS server.\n", "400 Bad Request"))
    async with faulty(play) as server, reaching(server.url) as client:
        with pytest.raises(errors.BadRequest, match="write https:// in the server's address"):
            await client.get(KIND, "a")


async def test_path_that_leads_nowhere_is_blamed_on_the_address(reaching: Any) -> None:
    """The core group is no CRD that somebody forgot."""
    async with faulty(says(http(b"404 page not found\n", "404 Not Found"))) as server, reaching(server.url) as client:
        with pytest.raises(errors.NotFound, match="check the path in the server's address"):
            await client.get(KIND, "a")


async def test_watch_event_cut_in_the_middle_of_a_chunk_is_had_again(reaching: Any) -> None:
    """The watch resumes at the last whole event: nothing lost, nothing twice."""
    first, second = (event("ADDED", config_map(f"c{version}", version)) for version in (2, 3))
    plays = (
        says_and_ends(chunked(first, second)[: len(chunked(first)) + 10]),
        says_and_ends(chunked(second)[:-20]),
        says(chunked(second)),
    )
    async with faulty(*plays) as server, reaching(server.url) as client:
        watch = client.watch(KIND, resource_version="1")
        assert [(await anext(watch)).object.name for _ in range(2)] == ["c2", "c3"]
        await watch.close()
    revisions = [request.target.partition("resourceVersion=")[2].split("&")[0] for request in server.requests]
    assert revisions == ["1", "2", "2"]


async def test_silent_watch_is_noticed_and_resumed(reaching: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection on which nothing comes for longer than the server was asked to keep it is dead."""
    monkeypatch.setattr(navarch.client.watch, "_GRACE_SECONDS", -0.8)
    options = WatchOptions(timeout_seconds=1)
    first = says_nothing(chunked(event("ADDED", config_map("a", 2)), end=False))
    later = [says_nothing(), says(chunked(event("ADDED", config_map("b", 3))))]

    async def play(request: Received, writer: asyncio.StreamWriter) -> None:
        """By where the watch is, not by how often it came: a machine that stalls may be silent for too long itself."""
        begins = "resourceVersion=1&" in f"{request.target}&"
        await (first if begins else later.pop(0) if len(later) > 1 else later[0])(request, writer)

    async with faulty(play) as server, reaching(server.url) as client:
        watch = client.watch(KIND, resource_version="1", options=options)
        async with asyncio.timeout(60):
            assert [(await anext(watch)).object.name for _ in range(2)] == ["a", "b"]
        await watch.close()
    assert len(server.requests) >= 3


async def test_watch_that_gets_no_headers_has_a_limit(reaching: Any) -> None:
    """Its opening is bounded like any call."""
    async with faulty(says_nothing()) as server, reaching(server.url, options={"timeout": 0.2}) as client:
        with pytest.raises(errors.DeadlineError, match=r"within 0\.2 s"):
            async with client.watch(KIND, resource_version="1"):
                pass


BIG = {"blob": "x" * 10_000_000}


async def first_event(client: Client) -> Any:
    """Of a watch that is left in good order: one that is dropped is closed when somebody collects it."""
    async with client.watch(KIND, resource_version="1") as watch:
        return await anext(watch)


@pytest.mark.parametrize("verb", ["get", "list", "watch"])
async def test_object_of_ten_megabytes_comes_through(verb: str, reaching: Any) -> None:
    """As one object, in a list and as one event of a watch."""
    big = config_map(data=BIG)
    answers = {
        "get": http(json.dumps(big).encode()),
        "list": http(json.dumps({"kind": "ConfigMapList", "metadata": {}, "items": [big, big]}).encode()),
        "watch": chunked(event("ADDED", big)),
    }
    async with faulty(says(answers[verb])) as server, reaching(server.url) as client:
        calls: dict[str, Any] = {
            "get": lambda: client.get(KIND, "a"),
            "list": lambda: client.list(KIND),
            "watch": lambda: first_event(client),
        }
        async with asyncio.timeout(60):
            found = await calls[verb]()
    shown = found.object if verb == "watch" else found[1] if verb == "list" else found
    assert len(shown["data"]["blob"]) == 10_000_000


async def test_long_event_in_small_pieces_costs_no_more_per_byte(reaching: Any) -> None:
    """Ten megabytes in pieces of one kilobyte: joined one by one they would take minutes."""
    line = event("ADDED", config_map(data=BIG))
    pieces = [line[start : start + 1000] for start in range(0, len(line), 1000)]
    async with faulty(says(chunked(*pieces))) as server, reaching(server.url) as client:
        begun = time.process_time()
        await anext(watch := client.watch(KIND, resource_version="1"))
        assert time.process_time() - begun < 10
        await watch.close()
