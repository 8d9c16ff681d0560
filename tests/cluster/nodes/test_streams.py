"""Logs, exec, attach and port-forward work on process nodes."""

from __future__ import annotations

import asyncio
import os
from datetime import timedelta
from pathlib import Path

import pytest

from cluster.nodes.machines import Machine, shell, status_of
from machine_limits import needs_namespaces
from navarch.cluster.nodes.container_logs import LogFile
from navarch.cluster.nodes.shim.program.output import LARGEST, ContainerLog
from navarch.cluster.nodes.volumes.atomic_writer import PodFolder
from navarch.cluster.streams import ContainerProcess, LogOptions, ProcessOptions
from navarch.errors import ContainerError
from navarch.k8s.core.v1 import Container, Pod


async def _all(process: ContainerProcess) -> tuple[bytes, bytes, int]:
    async def read(stream: object) -> bytes:
        return b"".join([piece async for piece in stream])  # type: ignore[attr-defined]

    try:
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            out, err = group.create_task(read(process.stdout())), group.create_task(read(process.stderr()))
            code = group.create_task(process.wait())
        return out.result(), err.result(), code.result()
    finally:
        await process.close()


async def test_a_log_is_read_in_parts(machine: Machine) -> None:
    """The whole log, its tail, a time range, timestamps, one stream and a limit of bytes are returned as requested."""
    wait = "until test -e /data/{}; do sleep 0.05; done"
    script = f"echo one; {wait.format('one')}; echo two >&2; {wait.format('two')}; echo three; printf four"
    pod = await machine.run(
        shell(script, volume_mounts=[{"name": "data", "mountPath": "/data"}]),
        restart_policy="Never",
        volumes=[{"name": "data", "emptyDir": {}}],
    )
    for word in ("one", "two"):  # what waits in two pipes has no order
        await machine.said(pod, word)
        (machine.pod_folder(pod) / "volumes" / "data" / word).touch()
    await machine.until(lambda pod: pod.status.phase == "Succeeded")
    assert await machine.log(pod) == "one\ntwo\nthree\nfour"
    assert await machine.log(pod, tail=2) == "three\nfour"
    assert await machine.log(pod, tail=0) == ""
    assert await machine.log(pod, stream="Stderr") == "two\n"
    assert await machine.log(pod, limit_bytes=5) == "one\nt"
    now = machine.cluster.client.clock.now()
    assert await machine.log(pod, since=now + timedelta(hours=1)) == ""
    stamped = (await machine.log(pod, timestamps=True)).splitlines()
    assert [line.split(" ", 1)[1] for line in stamped] == ["one", "two", "three", "four"]
    assert stamped[0].startswith("20")


async def test_a_log_is_followed_to_its_end(machine: Machine) -> None:
    """New lines arrive as they are written, and the log ends with its container."""
    script = "echo first; until test -e /data/on; do sleep 0.05; done; echo last"
    pod = await machine.run(
        shell(script, volume_mounts=[{"name": "data", "mountPath": "/data"}]),
        restart_policy="Never",
        volumes=[{"name": "data", "emptyDir": {}}],
    )
    pieces = machine.node.logs(pod.metadata.uid, "main", LogOptions(follow=True))
    async with asyncio.timeout(60):
        assert await anext(pieces) == b"first\n"
        (machine.pod_folder(pod) / "volumes" / "data" / "on").touch()
        assert b"".join([piece async for piece in pieces]) == b"last\n"


async def test_the_log_of_the_container_before_is_kept(machine: Machine) -> None:
    """`previous` returns the log of the container before its restart."""
    script = "echo started $(wc -l < /data/x); echo x >> /data/x; test $(wc -l < /data/x) = 2 && sleep 100; exit 1"
    mounts = [{"name": "data", "mountPath": "/data"}]
    prepare = shell("touch /data/x", "prepare", volume_mounts=mounts)
    volumes = [{"name": "data", "emptyDir": {}}]
    await machine.create(shell(script, volume_mounts=mounts), init_containers=[prepare], volumes=volumes)
    pod = await machine.until(lambda pod: status_of(pod).restart_count == 1 and status_of(pod).ready)
    assert await machine.log(pod, previous=True) == "started 0\n"
    await machine.cluster.eventually(lambda: machine.log(pod), lambda text: text == "started 1\n")


async def test_there_is_no_log_before_the_first_start(machine: Machine) -> None:
    """The error has Kubernetes' words."""
    pod = await machine.create(Container(name="main", image="unknown"))
    await machine.noted("BackOff")
    with pytest.raises(ContainerError, match='container "main" in pod "pod" is waiting to start'):
        await machine.log(pod)
    with pytest.raises(ContainerError, match='container "other" in pod "pod" is not available'):
        await machine.log(pod, container="other")
    started = await machine.run(shell("sleep 100"), name="fresh")
    with pytest.raises(ContainerError, match='previous terminated container "main" in pod "fresh" not found'):
        await machine.log(started, previous=True)


