"""Probes decide when a container is ready, and when it is restarted."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from cluster.nodes.machines import Machine, condition, is_ready, shell, status_of
from navarch.client import StrategicPatch
from navarch.k8s.core.v1 import Container, Pod, Probe

_SERVER = """
import http.server, os
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/good" and self.headers["X-Probe"] == "yes" else 500)
        self.end_headers()
    def log_message(self, *_): pass
http.server.HTTPServer((os.environ["ADDRESS"], 8080), Handler).serve_forever()
"""
MOUNTS = [{"name": "data", "mountPath": "/data"}]
VOLUMES = [{"name": "data", "emptyDir": {}}]
_ADDRESS = {"name": "ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}


def _probe(**action: Any) -> Any:
    return {"periodSeconds": 1, "failureThreshold": 1, **action}


def _server(**fields: Any) -> Container:
    return Container(name="main", image="python", args=["-c", _SERVER], env=[_ADDRESS], **fields)  # type: ignore[list-item]  # as in a manifest


@pytest.mark.parametrize(
    "action",
    [
        {"httpGet": {"path": "/good", "port": "web", "httpHeaders": [{"name": "X-Probe", "value": "yes"}]}},
        {"tcpSocket": {"port": 8080}},
        {"exec": {"command": [sys.executable, "-c", "print('fine')"]}, "timeoutSeconds": 10},
    ],
    ids=["http", "tcp", "exec"],
)
async def test_a_pod_is_ready_when_its_probe_is_content(machine: Machine, action: dict[str, Any]) -> None:
    """HTTP, TCP and exec probes succeed; several pods listen on the same port, each at its own address."""
    ports = [{"name": "web", "containerPort": 8080}]
    for name in ("one", "two"):
        await machine.create(_server(readiness_probe=_probe(**action), ports=ports), name=name)
    for name in ("one", "two"):
        await machine.until(is_ready, name=name)


async def test_a_pod_whose_probe_fails_is_not_ready(machine: Machine) -> None:
    """The pod runs, and its readiness follows the probe."""
    probe = _probe(exec={"command": ["test", "-e", "/data/good"]})
    shared = machine.folder / "shared"
    shared.mkdir()
    volumes = [{"name": "data", "hostPath": {"path": str(shared)}}]
    container = shell("sleep 100", readiness_probe=probe, volume_mounts=[{"name": "data", "mountPath": "/data"}])
    await machine.create(container, volumes=volumes)
    assert (await machine.noted("Unhealthy")).startswith("Readiness probe failed:")
    pod = await machine.until(lambda pod: pod.status.phase == "Running")
    ready = condition(pod, "Ready")
    assert (ready.status, ready.reason) == ("False", "ContainersNotReady")
    assert ready.message == "containers with unready status: [main]"
    (shared / "good").touch()
    pod = await machine.until(is_ready)
    assert condition(pod, "Ready").reason is None
    (shared / "good").unlink()
    await machine.until(lambda pod: not is_ready(pod))


async def test_a_container_that_is_not_alive_is_restarted(machine: Machine) -> None:
    """A failing liveness probe stops the container and restarts it."""
    script = "trap 'exit 0' TERM; touch /data/heeds; while :; do sleep 0.05; done"
    heeds, dead = {"command": ["test", "-e", "/data/heeds"]}, {"command": ["test", "!", "-e", "/data/heeds"]}
    container = shell(
        script,
        volume_mounts=MOUNTS,
        startup_probe=_probe(exec=heeds, failureThreshold=60),
        liveness_probe=_probe(exec=dead, timeoutSeconds=60),
    )
    await machine.create(container, termination_grace_period_seconds=600, volumes=VOLUMES)
    pod = await machine.until(lambda pod: status_of(pod).restart_count >= 1)
    last = status_of(pod).last_state
    assert last is not None
    assert last.terminated is not None
    assert last.terminated.exit_code == 0
    assert await machine.noted("Killing") == "Container main failed liveness probe, will be restarted"


async def test_a_slow_start_is_waited_for(machine: Machine) -> None:
    """The other probes do not count until the startup probe succeeds."""
    container = shell(
        "sleep 0.5; touch /data/up; sleep 100",
        volume_mounts=MOUNTS,
        startup_probe=_probe(exec={"command": ["test", "-e", "/data/up"]}, failureThreshold=60),
        liveness_probe=_probe(exec={"command": ["test", "-e", "/data/up"]}, timeoutSeconds=60),
    )
    pod = await machine.run(container, volumes=VOLUMES)
    assert status_of(pod).restart_count == 0
    assert status_of(pod).started


async def test_a_start_that_never_comes_ends_the_container(machine: Machine) -> None:
    """A startup probe that fails too often restarts the container."""
    container = shell(
        "trap 'exit 0' TERM; while :; do sleep 0.05; done", startup_probe=_probe(exec={"command": ["false"]})
    )
    await machine.create(container)
    await machine.until(lambda pod: status_of(pod).restart_count >= 1)
    assert await machine.noted("Killing") == "Container main failed startup probe, will be restarted"


async def test_a_probe_that_takes_too_long_has_failed(machine: Machine) -> None:
    """timeoutSeconds limits exec probes too, and their processes are killed."""
    probe = Probe(period_seconds=1, timeout_seconds=1, failure_threshold=1)
    probe.exec = {"command": ["sleep", "1000"]}  # type: ignore[assignment]  # as in a manifest
    await machine.create(shell("sleep 100", readiness_probe=probe))
    assert "timed out" in await machine.noted("Unhealthy")


async def test_readiness_gates_are_waited_for(machine: Machine) -> None:
    """A pod with readiness gates is ready once their conditions are true."""
    await machine.create(shell("sleep 100"), readiness_gates=[{"conditionType": "example.com/fine"}])
    pod = await machine.until(lambda pod: condition(pod, "ContainersReady").status == "True")
    assert condition(pod, "Ready").reason == "ReadinessGatesNotReady"
    patch = {"status": {"conditions": [{"type": "example.com/fine", "status": "True"}]}}
    await machine.cluster.client.patch(Pod, "pod", StrategicPatch(patch), subresource="status")
    await machine.until(is_ready)
