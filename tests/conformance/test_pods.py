"""Logs, commands, terminals and ports: of containers on the real one, of processes on the embedded one."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest

import rig
from conformance.pod_sites import Site
from navarch import errors
from navarch.api import Dynamic
from navarch.client import Client, ExecResult, Listener, Output, StrategicPatch, WatchOptions
from navarch.client.target import Readable
from navarch.k8s.apps.v1 import Deployment
from navarch.k8s.core.v1 import Pod, ServiceAccount
from navarch.k8s.policy.v1 import PodDisruptionBudget

T = TypeVar("T")

DOCS = Path(__file__).parents[2] / "docs"
SECONDS = 60
EVERY_BYTE = bytes(range(256))
SPEC = {"terminationGracePeriodSeconds": 0}


def container(*arguments: str, **fields: Any) -> dict[str, Any]:
    probe = {"name": "probe", "image": rig.PROBE_IMAGE, "imagePullPolicy": "Never", "args": list(arguments)}
    return {**probe, **fields}


async def until(client: Client, kind: Readable[T], name: str, what: str, met: Callable[[T], Any]) -> None:
    """Returns when the object is as it should be."""
    options = WatchOptions(initial=True)
    try:
        async with (
            asyncio.timeout(SECONDS),
            client.watch(kind, fields={"metadata.name": name}, options=options) as changes,
        ):
            async for change in changes:
                if met(change.object):
                    return
    except TimeoutError:
        pytest.fail(f"expected {name} to {what} within {SECONDS} s")


async def start(client: Client, *arguments: str, **fields: Any) -> None:
    """Runs the probe in a pod named web; returns when it runs."""
    await create(client, "web", container(*arguments, **fields))
    await until(client, Pod, "web", "run", _running)


async def create(client: Client, name: str, *containers: dict[str, Any], **spec: Any) -> None:
    await until(client, ServiceAccount, "default", "exist", bool)
    metadata = {"name": name, "labels": {"app": name}}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**SPEC, "containers": containers, **spec}}
    await client.create(Dynamic(body))


def _statuses(pod: Pod) -> list[Any]:
    return pod.status.container_statuses or []


def _running(pod: Pod) -> bool:
    return any(status.state and status.state.running for status in _statuses(pod))


def _ended(pod: Pod) -> bool:
    return any(status.state and status.state.terminated for status in _statuses(pod))


async def test_logs_are_what_the_container_wrote(node_client: Client) -> None:
    """Whole, in part, and with the time of each line."""
    await start(node_client, "lines", "5")
    whole = "".join(f"line {number}\n" for number in range(5))
    async with asyncio.timeout(SECONDS), node_client.follow_logs("web") as lines:
        assert [f"{await anext(lines)}\n" for _ in range(5)] == whole.splitlines(keepends=True)
    now = datetime.now(UTC)  # noqa: TID251 - a real container writes at a real time
    assert await node_client.logs("web") == whole
    assert await node_client.logs("web", container="probe", tail=2) == "line 3\nline 4\n"
    assert await node_client.logs("web", tail=0) == ""
    assert await node_client.logs("web", limit_bytes=6) == "line 0"
    assert await node_client.logs("web", since_seconds=3600) == whole
    assert await node_client.logs("web", since_time=now - timedelta(hours=1)) == whole
    assert await node_client.logs("web", since_time=now + timedelta(hours=1)) == ""
    stamped = await node_client.logs("web", timestamps=True, tail=1)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z line 4\n", stamped)


async def test_followed_log_ends_with_the_container(node_client: Client) -> None:
    """Its lines come while it runs."""
    await start(node_client, "tick")
    async with asyncio.timeout(SECONDS), node_client.follow_logs("web") as lines:
        first = [await anext(lines) for _ in range(3)]
        await node_client.delete(Pod, "web", grace_seconds=0)
        rest = [line async for line in lines]
    assert first + rest == [f"tick {number}" for number in range(3 + len(rest))]


async def test_log_without_a_container_is_refused(node_client: Client) -> None:
    """In the server's words."""
    await start(node_client, "pause")
    with pytest.raises(errors.NotFound, match=r'logs of pods .*/nobody: pods "nobody" not found'):
        await node_client.logs("nobody")
    with pytest.raises(errors.BadRequest, match="container other is not valid for pod web"):
        await node_client.logs("web", container="other")
    with pytest.raises(errors.BadRequest, match="previous terminated container"):
        await node_client.logs("web", previous=True)
    with pytest.raises(errors.BadRequest, match="container other is not valid for pod web"):
        async with node_client.follow_logs("web", container="other"):
            pytest.fail("expected no log")