async def test_a_flood_of_output_is_bounded(machine: Machine) -> None:
    """A container that writes without end fills two files of 10 MB, and others keep working."""
    pod = await machine.run(shell("exec yes 'a line that is repeated without end'"), name="flood")
    folder = machine.pod_folder(pod) / "containers" / "main"

    async def sizes() -> list[int]:
        return [_size(path) for path in folder.iterdir() if ".log" in path.name]

    def are_two(found: list[int]) -> bool:
        return len(found) == 2 and sum(found) > LARGEST * 1.2

    found = await machine.cluster.eventually(sizes, are_two, timeout=120, what="two files")
    assert sum(found) < 2.2 * LARGEST
    await machine.run(shell("sleep 100"), name="other")
    assert (await machine.log(pod, tail=1)) == "a line that is repeated without end\n"
    async with asyncio.timeout(120):
        assert len(await machine.log(pod)) < 2 * LARGEST


def _size(path: Path) -> int:
    """Of a file that may be replaced in this moment."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _pod_folder(node: Path) -> PodFolder:
    folder = PodFolder(node, "uid")
    folder.open(create=0o755).close()
    return folder


def test_the_end_of_a_long_log_is_found_from_its_end(tmp_path: Path) -> None:
    """The tail crosses the border between two files, with lines of any length."""
    path = _pod_folder(tmp_path).path / "x.log"
    stamp = "2030-01-01T00:00:00.000000000Z"
    path.with_name("x.log.1").write_text("".join(f"{stamp} stdout F old {number}\n" for number in range(20000)))
    path.write_text("".join(f"{stamp} {'stderr' if number % 2 else 'stdout'} F new {number}\n" for number in range(10)))
    log = LogFile(_pod_folder(tmp_path), "x.log")
    try:
        assert [line.text for line in log.tail(2, LogOptions())] == [b"new 8", b"new 9"]
        assert [line.text for line in log.tail(1, LogOptions(stream="Stdout"))] == [b"new 8"]
        assert [line.text for line in log.tail(12, LogOptions())][:3] == [b"old 19998", b"old 19999", b"new 0"]
        assert len(log.tail(15000, LogOptions())) == 15000
        assert len(log.tail(90000, LogOptions())) == 20010
        with path.open("a") as file:
            file.write(f"{stamp} stdout P half\n{stamp} stdout F whole\n")
        assert [line.text for lines in log.new() for line in lines] == [b"half", b"whole"]
        assert [line.text for line in log.tail(1, LogOptions())] == [b"half", b"whole"]
        assert sum(len(lines) for lines in log.present()) == 20012
    finally:
        log.close()


def test_a_log_is_read_while_its_file_is_replaced(tmp_path: Path) -> None:
    """A reader survives the moment in which only the rotated file exists."""
    path, stamp = _pod_folder(tmp_path).path / "x.log", "2030-01-01T00:00:00.000000000Z"
    path.with_name("x.log.1").write_text(f"{stamp} stdout F old\n")
    log = LogFile(_pod_folder(tmp_path), "x.log")
    try:
        assert [line.text for line in log.tail(1, LogOptions())] == [b"old"]
        assert [line.text for lines in log.present() for line in lines] == [b"old"]
        assert list(log.new()) == []
        path.write_text(f"{stamp} stdout F new\n")
        assert [line.text for lines in log.new() for line in lines] == [b"new"]
    finally:
        log.close()


def test_a_log_is_neither_written_nor_read_through_a_link(tmp_path: Path) -> None:
    """A link is refused, and a pipe in the log's place blocks nobody."""
    folder = _pod_folder(tmp_path)
    stamped = "2030-01-01T00:00:00.000000000Z stdout F secret\n"
    (tmp_path / "secret").write_text(stamped)
    (folder.path / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(folder.path / "pipe")
    for name in ("link", "pipe"):
        with pytest.raises(OSError, match=r"symbolic links|No such device"):
            ContainerLog(str(folder.path / name))
        log = LogFile(folder, name)
        assert log.tail(10, LogOptions()) == []
        log.close()
    assert (tmp_path / "secret").read_text() == stamped


def test_long_lines_are_written_in_parts(tmp_path: Path) -> None:
    """A long line is written before it ends."""
    log = ContainerLog(str(tmp_path / "x.log"))
    log.add("stdout", b"a" * 40000)
    log.add("stdout", b"b\nc\n")
    log.close()
    lines = (tmp_path / "x.log").read_bytes().splitlines()
    parts = [line.split(b" ", 3)[2:] for line in lines]
    assert [tag for tag, _ in parts] == [b"P", b"P", b"F", b"F"]
    assert b"".join(text for _, text in parts) == b"a" * 40000 + b"bc"


async def test_a_command_runs_inside_the_container(machine: Machine) -> None:
    """It has the container's volumes and variables, and its own stdin, stdout, stderr and exit code."""
    container = shell(
        "echo word > /data/word; exec sleep 100",
        env=[{"name": "WHO", "value": "me"}],
        volume_mounts=[{"name": "data", "mountPath": "/data"}],
    )
    pod = await machine.run(container, volumes=[{"name": "data", "emptyDir": {}}])
    await machine.shows(pod, "word\n", "cat", "/data/word")
    options = ProcessOptions(stdin=True)
    command = ("sh", "-c", "cat; cat /data/word; echo $WHO >&2; exit 7")
    process = await machine.node.exec(pod.metadata.uid, "main", command, options)
    await process.write(b"input " * 5000)
    await process.close_stdin()
    out, err, code = await _all(process)
    assert out == b"input " * 5000 + b"word\n"
    assert (err, code) == (b"me\n", 7)


@needs_namespaces
async def test_a_command_sees_the_processes_and_files_of_the_container(machine: Machine) -> None:
    """The container's program is its process 1, and a file that it wrote outside of volumes is there."""
    pod = await machine.run(shell("echo word > /word; exec sleep 100"))
    await machine.shows(pod, "sleep\nword\n", "sh", "-c", "cat /proc/1/comm /word")


async def test_a_terminal_is_one(machine: Machine) -> None:
    """With tty there is a terminal of the requested size, which echoes input."""
    pod = await machine.run(shell("sleep 100"))
    options = ProcessOptions(stdin=True, tty=True)
    process = await machine.node.exec(pod.metadata.uid, "main", ("sh", "-c", "read x; stty size; test -t 0"), options)
    await process.resize(120, 40)
    await process.write(b"go\n")
    out, err, code = await _all(process)
    assert b"40 120" in out
    assert (err, code) == (b"", 0)


async def test_who_leaves_ends_what_was_run(machine: Machine) -> None:
    """A command is killed when its client disconnects."""
    pod = await machine.run(shell("sleep 100"))
    process = await machine.node.exec(pod.metadata.uid, "main", ("sleep", "1000"), ProcessOptions())
    await process.close()
    async with asyncio.timeout(60):
        assert await process.wait() == 137


async def test_faults_of_commands_are_told(machine: Machine) -> None:
    """A missing program and a missing container are reported."""
    pod = await machine.run(shell("sleep 100"))
    with pytest.raises(ContainerError, match="executable file not found"):
        await machine.node.exec(pod.metadata.uid, "main", ("nothing-like-it",), ProcessOptions())
    with pytest.raises(ContainerError, match='container not found \\("other"\\)'):
        await machine.node.exec(pod.metadata.uid, "other", ("true",), ProcessOptions())
    with pytest.raises(ContainerError, match="not found"):
        await machine.node.exec("nobody", "main", ("true",), ProcessOptions())


async def test_attach_is_the_container_itself(machine: Machine) -> None:
    """Input reaches the container, and its output reaches the client and the log."""
    script = "while read line; do echo got $line; test $line = end && exit 3; done"
    pod = await machine.run(shell(script, stdin=True, stdin_once=True), restart_policy="Never")
    process = await machine.node.attach(pod.metadata.uid, "main", ProcessOptions(stdin=True))
    await process.write(b"one\nend\n")
    out, _, code = await _all(process)
    assert (out, code) == (b"got one\ngot end\n", 3)
    assert await machine.log(await _ended(machine)) == "got one\ngot end\n"


async def _ended(machine: Machine) -> Pod:
    return await machine.until(lambda pod: pod.status.phase == "Failed")


async def test_attach_to_a_terminal(machine: Machine) -> None:
    """Attaching to a container with a terminal uses that terminal."""
    pod = await machine.run(
        shell("read x; echo got $x; test -t 0 || exit 9", stdin=True, tty=True), restart_policy="Never"
    )
    process = await machine.node.attach(pod.metadata.uid, "main", ProcessOptions(stdin=True, tty=True))
    await process.write(b"word\n")
    out, _, code = await _all(process)
    assert b"got word" in out
    assert code == 0


async def test_a_port_is_forwarded(machine: Machine) -> None:
    """The connection goes to the pod's address; a port without a listener is reported."""
    pod = await machine.run(Container(name="main", image="memcached"))

    async def version() -> bytes:
        try:
            reader, writer = await machine.node.forward(pod.metadata.uid, 11211)
        except ContainerError:
            return b""
        writer.write(b"version\r\n")
        line = await reader.readline()
        writer.close()
        return line

    assert (await machine.cluster.eventually(version, bool)).startswith(b"VERSION")
    with pytest.raises(ContainerError, match="failed to connect to"):
        await machine.node.forward(pod.metadata.uid, 9)


async def test_logs_end_when_nobody_reads_on(machine: Machine) -> None:
    """A followed log can be closed at any time."""
    pod = await machine.run(shell("while :; do echo x; sleep 0.05; done"))
    pieces = machine.node.logs(pod.metadata.uid, "main", LogOptions(follow=True))
    async with asyncio.timeout(60):
        assert (await anext(pieces)).startswith(b"x\n")
    await pieces.aclose()  # type: ignore[attr-defined]  # a generator
