"""`navarch cluster` starts, stops and shows clusters that run in the background."""

from __future__ import annotations

import os
import select
import signal
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.programs import Program
from navarch.client import connect, load
from navarch.cluster.embedded.cluster_folder import ClusterFolder, ClusterProcess, ProcessIdentity
from navarch.k8s.core.v1 import ConfigMap
from rig import ports

SECONDS = 60.0


@pytest.fixture
def port() -> Iterator[int]:
    """One that nobody else has, not even while the cluster is down."""
    with ports.reserved(1) as [port]:
        yield port


async def test_cluster_goes_up_and_down(program: Program, port: int) -> None:
    """A cluster works through its kubeconfig, stops on request, and has its objects after the next start."""
    went_up = program.run("cluster", "up", "--name", "dev", "--port", str(port))
    assert went_up.returncode == 0, went_up.stderr
    assert "cluster 'dev' is up at https://127.0.0.1:" in went_up.stderr
    path = program.run("cluster", "kubeconfig", "--name", "dev").stdout.strip()
    assert went_up.stdout == f"export KUBECONFIG={path}\n"
    async with connect(load(Path(path))) as client:
        await client.create(ConfigMap(name="kept"))
    (before,) = program.status()
    assert program.run("cluster", "down", "--name", "dev").returncode == 0
    assert [(row["state"], row["pid"]) for row in program.status()] == [("stopped", None)]
    assert ProcessIdentity.of(before["pid"]) is None
    program.run("cluster", "up", "--name", "dev")
    async with connect(load(Path(path))) as client:
        assert (await client.get(ConfigMap, "kept")).name == "kept"
    assert [row["url"] for row in program.status()] == [before["url"]]


def test_clusters_are_side_by_side(program: Program) -> None:
    """Each has its own address and folder; a killed one counts as stopped, and its process id is not mistaken for
    another.
    """
    for name in ("a", "b"):
        assert program.run("cluster", "up", "--name", name).returncode == 0
    first, second = program.status()
    assert first["url"] != second["url"]
    os.kill(first["pid"], signal.SIGKILL)
    _await_end(first["pid"])
    assert [row["state"] for row in program.status()] == ["stopped", "running"]
    assert "was not running" in program.run("cluster", "down", "--name", "a").stderr
    assert "was not running, and is removed" in program.run("cluster", "down", "--name", "a", "--delete").stderr
    again = program.run("cluster", "up", "--name", "b", "--nodes", "3", "--store", "memory", "--port", "1")
    assert "already up" in again.stderr
    assert "the running cluster keeps its number of nodes, 1, until it is stopped and started again" in again.stderr
    assert "the running cluster keeps its port until it is stopped and started again" in again.stderr
    assert "the running cluster keeps its objects in 'file' until it is deleted" in again.stderr.replace("\n", " ")


def test_cluster_can_be_removed(program: Program) -> None:
    """Its folder is removed, and the cluster is no longer known."""
    program.run("cluster", "up")
    assert "is down and removed" in program.run("cluster", "down", "--delete").stderr
    assert not list(program.root.iterdir())
    assert "there are no clusters" in program.run("cluster", "status").stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("cluster", "down", "--name", "nope"),
            "there is no cluster 'nope'; there are: none; `navarch cluster up --name nope` creates it",
        ),
        (("cluster", "kubeconfig", "--name", "nope"), "there is no cluster 'nope'"),
        (("cluster", "up", "--name", "NOT_A_NAME"), "expected the name of a cluster like 'dev' or 'test-1'"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(program: Program, arguments: tuple[str, ...], said: str) -> None:
    """Errors come without a traceback, with exit code 1."""
    result = program.run(*arguments)
    assert result.returncode == 1
    assert said in result.stderr.replace("\n", "")
    assert "Traceback" not in result.stderr


def test_cluster_that_cannot_start_shows_its_log(program: Program) -> None:
    """The error has the reason, and no process is left."""
    (program.root / "dev").mkdir(parents=True)
    for name in ("ca.pem", "ca-key.pem"):
        (program.root / "dev" / name).write_text("rubbish")
    result = program.run("cluster", "up", "--name", "dev")
    assert result.returncode == 1
    assert "did not start" in result.stderr
    assert "expected the certificate and the private key of an authority" in result.stderr
    assert [row["state"] for row in program.status()] == ["stopped"]


def test_cluster_that_was_made_without_nodes_goes_on_without(program: Program) -> None:
    """Its services have no addresses of this machine, so nodes are refused; the request changes nothing."""
    program.run("cluster", "up", "--name", "dev", "--nodes", "0")
    program.run("cluster", "down", "--name", "dev")
    refused = program.run("cluster", "up", "--name", "dev", "--nodes", "1")
    assert refused.returncode == 1
    assert "the cluster was created without nodes" in refused.stderr
    assert program.run("cluster", "up", "--name", "dev").returncode == 0


def test_kubeconfig_is_merged_into_ones_own(program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The output has both, with the cluster's context as the current one; no file changes."""
    own = tmp_path / "own"
    own.write_text("clusters: [{name: mine, cluster: {server: 'https://example.com'}}]\ncurrent-context: mine\n")
    program.run("cluster", "up", "--name", "dev")
    monkeypatch.setenv("KUBECONFIG", str(own))
    merged = program.run("cluster", "kubeconfig", "--name", "dev", "--merge").stdout
    (tmp_path / "merged").write_text(merged)
    assert "name: mine" in merged
    assert load(tmp_path / "merged").server == program.status()[0]["url"]


def test_cluster_lets_nobody_in_without_a_credential(program: Program) -> None:
    """Other users cannot read its folder and keys; anonymous requests see what Kubernetes shows to all."""
    program.run("cluster", "up", "--name", "dev")
    folder = program.root / "dev"
    for path in (folder, *(folder / name for name in ("kubeconfig", "key.pem", "ca-key.pem", "process.json"))):
        assert path.stat().st_mode & 0o077 == 0, path
    context, url = ssl.create_default_context(cafile=str(folder / "ca.pem")), program.status()[0]["url"]
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(f"{url}/api/v1/namespaces", context=context)
    with urllib.request.urlopen(f"{url}/readyz", context=context) as answer:
        assert answer.read() == b"ok"


def test_process_is_not_mistaken_for_a_later_one(tmp_path: Path) -> None:
    """A process with the same id that was started at another time, or after another boot, is not taken for the cluster."""
    own = ProcessIdentity.of(os.getpid())
    assert own is not None
    folder = ClusterFolder(tmp_path, "dev")
    folder.make()
    for other in (
        ProcessIdentity(own.pid, own.started - 1, own.boot),
        ProcessIdentity(own.pid, own.started, "another"),
    ):
        running = ClusterProcess(other, "https://127.0.0.1:1", "2030-01-01T00:00:00Z")
        folder.write_running(running)
        assert folder.running() is None
        assert not running.stop()


def test_program_without_its_extra_says_what_to_install() -> None:
    """The error names the extra in a sentence."""
    code = "import sys; sys.modules['typer'] = None; from navarch.cli import main; main()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "pip install 'navarch[cli]'" in result.stderr
    assert "Traceback" not in result.stderr


def _await_end(pid: int) -> None:
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    ended, _, _ = select.select([handle], [], [], SECONDS)
    os.close(handle)
    assert ended, f"expected process {pid} to end within {SECONDS:g} s"
