"""kubectl, unchanged: what it prints is the same on the embedded cluster as on the real one.

Each file of `kubectl/` is a console with the answers of the real cluster. `NAVARCH_GOLDEN=update` writes them anew.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

import rig
from consoles import Kubectl, replayed, without_descriptions
from navarch.cluster.embedded.https_front import ThreadedCluster

pytestmark = pytest.mark.real  # kubectl itself comes from the rig

CONSOLES = Path(__file__).parent / "kubectl"


@pytest.fixture(scope="module")
def rig_cluster() -> Iterator[rig.Cluster]:
    """A real cluster of its own: kubectl also prints what others have left, such as their kinds."""
    with rig.running() as cluster:
        yield cluster


@pytest.fixture(params=["embedded", "real"])
def place(request: pytest.FixtureRequest) -> str:
    """Which cluster it is."""
    chosen: str = request.param
    return chosen


@pytest.fixture
def kubectl(place: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kubectl]:
    """kubectl, on the one cluster or the other."""
    if place == "real":
        cluster: rig.Cluster = request.getfixturevalue("rig_cluster")
        yield Kubectl(cluster.kubeconfig, tmp_path)
        return
    with ThreadedCluster() as threaded:
        kubeconfig = tmp_path / "kubeconfig.json"
        kubeconfig.write_bytes(threaded.access.kubeconfig_file())
        yield Kubectl(kubeconfig, tmp_path)


@contextlib.contextmanager
def _namespace(kubectl: Kubectl, name: str, place: str, request: pytest.FixtureRequest) -> Iterator[None]:
    """A namespace of that name; the real controllers make what belongs into it, and then stand still."""
    _told(kubectl, "create", "namespace", name)
    try:
        if place == "embedded":
            _told(kubectl, "apply", "--server-side", "-f", "namespace.yaml", "-n", name)
            yield
            return
        made = ("serviceaccount/default", "configmap/kube-root-ca.crt")
        _told(kubectl, "wait", "--for=create", *made, "--timeout=55s", "-n", name)
        cluster: rig.Cluster = request.getfixturevalue("rig_cluster")
        with cluster.suspended("kube-controller-manager"):
            yield
    finally:
        _told(kubectl, "delete", "namespace", name, "--wait=false")


def _told(kubectl: Kubectl, *arguments: str) -> None:
    answer = kubectl.answer(list(arguments), "default", CONSOLES)
    assert not answer.endswith("]\n"), answer


@pytest.mark.parametrize("name", sorted(path.stem for path in CONSOLES.glob("*.console")))
def test_kubectl_prints_the_same_on_every_cluster(
    name: str, kubectl: Kubectl, place: str, request: pytest.FixtureRequest
) -> None:
    """Every command of the console is answered as the real cluster answers it."""
    path = CONSOLES / f"{name}.console"
    with _namespace(kubectl, name.replace("_", "-"), place, request):
        found = replayed(path.read_text(encoding="utf-8"), kubectl, name.replace("_", "-"), CONSOLES)
    if name == "explain":  # the embedded cluster has no descriptions of built-in kinds
        found = without_descriptions(found)
    if place == "real" and os.environ.get("NAVARCH_GOLDEN") == "update":
        path.write_text(found, encoding="utf-8")
    assert found.splitlines() == path.read_text(encoding="utf-8").splitlines()


def test_kubectl_shows_what_happens_while_it_watches(
    kubectl: Kubectl, place: str, request: pytest.FixtureRequest
) -> None:
    """What is there, then each change, as it comes."""
    watch = ["get", "configmaps", "-l", "app=demo", "--watch", "--output-watch-events", "--no-headers"]
    with _namespace(kubectl, "watching", place, request):
        _told(kubectl, "create", "-f", "settings.yaml", "-n", "watching")
        with kubectl.running(watch, "watching") as lines:
            seen = [next(lines).split()[:3]]
            _told(kubectl, "patch", "configmap", "settings", "-p", '{"data":{"a":"1"}}', "-n", "watching")
            seen.append(next(lines).split()[:3])
            _told(kubectl, "delete", "configmap", "settings", "-n", "watching")
            seen.append(next(lines).split()[:3])
    assert seen == [["ADDED", "settings", "2"], ["MODIFIED", "settings", "3"], ["DELETED", "settings", "3"]]


def test_kubectl_is_a_proxy(kubectl: Kubectl) -> None:
    """Who asks it needs no credential."""
    with kubectl.running(["proxy", "--port=0"], "default") as lines:
        port = int(next(lines).rpartition(":")[2])
        connection = HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", "/api/v1/namespaces/default")
        answer = connection.getresponse()
        found = json.loads(answer.read())
        connection.close()
    assert (answer.status, found["metadata"]["name"]) == (200, "default")
