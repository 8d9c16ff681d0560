"""How soon a pod of an operator's image is ready on the rig's node, and how much memory it has then."""

from __future__ import annotations

import json
import ssl
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

import msgspec
import yaml

import rig
from rig.waiting import wait_for

_MANIFESTS: Final = Path(__file__).parents[2] / "examples" / "memcached" / "dist" / "install.yaml"
_NAMESPACE: Final = "memcached-operator-system"
_DEPLOYMENT: Final = "memcached-operator-controller-manager"
_SERVICE_ACCOUNT: Final = f"{_NAMESPACE}:{_DEPLOYMENT}"
_LIMIT: Final = 300.0
_IDLE: Final = 30.0


class StartedPod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that was started, and ended again."""

    seconds: float
    """From when it was scheduled until it was ready."""
    memory_mb: float
    """Its working set, as `kubectl top` shows it, after it was idle for a while; 0 if nobody waited for that."""


def install(cluster: rig.Cluster) -> None:
    """Installs all but the Deployment. Both operators may do everything: the roles are ours, the one in Go needs others."""
    documents = [each for each in yaml.safe_load_all(_MANIFESTS.read_text()) if each["kind"] != "Deployment"]
    cluster.kubectl("apply", "--filename=-", stdin=yaml.safe_dump_all(documents))
    rights = ("--clusterrole=cluster-admin", f"--serviceaccount={_SERVICE_ACCOUNT}")
    cluster.kubectl("create", "clusterrolebinding", "bench", *rights)


def start(cluster: rig.Cluster, image: str, *, is_idle: bool = False) -> StartedPod:
    """Runs one replica until it is ready, and if asked until its memory at rest is known; removes it afterwards.

    The manifest is the example's with a probe every second: one every five would hide all differences.
    """
    with _watching_pods(cluster) as events:
        cluster.kubectl("apply", "--filename=-", stdin=yaml.safe_dump(_deployment(image)))
        try:
            seconds = _seconds_to_ready(cluster, events)
            return StartedPod(seconds=seconds, memory_mb=_idle_memory(cluster) if is_idle else 0.0)
        finally:
            cluster.kubectl("delete", "deployment", _DEPLOYMENT, f"--namespace={_NAMESPACE}")
            wait_for("the pod to end", lambda: not _pods(cluster), seconds=_LIMIT)


def _deployment(image: str) -> dict[str, Any]:
    found: dict[str, Any] = next(
        each for each in yaml.safe_load_all(_MANIFESTS.read_text()) if each["kind"] == "Deployment"
    )
    found["spec"]["replicas"] = 1
    container = found["spec"]["template"]["spec"]["containers"][0]
    container["image"] = image
    container["imagePullPolicy"] = "IfNotPresent"
    container["readinessProbe"] |= {"initialDelaySeconds": 0, "periodSeconds": 1}
    return found


@contextmanager
def _watching_pods(cluster: rig.Cluster) -> Iterator[IO[bytes]]:
    """Yields the lines of a watch that has begun."""
    url = f"{cluster.url}/api/v1/namespaces/{_NAMESPACE}/pods?watch=1"
    asked = urllib.request.Request(url, headers={"Authorization": f"Bearer {cluster.token}"})  # noqa: S310 - https
    context = ssl.create_default_context(cafile=str(cluster.ca_file))
    with urllib.request.urlopen(asked, timeout=_LIMIT, context=context) as events:  # noqa: S310 - https
        yield events


def _seconds_to_ready(cluster: rig.Cluster, events: IO[bytes]) -> float:
    """Returns when the watch showed both; the times in the pod have whole seconds."""
    scheduled = 0.0
    try:
        for line in events:
            now, status = time.monotonic(), json.loads(line)["object"]["status"]
            conditions = {each["type"] for each in status.get("conditions", ()) if each["status"] == "True"}
            if "PodScheduled" in conditions:
                scheduled = scheduled or now
            if "Ready" in conditions:
                return now - scheduled
    except TimeoutError:
        pass
    told = cluster.kubectl("describe", "pods", f"--namespace={_NAMESPACE}")
    raise RuntimeError(f"expected a ready pod within {_LIMIT:g} s, got:\n{told[-3000:]}")


def _idle_memory(cluster: rig.Cluster) -> float:
    """Returns the working set of the pod, measured when it was idle for a while, in MB."""
    rested = time.monotonic() + _IDLE

    def measured() -> float | None:
        if time.monotonic() < rested:
            return None
        told = json.loads(cluster.get(f"/api/v1/nodes/{cluster.node}/proxy/stats/summary") or b"{}")
        pods = [each for each in told.get("pods", ()) if each["podRef"]["namespace"] == _NAMESPACE]
        return float(pods[0]["memory"]["workingSetBytes"]) / 2**20 if pods else None

    return wait_for("the memory of an idle pod", measured, seconds=_LIMIT)


def _pods(cluster: rig.Cluster) -> str:
    return cluster.kubectl("get", "pods", f"--namespace={_NAMESPACE}", "--output=name")