async def test_attached_program_reads_and_writes_until_it_ends(node_client: Client) -> None:
    """And what it wrote before its restart is still in the previous log."""
    await start(node_client, "cat", stdin=True, stdinOnce=True)
    async with asyncio.timeout(SECONDS), node_client.attach("web", stdin=True) as session:
        await session.send(b"hello\n")
        assert await anext(session) == Output("stdout", b"hello\n")
        await session.close_stdin()
        assert await session.wait() == 0
    await until(node_client, Pod, "web", "restart", lambda pod: _running(pod) and _statuses(pod)[0].restart_count == 1)
    assert await node_client.logs("web", previous=True) == "hello\n"
    assert await node_client.logs("web") == ""


async def test_commands_give_output_and_exit_code(node_client: Client) -> None:
    """Each stream on its own, and every byte as it was."""
    await start(node_client, "pause")
    assert await node_client.exec("web", ["probe", "echo", "a b", "ä"]) == ExecResult(0, "a b ä\n".encode(), b"")
    assert await node_client.exec("web", ["probe", "warn", "oh"], container="probe") == ExecResult(0, b"", b"oh\n")
    assert await node_client.exec("web", ["probe", "exit", "7"]) == ExecResult(7, b"", b"")
    assert await node_client.exec("web", ["probe", "cat"], stdin=b"") == ExecResult(0, b"", b"")
    mebibyte = EVERY_BYTE * 4096
    assert await node_client.exec("web", ["probe", "cat"], stdin=mebibyte) == ExecResult(0, mebibyte, b"")


async def test_commands_run_at_the_same_time(node_client: Client) -> None:
    """Each has a connection of its own."""
    await start(node_client, "pause")
    async with asyncio.TaskGroup() as tasks:
        words = [str(number) for number in range(8)]
        results = [tasks.create_task(node_client.exec("web", ["probe", "echo", word])) for word in words]
    assert [result.result().stdout.decode().strip() for result in results] == words


