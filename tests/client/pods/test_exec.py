"""Commands in pods, against servers good and bad."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from aiohttp import web

from client.pods.pod_server import V4, Script, exited, refuses, serving, status
from faulty_server import faulty, says_nothing
from navarch import errors
from navarch._base.clock import ManualClock
from navarch.client import Client, Config, ExecResult, Output, connect

COMMAND = ["probe"]


async def test_output_and_exit_code_are_the_result() -> None:
    """What came on both channels, whatever the exit code."""
    script = Script((b"\x01", b"\x01one ", b"\x02oops", b"\x01two", exited(7)))
    async with serving(script) as client:
        assert await client.exec("web", ["a", "b c"], container="x") == ExecResult(7, b"one two", b"oops")
    assert script.queries == ["container=x&stdout=true&stderr=true&command=a&command=b c"]


async def test_input_is_sent_whole_and_ended() -> None:
    """In pieces of a size that burdens nobody."""
    data = bytes(range(256)) * 1024
    script = Script((exited(0),), hears=len(data) + 8 + 2)
    async with serving(script) as client:
        assert (await client.exec("web", COMMAND, stdin=data)).exit_code == 0
    *pieces, last = script.heard
    assert last == b"\xff\x00"
    assert b"".join(piece[1:] for piece in pieces) == data
    assert {piece[:1] for piece in pieces} == {b"\x00"}


async def test_status_may_come_in_parts() -> None:
    """A message is not a Status: only all of them are."""
    whole = exited(3)
    async with serving(Script((whole[:10], b"\x01between", b"\x03" + whole[10:]))) as client:
        assert await client.exec("web", COMMAND) == ExecResult(3, b"between", b"")


async def test_session_gives_output_as_it_comes() -> None:
    """In the order of the server, with the exit code at the end."""
    script = Script((b"\x01a", b"\x02b", b"\xff\x01", exited(1)))
    async with serving(script) as client, client.exec_session("web", COMMAND) as session:
        assert session.exit_code is None
        assert [output async for output in session] == [Output("stdout", b"a"), Output("stderr", b"b")]
        assert session.exit_code == await session.wait() == 1


@pytest.mark.parametrize(
    "message",
    [
        b"\x09garbage",
        b"\x00echo",
        b"\x03[]",
        b'\x03{"status":7}',
        status(status="Perhaps"),
        status(),
        status(status="Failure", reason="NonZeroExitCode"),
        status(
            status="Failure", reason="NonZeroExitCode", details={"causes": [{"reason": "ExitCode", "message": "x"}]}
        ),
        b"\x03" + b"x" * 2**20 + b"x",
    ],
)
async def test_garbage_is_a_bad_answer(message: bytes) -> None:
    """An unknown channel, or an end that is none."""
    async with serving(Script((message,))) as client:
        with pytest.raises(errors.BadAnswerError, match="exec in pods default/web: expected"):
            await client.exec("web", COMMAND)


async def test_truncated_status_is_a_bad_answer() -> None:
    """It is not taken for a lost connection: the server has said something."""
    async with serving(Script((exited(3)[:20],))) as client:
        with pytest.raises(errors.BadAnswerError, match="it broke off"):
            await client.exec("web", COMMAND)


@pytest.mark.parametrize("end", ["close", "error", "break"])
async def test_end_without_a_status_is_a_lost_connection(end: str) -> None:
    """Whether the command was carried out is unknown, and it is not tried again."""
    script = Script((b"\x01half",), end=end)  # type: ignore[arg-type] # parametrize knows no Literal
    async with serving(script) as client:
        with pytest.raises(errors.ConnectionLostError):
            await client.exec("web", COMMAND)
    assert len(script.queries) == 1


async def test_silent_server_ends_with_the_time_limit() -> None:
    """The clock's time, not the server's."""
    clock, script = ManualClock(), Script(end="silence")

    async def expect_deadline(client: Client) -> None:
        with pytest.raises(errors.DeadlineError, match="within 60 s"):
            await client.exec("web", COMMAND)

    async with serving(script, clock=clock) as client, asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        tasks.create_task(expect_deadline(client))
        await script.spoke.wait()
        await clock.until_sleeping()
        await clock.advance(60)
        await script.left.wait()


async def test_server_that_never_upgrades_ends_with_the_time_limit() -> None:
    """The opening has the same limit."""
    async with faulty(says_nothing()) as server, connect(Config(server=server.url, timeout=0.1)) as client:
        with pytest.raises(errors.DeadlineError):
            async with client.exec_session("web", COMMAND):
                pytest.fail("expected no session")


async def test_cancelled_command_leaves_no_connection() -> None:
    """The server sees the end at once."""
    script = Script((b"\x01a",), end="silence")
    async with serving(script) as client:
        async with client.exec_session("web", COMMAND) as session:
            await anext(session)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(session), 0.01)
        await asyncio.wait_for(script.left.wait(), 60)


async def test_command_that_cannot_start_is_an_error_of_the_server() -> None:
    """With its code and its words."""
    failure = status(status="Failure", reason="InternalError", code=500, message="no such file")
    async with serving(Script((failure,))) as client:
        with pytest.raises(errors.ServerError, match="exec in pods default/web: no such file"):
            await client.exec("web", COMMAND)


FORBIDDEN = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "user may not create pods/exec"}


@pytest.mark.parametrize(
    ("code", "body", "media_type", "error", "words"),
    [
        (403, json.dumps(FORBIDDEN), "application/json", errors.Forbidden, "user may not create pods/exec"),
        (404, "pod does not exist\n", "text/plain", errors.NotFound, "web: pod does not exist$"),
        (502, "<html>bad gateway</html>", "text/html", errors.ServerError, "bytes of text/html"),
        (200, "<html>welcome</html>", "text/html", errors.BadAnswerError, "did not switch to a WebSocket"),
        (302, "elsewhere", "text/plain", errors.BadAnswerError, "did not switch to a WebSocket"),
    ],
)
async def test_refusal_is_told_in_the_words_of_the_server(
    code: int, body: str, media_type: str, error: type[errors.NavarchError], words: str
) -> None:
    """The API server's Status, a kubelet's plain text, or what stands in between."""
    async with serving(refuses(code, body, media_type)) as client:
        with pytest.raises(error, match=words):
            await client.exec("web", COMMAND)


async def test_busy_server_is_asked_again() -> None:
    """It has refused before anything began."""
    script = Script((exited(0),))
    refused: list[str] = []

    async def play(request: web.BaseRequest) -> web.StreamResponse:
        if refused:
            return await script(request)
        refused.append(request.path)
        return web.json_response({"kind": "Status", "code": 429, "message": "busy"}, status=429)

    async with serving(play) as client:
        assert (await client.exec("web", COMMAND)).exit_code == 0
    assert refused == ["/api/v1/namespaces/default/pods/web/exec"]


async def test_refused_token_is_read_anew(tmp_path: Path) -> None:
    """Also for a WebSocket."""
    token, script = tmp_path / "token", Script((exited(0),))
    token.write_text("old")

    async def play(request: web.BaseRequest) -> web.StreamResponse:
        if request.headers["Authorization"] == "Bearer new":
            return await script(request)
        token.write_text("new")
        return web.Response(status=401)

    async with serving(play, token_file=str(token)) as client:
        assert (await client.exec("web", COMMAND)).exit_code == 0


async def test_unknown_protocol_is_a_bad_answer() -> None:
    """Nothing is read in a language that was not agreed upon."""
    async with serving(Script((exited(0),), protocol="v9.channel.k8s.io")) as client:
        with pytest.raises(
            errors.BadAnswerError, match=r"speaks v5\.channel\.k8s\.io or v4\.channel\.k8s\.io, got 'none'"
        ):
            await client.exec("web", COMMAND)


async def test_old_server_runs_commands_but_cannot_end_their_input() -> None:
    """Version 4 of the protocol has no way to say so."""
    async with serving(Script((b"\x01a", exited(0)), protocol=V4)) as client:
        assert (await client.exec("web", COMMAND)).stdout == b"a"
    async with serving(Script(end="silence", protocol=V4)) as client:
        with pytest.raises(errors.BadAnswerError, match="expected a server that can end standard input"):
            await client.exec("web", COMMAND, stdin=b"x")


async def test_command_that_leaves_its_input_unread_still_has_a_result() -> None:
    """A connection that is gone while there is more to send is no error if the exit code has come."""
    async with serving(Script((exited(4),), hears=1)) as client:
        assert (await client.exec("web", COMMAND, stdin=b"x" * 2**24)).exit_code == 4


@pytest.mark.parametrize("command", ["ls -l", "", [], ()])
async def test_command_must_be_a_list_of_words(command: list[str]) -> None:
    """A string would be taken for a list of letters."""
    async with serving(refuses(500, "unreached", "text/plain")) as client:
        with pytest.raises(errors.InvalidValueError, match="list of words"):
            await client.exec("web", command)


async def test_terminal_is_told_its_size() -> None:
    """And has one output only."""
    script = Script((b"\x01a", exited(0)), hears=1)
    async with serving(script) as client, client.exec_session("web", COMMAND, tty=True, stdin=True) as session:
        await session.resize(columns=80, rows=24)
        assert await session.wait() == 0
    assert script.heard == [b'\x04{"Width":80,"Height":24}']
    assert script.queries == ["stdin=true&stdout=true&tty=true&command=probe"]


async def test_what_was_not_asked_for_cannot_be_used() -> None:
    """The server would drop it without a word."""
    async with serving(Script((exited(0),))) as client, client.attach("web") as session:
        with pytest.raises(errors.InvalidValueError, match="stdin=True"):
            await session.send(b"x")
        with pytest.raises(errors.InvalidValueError, match="stdin=True"):
            await session.close_stdin()
        with pytest.raises(errors.InvalidValueError, match="tty=True"):
            await session.resize(columns=1, rows=1)


async def test_attach_ends_with_the_container() -> None:
    """And reads its output until then."""
    script = Script((b"\x01log", exited(0)))
    async with serving(script) as client, client.attach("web", namespace="shop") as session:
        assert [output.data async for output in session] == [b"log"]
    assert script.queries == ["stdout=true&stderr=true"]
