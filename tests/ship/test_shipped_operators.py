"""An operator on a real node: built, pushed, pulled, upgraded, left by its leader, rolled back and removed."""

from __future__ import annotations

import json
import os
import signal
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import rig
from navarch._base.clock import SystemClock
from rig.waiting import wait_for
from ship.shipped_operators import ShippedOperator, etcd_operator, tutorial_operator
from ship.shipping import objects_of

pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(900),
    pytest.mark.skipif(os.geteuid() != 0, reason="a node runs containers and needs root"),
]
LEASE_SECONDS = 15
_clock = SystemClock()


@pytest.fixture(params=[tutorial_operator, etcd_operator], ids=["tutorial", "etcd"])
def shipped(request: pytest.FixtureRequest, node_cluster: rig.Cluster, wheels: Path, tmp_path: Path) -> ShippedOperator:
    """A project whose image is locked."""
    found: ShippedOperator = request.param(node_cluster, wheels, tmp_path)
    found.project.navarch("generate")
    found.project.navarch("image", "lock")
    return found


def test_operator_is_shipped_to_a_real_node(shipped: ShippedOperator) -> None:
    """From a project to a running operator, through every change of its life, and back to the cluster as it was."""
    cluster, project = shipped.cluster, shipped.project
    before = objects_of(cluster)
    first = project.pushed(f"team/{shipped.name}", "v1")
    assert f"team/{shipped.name}" in catalog(cluster)

    project.deploy(first)
    cluster.kubectl("apply", "--filename=-", stdin=shipped.manifest("sample", shipped.sample))
    pods_answer_by_service_name(shipped, first)

    shipped.change_code()
    second = project.pushed(f"team/{shipped.name}", "v2")
    with objects_written(shipped) as written:
        project.deploy(second)
    assert image_of(shipped) == second
    wait_for(f"{len(written)} objects to be reconciled", lambda: are_reconciled(shipped, written), seconds=90)

    standby_takes_over(shipped, leave_cleanly, shipped.changed[0], within=LEASE_SECONDS / 2)
    standby_takes_over(shipped, leave_by_kill, shipped.changed[1], within=LEASE_SECONDS + 10)

    said = project.deploy(f"{rig.REGISTRY_NAME}/team/{shipped.name}:missing", "--wait=90", code=1)
    assert "missing" in said, said
    assert "pull" in said, said
    project.navarch("rollback")
    assert image_of(shipped) == second

    project.navarch("undeploy", "--delete-crds", "--yes")
    after = objects_of(cluster)
    assert (after - before, before - after) == (set(), set())


def catalog(cluster: rig.Cluster) -> list[str]:
    """As curl reads it."""
    with urllib.request.urlopen(f"http://{cluster.registry}/v2/_catalog", timeout=10) as answer:
        found: list[str] = json.load(answer)["repositories"]
        return found


def pods_answer_by_service_name(shipped: ShippedOperator, image: str) -> None:
    """A client in a pod reaches the sample's pods through the name of a Service."""
    cluster = shipped.cluster
    if shipped.service_port:
        wait_for("the sample's Deployment", lambda: deployment_of_sample(cluster), seconds=60)
        cluster.kubectl("expose", "deployment/sample", f"--port={shipped.service_port}")
    wait_for("the sample to be available", lambda: is_available(shipped), seconds=180)
    program = ("--command", "--", "/usr/local/bin/python3", "-c", shipped.asks)
    cluster.kubectl("run", "asker", f"--image={image}", "--restart=Never", *program)
    ended = {"Succeeded", "Failed"}
    wait_for("the asking pod to end", lambda: phase_of(cluster, "asker") in ended or None, seconds=90)
    said = cluster.kubectl("logs", "asker")
    assert shipped.answer in said, said
    cluster.kubectl("delete", "pod/asker", *(["service/sample"] if shipped.service_port else []))


def deployment_of_sample(cluster: rig.Cluster) -> str | None:
    return cluster.kubectl("get", "deployment", "sample", "--ignore-not-found", "--output=name") or None


def is_available(shipped: ShippedOperator) -> bool | None:
    conditions = sample_of(shipped).get("status", {}).get("conditions", [])
    return any(each["type"] == "Available" and each["status"] == "True" for each in conditions) or None