async def test_command_speaks_the_older_protocol_too(node_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it would with an older server."""
    monkeypatch.setattr("navarch.client.pods.exec.V5", "v4.channel.k8s.io")
    await start(node_client, "pause")
    assert await node_client.exec("web", ["probe", "exit", "5"]) == ExecResult(5, b"", b"")
    with pytest.raises(errors.ServerError, match="no such file"):
        await node_client.exec("web", ["/nothing"])


async def test_command_that_cannot_run_is_an_error(node_client: Client) -> None:
    """Never an exit code that somebody made up."""
    await start(node_client, "pause")
    await create(node_client, "over", container("echo"), restartPolicy="Never")
    await create(node_client, "nowhere", container("pause"), nodeSelector={"no": "node"})
    with pytest.raises(errors.ServerError, match=r"/nothing.*no such file"):
        await node_client.exec("web", ["/nothing"])
    with pytest.raises(errors.DeadlineError, match="to end within 1 s"):
        await node_client.using(timeout=1).exec("web", ["probe", "pause"])
    with pytest.raises(errors.NotFound, match='pods "nobody" not found'):
        await node_client.exec("nobody", ["probe"])
    with pytest.raises(errors.BadRequest, match="container other is not valid for pod web"):
        await node_client.exec("web", ["probe"], container="other")
    with pytest.raises(errors.BadRequest, match="does not have a host assigned"):
        await node_client.exec("nowhere", ["probe"])
    await until(node_client, Pod, "over", "end", _ended)
    with pytest.raises(errors.ServerError, match="container not found"):
        await node_client.exec("over", ["probe"])


async def test_command_that_is_not_allowed_is_forbidden(site: Site) -> None:
    """The WebSocket is refused with the server's words."""
    async with site.connect_as("guest") as guest:
        with pytest.raises(errors.Forbidden, match='User "guest" cannot get resource "pods/exec"'):
            await guest.exec("web", ["probe"])


async def test_containers_for_debugging_are_added_to_a_pod_that_runs(node_client: Client) -> None:
    """Each runs once, beside the others, and can be talked with; when it ends, the pod goes on."""
    await start(node_client, "pause")
    for name, arguments in (("debug", ["cat"]), ("once", ["echo", "hello"])):
        added = {**container(*arguments), "name": name, "stdin": name == "debug"}
        patch = StrategicPatch({"spec": {"ephemeralContainers": [added]}})
        await node_client.patch(Pod, "web", patch, subresource="ephemeralcontainers")

    def states(pod: Pod) -> dict[str, Any]:
        return {each.name: each.state for each in pod.status.ephemeral_container_statuses or [] if each.state}

    def begun(pod: Pod) -> bool:
        found = states(pod)
        return len(found) == 2 and bool(found["debug"].running) and bool(found["once"].terminated)

    await until(node_client, Pod, "web", "have both", begun)
    assert await node_client.logs("web", container="once") == "hello\n"
    assert (await node_client.exec("web", ["probe", "echo", "hi"], container="debug")).stdout == b"hi\n"
    for _ in range(2):  # whoever has no more to say leaves it to others
        async with asyncio.timeout(SECONDS), node_client.attach("web", container="debug", stdin=True) as session:
            await session.send(b"hello\n")
            assert await anext(session) == Output("stdout", b"hello\n")
            await session.close_stdin()
            assert await session.wait() == 0
    pod = await node_client.get(Pod, "web")
    once = states(pod)["once"].terminated
    assert (once.exit_code, once.reason, pod.status.phase) == (0, "Completed", "Running")
    assert [(each.name, each.ready) for each in _statuses(pod)] == [("probe", True)]


async def test_session_is_a_conversation(node_client: Client) -> None:
    """Question by question, until the end of the input."""
    await start(node_client, "pause")
    async with asyncio.timeout(SECONDS), node_client.exec_session("web", ["probe", "cat"], stdin=True) as session:
        for question in (b"one", b"two"):
            await session.send(question)
            assert await anext(session) == Output("stdout", question)
        await session.close_stdin()
        assert await session.wait() == 0


async def test_terminal_knows_its_size(node_client: Client) -> None:
    """From the first resize on."""
    await start(node_client, "pause")
    shown = b""
    command = ["probe", "size"]
    async with asyncio.timeout(SECONDS), node_client.exec_session("web", command, stdin=True, tty=True) as session:
        await session.resize(columns=100, rows=40)
        while b"100 40\r\n" not in shown:
            shown += (await anext(session)).data


async def test_forwarded_connections_are_independent(node_client: Client) -> None:
    """Both are open at the same time and carry every byte."""
    await serve(node_client)
    async with asyncio.timeout(SECONDS), node_client.port_forward("web", 7777) as forward:
        one, two = await forward.connect(), await forward.connect()
        await one.write(EVERY_BYTE)
        await two.write(b"two")
        assert await two.read() == b"two"
        received = b""
        while len(received) < len(EVERY_BYTE):
            received += await one.read()
        assert received == EVERY_BYTE


async def test_local_port_leads_to_the_pod(node_client: Client) -> None:
    """Two local programs at once, a mebibyte each."""
    await serve(node_client)
    data = EVERY_BYTE * 4096

    async def echoed(listener: Listener) -> bytes:
        async with local(listener) as (reader, writer):
            writer.write(data)
            return await reader.readexactly(len(data))

    async with (
        asyncio.timeout(SECONDS),
        node_client.port_forward("web", 7777) as forward,
        forward.listen() as listener,
        asyncio.TaskGroup() as tasks,
    ):
        both = [tasks.create_task(echoed(listener)) for _ in range(2)]
    assert [task.result() for task in both] == [data, data]


async def test_port_that_nothing_listens_on_is_told(node_client: Client, caplog: pytest.LogCaptureFixture) -> None:
    """To whoever connects, and in the log for local programs."""
    await serve(node_client)
    async with asyncio.timeout(SECONDS), node_client.port_forward("web", 9) as forward:
        stream = await forward.connect()
        with pytest.raises(errors.ConnectError, match=r"web:9: nothing listens there .*connection refused"):
            await stream.read()
        async with forward.listen() as listener, local(listener) as (reader, _):
            assert await reader.read() == b""
    assert "nothing listens there" in caplog.text


async def test_port_of_no_pod_is_refused(node_client: Client) -> None:
    """When connecting."""
    async with node_client.port_forward("nobody", 80) as forward:
        with pytest.raises(errors.NotFound, match='pods "nobody" not found'):
            await forward.connect()


async def serve(client: Client, port: int = 7777, **fields: Any) -> None:
    """Runs an echo server; returns when it listens."""
    probe = {"tcpSocket": {"port": port}, "periodSeconds": 1}
    await create(client, "web", container("serve", str(port), readinessProbe=probe, **fields))
    await until(client, Pod, "web", "be ready", lambda pod: any(status.ready for status in _statuses(pod)))


@asynccontextmanager
async def local(listener: Listener) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection of a local program."""
    reader, writer = await asyncio.open_connection(listener.host, listener.port)
    try:
        yield reader, writer
    finally:
        writer.close()
        await writer.wait_closed()


async def test_budget_stands_in_the_way_of_an_eviction(node_client: Client) -> None:
    """Until it is gone."""
    await start(node_client, "pause")
    budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    kind = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
    await node_client.create(Dynamic({**kind, "metadata": {"name": "all"}, "spec": budget}))
    await until(node_client, PodDisruptionBudget, "all", "count", lambda found: found.status.expected_pods)
    with pytest.raises(errors.TooManyRequests, match=r"evict pods .*/web: .*violate the pod's disruption budget"):
        await node_client.evict("web")
    await node_client.delete(PodDisruptionBudget, "all")
    await node_client.evict("web", grace_seconds=0)
    with pytest.raises(errors.NotFound):
        await node_client.get(Pod, "web")


async def test_deployment_is_scaled(node_client: Client) -> None:
    """Through the scale subresource, down to real pods."""
    await until(node_client, ServiceAccount, "default", "exist", bool)
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {**SPEC, "containers": [container("pause")]}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    await node_client.create(
        Dynamic({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})
    )
    scaled = await node_client.scale(Deployment, "web", 2)
    assert scaled.spec.replicas == 2
    await until(node_client, Deployment, "web", "have two pods", lambda web: web.status.ready_replicas == 2)
    scale = await node_client.get_scale(Deployment, "web")
    assert scale.status.replicas == 2


async def test_pods_page_runs_from_top_to_bottom(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every function on docs/pods.md does what it says."""
    await serve(site.client, 8080, name="server")
    monkeypatch.setattr("navarch.connect", site.connect)
    source = "\n".join(re.findall(r"```python\n(.*?)```", (DOCS / "pods.md").read_text(), re.DOTALL))
    names: dict[str, Any] = {}
    exec(compile(source, "pods.md", "exec", dont_inherit=True), names)
    examples = [value for value in names.values() if inspect.iscoroutinefunction(value)]
    assert len(examples) == source.count("async def ")
    async with asyncio.timeout(SECONDS):
        for example in examples:
            await example()
