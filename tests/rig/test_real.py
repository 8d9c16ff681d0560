"""The rig on a real control plane."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import rig
from rig import build, cli, folders, tools
from rig.errors import RigError
from rig.waiting import wait_for

pytestmark = pytest.mark.real

Leftovers = Callable[[Path], list[str]]

STREAMED = (
    "/api/v1/namespaces?watch=true&sendInitialEvents=true&allowWatchBookmarks=true"
    "&resourceVersionMatch=NotOlderThan&timeoutSeconds=1"
)
OWNER = """
import json, sys, rig
with rig.running() as cluster:
    print(cluster.folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[rig.Cluster]:
    """One control plane for the tests that do not harm it."""
    with rig.running() as cluster:
        yield cluster


def test_second_build_is_a_no_op() -> None:
    """With everything in the cache, a build reports nothing."""
    lines: list[str] = []
    build.build(progress=lines.append)
    assert lines == []


def test_server_reports_its_version(cluster: rig.Cluster) -> None:
    """The API server is the version it was built from."""
    version = json.loads(cluster.get("/version") or b"{}")
    assert (version["gitVersion"], version["major"], version["minor"]) == ("v1.36.4", "1", "36")


def test_token_and_certificate_are_administrators(cluster: rig.Cluster) -> None:
    """Both kubeconfigs authenticate as the same user with all rights."""
    for config in (cluster.kubeconfig, cluster.certificate_kubeconfig):
        review = json.loads(cluster.kubectl(f"--kubeconfig={config}", "auth", "whoami", "--output=json"))
        assert review["status"]["userInfo"]["username"] == "rig-admin"
        assert "system:masters" in review["status"]["userInfo"]["groups"]


def test_cluster_is_complete_when_it_is_handed_over(cluster: rig.Cluster) -> None:
    """The default namespace and its service account exist: a pod could be created at once."""
    assert cluster.get("/api/v1/namespaces/default/serviceaccounts/default")


def test_controllers_work(cluster: rig.Cluster) -> None:
    """A deployment gets its pods, so the controller manager runs."""
    cluster.kubectl("create", "deployment", "web", "--image=web", "--replicas=2")
    wait_for("two pods", lambda: cluster.kubectl("get", "pods", "--selector=app=web").count("web-") == 2, seconds=60)


def test_lists_can_be_streamed(cluster: rig.Cluster) -> None:
    """The API server streams a list and ends it with a bookmark, which it refuses on an old etcd."""
    wait_for(
        "a bookmark, in the second for which each of the watches lasts",
        lambda: b"k8s.io/initial-events-end" in (cluster.get(STREAMED) or b""),
        seconds=60,
    )


def test_kubectl_failure_is_an_error_with_its_complaint(cluster: rig.Cluster) -> None:
    """What kubectl says is in the error."""
    with pytest.raises(RigError, match=r'kubectl get nonsense: .*the server doesn\'t have a resource type "nonsense"'):
        cluster.kubectl("get", "nonsense")


def test_stopped_cluster_leaves_nothing(leftovers: Leftovers) -> None:
    """After the block there is no process, no folder and nothing in the kernel."""
    with rig.running() as cluster:
        assert len(leftovers(cluster.folder)) > 3
    assert leftovers(cluster.folder) == []


def test_restarted_apiserver_keeps_its_state() -> None:
    """A restart breaks connections, not data; a suspended server does not answer and then does again."""
    with rig.running() as cluster:
        cluster.kubectl("create", "configmap", "kept")
        cluster.restart("kube-apiserver")
        wait_for("what is kept", lambda: cluster.get("/api/v1/namespaces/default/configmaps/kept"), seconds=60)
        with cluster.suspended("kube-apiserver"):
            assert cluster.get("/readyz") is None
        wait_for("the server to answer again", lambda: cluster.get("/readyz") == b"ok", seconds=60)


def test_old_etcd_refuses_streamed_lists() -> None:
    """The old etcd is there to test clients with: lists work, streamed ones do not."""
    with rig.running(etcd=tools.old_etcd()) as cluster:
        refused = cluster.get(STREAMED)
    assert b"initial-events-end" not in (refused or b"")


def test_failed_start_shows_the_right_log_and_leaves_nothing(tmp_path: Path, leftovers: Leftovers) -> None:
    """The error names the program that failed and what it said."""
    folder = tmp_path / "cluster"
    with (
        pytest.raises(RigError, match=r"(?s)kube-apiserver ended with exit code 1 .*unknown flag: --nonsense"),
        rig.running(apiserver_flags=("--nonsense",), folder=folder),
    ):
        pytest.fail("the cluster started")
    assert leftovers(folder) == []


def test_sigkill_of_the_owner_leaves_nothing(leftovers: Leftovers) -> None:
    """Even a killed test run leaves no etcd, no API server and no folder."""
    environment = {**os.environ, "PYTHONPATH": str(folders.SOURCE.parent)}
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with owner:
        assert owner.stdout is not None
        folder = Path(owner.stdout.readline().strip())
        assert len(leftovers(folder)) > 3
        owner.send_signal(signal.SIGKILL)
    wait_for("everything to be gone", lambda: not leftovers(folder), seconds=60)


def test_named_cluster_runs_until_it_is_taken_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], leftovers: Leftovers
) -> None:
    """`up` twice is one cluster; `status` and `kubeconfig` find it; `down` leaves nothing."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert cli.main(["up", "--name", "here"]) == 0
    assert cli.main(["up", "--name", "here"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == second
    assert cli.main(["status", "--output", "json"]) == 0
    [row] = json.loads(capsys.readouterr().out)
    assert (row["name"], row["state"], row["kubeconfig"]) == ("here", "ready", first)
    assert cli.main(["down", "--name", "here"]) == 0
    assert leftovers(Path(first).parent) == []
    assert rig.find("here") is None
