"""kubectl, unchanged, with what runs in pods: over WebSockets, and over SPDY as older ones do it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import socket
import struct
import subprocess
import termios
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import IO, Any

import pytest

import rig
from conformance.pod_sites import Served
from rig import programs
from rig.process import CLEAN_ENVIRONMENT

SECONDS = 60
EVERY_BYTE = bytes(range(256))
OLDER = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false", "KUBECTL_PORT_FORWARD_WEBSOCKETS": "false"}


@dataclass
class Kubectl:
    """kubectl in the namespace of a test; `variables` are for its environment."""

    served: Served
    folder: Path
    variables: dict[str, str] = field(default_factory=dict)

    def __call__(self, *arguments: str, stdin: bytes = b"") -> tuple[int, bytes, bytes]:
        """Its exit code and what it wrote."""
        done = subprocess.run(
            self._command(arguments), input=stdin, capture_output=True, timeout=SECONDS, env=self._env(), check=False
        )
        return done.returncode, done.stdout, done.stderr

    @contextlib.contextmanager
    def running(self, *arguments: str, **streams: Any) -> Iterator[subprocess.Popen[bytes]]:
        """Killed at the end, or when it takes too long."""
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, **streams}
        with subprocess.Popen(self._command(arguments), env=self._env(), **streams) as process:
            alarm = threading.Timer(SECONDS, process.kill)
            alarm.start()
            try:
                yield process
            finally:
                alarm.cancel()
                process.kill()

    def _command(self, arguments: tuple[str, ...]) -> list[str]:
        return [
            str(programs.KUBECTL.path),
            f"--kubeconfig={self.served.kubeconfig}",
            "-n",
            self.served.namespace,
            *arguments,
        ]

    def _env(self) -> dict[str, str]:
        return {**CLEAN_ENVIRONMENT, "HOME": str(self.folder), **self.variables}


@pytest.fixture(params=["websockets", "spdy"])
def kubectl(request: pytest.FixtureRequest, served: Served, tmp_path: Path) -> Kubectl:
    """As it is, and as older ones are."""
    return Kubectl(served, tmp_path, OLDER if request.param == "spdy" else {})


def line(stream: IO[bytes] | None) -> bytes:
    """The next line; fails when there is none."""
    assert stream is not None
    found = stream.readline()
    assert found, "expected a line, got the end"
    return found


def test_commands_give_output_and_exit_code(served: Served, kubectl: Kubectl) -> None:
    """And read every byte of their input."""
    served.start("pause")
    assert kubectl("exec", "web", "--", "probe", "echo", "hi") == (0, b"hi\n", b"")
    assert kubectl("exec", "web", "--", "probe", "warn", "oh") == (0, b"", b"oh\n")
    code, output, said = kubectl("exec", "web", "--", "probe", "exit", "7")
    assert (code, output, said) == (7, b"", b"command terminated with exit code 7\n")
    mebibyte = EVERY_BYTE * 4096
    assert kubectl("exec", "-i", "web", "--", "probe", "cat", stdin=mebibyte) == (0, mebibyte, b"")
    code, _, said = kubectl("exec", "web", "--", "/nothing")
    assert code == 1
    assert b"no such file or directory" in said


def test_what_serves_http_is_reached_without_a_port_of_its_own(served: Served, tmp_path: Path) -> None:
    """By `kubectl get --raw`, and by a browser through `kubectl proxy`."""
    kubectl = Kubectl(served, tmp_path)
    served.start("http", "8080", readinessProbe={"tcpSocket": {"port": 8080}, "periodSeconds": 1})
    place = f"/api/v1/namespaces/{served.namespace}/pods/web:8080/proxy"
    code, output, said = kubectl("get", "--raw", f"{place}/some/where?a=b")
    assert (code, json.loads(output)["target"]) == (0, "/some/where?a=b"), said
    assert kubectl("get", "--raw", f"{place}/refuse")[0] == 1
    with kubectl.running("proxy", "--port=0") as process:
        port = int(line(process.stdout).rpartition(b":")[2])
        with closing(HTTPConnection("127.0.0.1", port, timeout=SECONDS)) as browser:
            browser.request("PUT", f"{place}/x", b"body")
            assert json.loads(browser.getresponse().read())["body"] == "body"
            browser.request("GET", f"{place}/page")
            assert f'<a href="{place}/rewriteme'.encode() in browser.getresponse().read()


def test_pod_is_debugged_by_a_container_beside_its_own(served: Served, tmp_path: Path) -> None:
    """`kubectl debug` starts it, and shows what it says."""
    kubectl = Kubectl(served, tmp_path)
    served.start("pause")
    asked = ["--image", rig.PROBE_IMAGE, "--image-pull-policy", "Never", "-c", "debugger", "--attach=false"]
    assert kubectl("debug", "-q", "web", *asked, "--", "probe", "echo", "hello")[0] == 0
    ended = "{.status.ephemeralContainerStatuses[0].state.terminated.exitCode}=0"
    assert kubectl("wait", f"--for=jsonpath={ended}", "pod/web", f"--timeout={SECONDS}s")[0] == 0
    assert kubectl("logs", "web", "-c", "debugger")[:2] == (0, b"hello\n")


def test_terminal_has_the_size_of_its_own(served: Served, kubectl: Kubectl) -> None:
    """`kubectl exec -it` in a window of 100 by 40."""
    served.start("pause")
    own, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs, "start_new_session": True}
    with kubectl.running("exec", "-it", "web", "--", "probe", "size", **streams):
        os.close(theirs)
        shown = b""
        while b"100 40\r\n" not in shown:
            shown += os.read(own, 1024)
    os.close(own)


def test_attached_program_answers(served: Served, kubectl: Kubectl) -> None:
    """Its input is ours."""
    served.start("cat", stdin=True, stdinOnce=True)
    with kubectl.running("attach", "-i", "-q", "web", stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(b"hello\n")
        process.stdin.flush()
        assert line(process.stdout) == b"hello\n"


def test_port_carries_many_connections(served: Served, kubectl: Kubectl) -> None:
    """A mebibyte each; the end of what the client sends is the end for the pod, and its answer still comes."""
    served.start("serve", "7777", readinessProbe={"tcpSocket": {"port": 7777}, "periodSeconds": 1})
    data = EVERY_BYTE * 4096

    def echoed(port: int) -> bytes:
        with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as connection:
            sending = threading.Thread(target=send, args=(connection,))
            sending.start()
            received = b"".join(iter(lambda: connection.recv(65536), b""))
            sending.join()
            return received

    def send(connection: socket.socket) -> None:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)

    with kubectl.running("port-forward", "web", ":7777") as process, ThreadPoolExecutor() as pool:
        port = forwarded_port(process)
        assert list(pool.map(echoed, [port] * 8)) == [data] * 8


def test_closed_port_is_told(served: Served, kubectl: Kubectl) -> None:
    """And kubectl gives up."""
    served.start("pause")
    with kubectl.running("port-forward", "web", ":9") as process:
        with socket.create_connection(("127.0.0.1", forwarded_port(process)), timeout=SECONDS) as connection:
            assert connection.recv(1) == b""
        assert process.stdout is not None
        assert b"connection refused" in process.stdout.read()
        assert process.wait(SECONDS) == 1


def test_pod_that_dies_ends_its_connections(served: Served, kubectl: Kubectl) -> None:
    """While they are open."""
    served.start("serve", "7777", readinessProbe={"tcpSocket": {"port": 7777}, "periodSeconds": 1})
    with (
        kubectl.running("port-forward", "web", ":7777") as process,
        socket.create_connection(("127.0.0.1", forwarded_port(process)), timeout=SECONDS) as connection,
    ):
        connection.sendall(b"hello")
        assert connection.recv(5) == b"hello"
        assert kubectl("delete", "pod", "web", "--now")[0] == 0
        with contextlib.suppress(ConnectionResetError):
            assert connection.recv(1) == b""


def forwarded_port(process: subprocess.Popen[bytes]) -> int:
    """Where kubectl listens."""
    found = re.match(rb"Forwarding from 127.0.0.1:(\d+)", line(process.stdout))
    assert found is not None
    return int(found[1])


def test_logs_are_followed_and_cut(served: Served, tmp_path: Path) -> None:
    """-f, --tail, --since, --timestamps, --previous."""
    kubectl = Kubectl(served, tmp_path)
    served.start("tick")
    with kubectl.running("logs", "-f", "web") as process:
        assert [line(process.stdout) for _ in range(5)] == [f"tick {number}\n".encode() for number in range(5)]
        assert kubectl("delete", "pod", "web", "--now")[0] == 0
        assert process.wait(SECONDS) == 0
    served.start("lines", "5")
    with kubectl.running("logs", "-f", "web") as process:
        assert [line(process.stdout) for _ in range(5)][4] == b"line 4\n"
    assert kubectl("logs", "web", "--tail=2") == (0, b"line 3\nline 4\n", b"")
    assert kubectl("logs", "web", "--since=1h", "--limit-bytes=6") == (0, b"line 0", b"")
    assert re.fullmatch(rb"\d{4}-\d\d-\d\dT\S+Z line 4\n", kubectl("logs", "web", "--tail=1", "--timestamps")[1])
    code, _, said = kubectl("logs", "web", "--previous")
    assert (code, b"previous terminated container" in said) == (1, True)


def test_files_are_copied(served: Served, tmp_path: Path) -> None:
    """To the pod and back; on the real one the image has no tar."""
    if not served.kubeconfig.is_relative_to(tmp_path):
        pytest.skip("the image of the rig has no tar")
    kubectl = Kubectl(served, tmp_path)
    served.start("pause")
    there, back = tmp_path / "there", tmp_path / "back"
    there.write_bytes(EVERY_BYTE * 10_000)
    assert kubectl("cp", str(there), f"web:{tmp_path}/copy")[0] == 0
    assert kubectl("cp", f"web:{tmp_path}/copy", str(back))[0] == 0
    assert back.read_bytes() == there.read_bytes()
