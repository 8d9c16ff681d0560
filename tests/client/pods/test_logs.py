"""Logs, read and followed."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from faulty_server import chunked, faulty, says, says_and_ends, says_nothing
from navarch import errors
from navarch.client import Config, connect
from scripted import Scripted, refusal, scripted

TEXT = {"Content-Type": "text/plain"}


async def followed(*chunks: bytes | BaseException) -> list[str]:
    """The lines of a log that comes in these chunks."""
    script = Scripted(200, chunks, TEXT)
    client, _ = scripted(script)
    async with client.follow_logs("web") as lines:
        found = [line async for line in lines]
    assert script.closed
    return found


async def test_logs_are_text() -> None:
    """Bytes that are not UTF-8 are replaced, not an error."""
    client, transport = scripted(Scripted(200, [b"a\xff\nb"], TEXT))
    assert await client.logs("web") == "a�\nb"
    assert transport.requests[0].path == "/api/v1/namespaces/default/pods/web/log"
    assert not transport.requests[0].query


async def test_every_parameter_reaches_the_server() -> None:
    """Zero lines are a number too."""
    client, transport = scripted(Scripted(200, [], TEXT))
    moment = datetime(2030, 1, 2, tzinfo=UTC)
    await client.logs(
        "web",
        namespace="shop",
        container="x",
        previous=True,
        since_seconds=5,
        since_time=moment,
        tail=0,
        timestamps=True,
        limit_bytes=9,
    )
    assert transport.requests[0].query == {
        "container": "x",
        "previous": "true",
        "sinceSeconds": "5",
        "sinceTime": "2030-01-02T00:00:00Z",
        "tailLines": "0",
        "timestamps": "true",
        "limitBytes": "9",
    }


async def test_refusal_is_told_in_the_words_of_the_server() -> None:
    """A container that has not started has no log."""
    client, _ = scripted(refusal(400, "BadRequest", "container is waiting to start"))
    with pytest.raises(errors.BadRequest, match="logs of pods default/web: container is waiting to start"):
        await client.logs("web")


@pytest.mark.parametrize(
    ("chunks", "lines"),
    [
        ([], []),
        ([b"one\ntwo\n"], ["one", "two"]),
        ([b"on", b"e\nt", b"wo", b"\n"], ["one", "two"]),
        ([b"\n\n"], ["", ""]),
        ([b"one\nno end"], ["one", "no end"]),
        ([b"\xc3", b"\xa4\n\xff\n"], ["ä", "�"]),
    ],
)
async def test_lines_are_whole_however_they_come(chunks: list[bytes], lines: list[str]) -> None:
    """The last one may have no end: the container wrote none."""
    assert await followed(*chunks) == lines


async def test_endless_line_comes_in_pieces() -> None:
    """Memory is bounded whatever the container writes."""
    pieces = await followed(*[b"x" * 2**18] * 9, b"\nnext\n")
    assert [len(piece) for piece in pieces] == [2**20, 2**20, 2**18, 4]


async def test_broken_connection_is_not_the_end_of_the_log() -> None:
    """Only the server can say that the container has ended."""
    async with (
        faulty(says_and_ends(chunked(b"one\n", b"tw", end=False))) as server,
        connect(Config(server=server.url)) as client,
        client.follow_logs("web") as lines,
    ):
        assert await anext(lines) == "one"
        with pytest.raises(errors.ConnectionLostError):
            await anext(lines)


async def test_following_has_a_time_limit_for_its_opening_alone() -> None:
    """A server that says nothing is given up, a container that says nothing is not."""
    async with faulty(says_nothing()) as server, connect(Config(server=server.url, timeout=0.1)) as client:
        with pytest.raises(errors.DeadlineError):
            async with client.follow_logs("web"):
                pytest.fail("expected no log")
    client, transport = scripted(Scripted(200, [], TEXT))
    async with client.follow_logs("web", tail=1):
        assert transport.requests[0].long_lived
    assert transport.requests[0].query == {"follow": "true", "tailLines": "1"}


async def test_followed_log_ends_with_its_container() -> None:
    """The end of the answer is the end of the lines."""
    async with (
        faulty(says(chunked(b"one\n"))) as server,
        connect(Config(server=server.url)) as client,
        client.follow_logs("web") as lines,
    ):
        assert [line async for line in lines] == ["one"]
