"""The official Python client with what runs in pods."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from kubernetes.client import ApiException
from kubernetes.stream import portforward, stream

from conformance.pod_sites import Served

pytestmark = pytest.mark.filterwarnings(  # about sockets that the client leaves behind
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)

SECONDS = 60


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    """What the client leaves to the collector must not be found in another test."""
    yield
    gc.collect()


def test_command_gives_its_output(served: Served) -> None:
    """Whole, or piece by piece with input and an exit code."""
    served.start("pause")
    execute = served.core.connect_get_namespaced_pod_exec
    streams = {"stderr": True, "stdin": False, "stdout": True, "tty": False}
    assert stream(execute, "web", served.namespace, command=["probe", "echo", "hi"], **streams) == "hi\n"
    session = stream(
        execute, "web", served.namespace, command=["probe", "cat"], _preload_content=False, **{**streams, "stdin": True}
    )
    session.write_stdin("question\n")
    assert session.readline_stdout(timeout=SECONDS) == "question"
    session.close()
    ended = stream(execute, "web", served.namespace, command=["probe", "exit", "7"], _preload_content=False, **streams)
    ended.run_forever(timeout=SECONDS)
    assert ended.returncode == 7
    ended.close()


def test_refused_command_is_an_error(served: Served) -> None:
    """With the code of the server's answer."""
    with pytest.raises(ApiException, match="404"):
        stream(served.core.connect_get_namespaced_pod_exec, "nobody", served.namespace, command=["x"], stdout=True)


def test_port_is_a_socket(served: Served) -> None:
    """What is sent comes back."""
    served.start("serve", "7777", readinessProbe={"tcpSocket": {"port": 7777}, "periodSeconds": 1})
    forward = portforward(served.core.connect_get_namespaced_pod_portforward, "web", served.namespace, ports="7777")
    connection = forward.socket(7777)
    connection.settimeout(SECONDS)
    connection.sendall(b"hello")
    assert connection.recv(5) == b"hello"
    assert forward.error(7777) is None
    connection.close()


def test_log_is_read_and_followed(served: Served) -> None:
    """As text, and line by line."""
    served.start("tick")
    following = served.core.read_namespaced_pod_log("web", served.namespace, follow=True, _preload_content=False)
    assert [next(following).decode() for _ in range(2)]
    following.close()
    assert served.core.read_namespaced_pod_log("web", served.namespace).startswith("tick 0\n")