def sample_of(shipped: ShippedOperator) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(shipped.cluster.kubectl("get", shipped.kind, "sample", "--output=json"))
    return found


def phase_of(cluster: rig.Cluster, name: str) -> str:
    return cluster.kubectl("get", f"pod/{name}", "--output=jsonpath={.status.phase}")


@contextmanager
def objects_written(shipped: ShippedOperator) -> Iterator[list[str]]:
    """A client that creates objects for as long as the block takes; the list has their names."""
    written: list[str] = []
    ended = threading.Event()

    def write() -> None:
        while not ended.wait(0.5):
            name = f"written-{len(written)}"
            shipped.cluster.kubectl("create", "--filename=-", stdin=shipped.manifest(name, shipped.small))
            written.append(name)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield written
    finally:
        ended.set()
        writer.join(60)
    assert len(written) > 2, f"expected objects that were written during the upgrade, got {written}"


def are_reconciled(shipped: ShippedOperator, names: list[str]) -> bool | None:
    """Whether each has a status of its last generation."""
    listed = json.loads(shipped.cluster.kubectl("get", shipped.kind, "--output=json"))["items"]
    done = {each["metadata"]["name"] for each in listed if is_reconciled(each)}
    return done.issuperset(names) or None


def is_reconciled(found: dict[str, Any]) -> bool:
    return bool(found.get("status", {}).get("observedGeneration") == found["metadata"]["generation"])


def image_of(shipped: ShippedOperator) -> str:
    path = "--output=jsonpath={.spec.template.spec.containers[0].image}"
    return shipped.cluster.kubectl("get", "deployment", shipped.deployment, f"--namespace={shipped.namespace}", path)


def standby_takes_over(
    shipped: ShippedOperator, leave: Callable[[ShippedOperator, str], None], spec: dict[str, Any], *, within: float
) -> None:
    """After the leader has left, a change is reconciled by another pod, in time."""
    cluster, place = shipped.cluster, f"--namespace={shipped.namespace}"
    cluster.kubectl("rollout", "status", f"deployment/{shipped.deployment}", place, "--timeout=90s", seconds=100)
    leader = wait_for("a leader", lambda: pod_of(shipped, holder_of(shipped)), seconds=60)
    holder = holder_of(shipped)
    leave(shipped, leader)
    began = _clock.monotonic()
    cluster.kubectl("patch", shipped.kind, "sample", "--type=merge", f"--patch={json.dumps({'spec': spec})}")
    wait_for("a standby to reconcile", lambda: is_reconciled(sample_of(shipped)) or None, seconds=within + 60)
    taken = _clock.monotonic() - began
    assert holder_of(shipped) != holder
    assert taken < within, f"expected a standby to work within {within} s, got {taken:.1f} s"


def holder_of(shipped: ShippedOperator) -> str:
    """Who holds the Lease: another identity after each start of a process."""
    path = "--output=jsonpath={.spec.holderIdentity}"
    return shipped.cluster.kubectl("get", "lease", shipped.lease, f"--namespace={shipped.namespace}", path)


def pod_of(shipped: ShippedOperator, holder: str) -> str | None:
    """The pod that holds the Lease."""
    path = "--output=jsonpath={.items[*].metadata.name}"
    pods = shipped.cluster.kubectl("get", "pods", f"--namespace={shipped.namespace}", path).split()
    return next((pod for pod in pods if holder.startswith(pod)), None)


def leave_cleanly(shipped: ShippedOperator, leader: str) -> None:
    """As an upgrade of its node does it: the pod is told to end."""
    shipped.cluster.kubectl("delete", "pod", leader, f"--namespace={shipped.namespace}")


def leave_by_kill(shipped: ShippedOperator, leader: str) -> None:
    """As a crash does it: the process is gone at once, and nothing releases the Lease."""
    path = "--output=jsonpath={.status.podIP}"
    address = shipped.cluster.kubectl("get", "pod", leader, f"--namespace={shipped.namespace}", path)
    os.kill(_process_of(address), signal.SIGKILL)


def _process_of(address: str) -> int:
    """The process of the operator in the pod with that address."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes().split(b"\0")
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue  # it has ended
        if f"POD_IP={address}".encode() in environment and b"_operator" in command:
            return int(folder.name)
    raise AssertionError(f"expected a process of the pod with the address {address}, got none")
