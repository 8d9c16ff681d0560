"""`navarch run` runs the operator of a project, and reloads it when a file is saved."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import pty
import re
import signal
import socket
import struct
import sys
import termios
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from subprocess import Popen
from typing import Self

import pytest
import yaml

import rig
from chaos.waiting import until_none
from cli.programs import Program
from navarch.client import Client, connect, load
from navarch.cluster.embedded.cluster_folder import ClusterFolder, ProcessIdentity, start_cluster
from navarch.errors import Invalid
from navarch.k8s.core.v1 import ConfigMap
from rig.waiting import wait_for
from run_projects import CONTROLLER, OF_KIND, SECONDS, NavarchRun, write_project

NOBODY = """\
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {}}]
clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]
"""
"""The kubeconfig of a cluster that does not answer."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterFolder]:
    """A cluster without nodes that runs for all tests of this module."""
    folder = ClusterFolder(tmp_path_factory.mktemp("clusters"), "shared")
    process = start_cluster(folder, nodes=0)
    yield folder
    process.stop()


@pytest.fixture
async def cluster(served: ClusterFolder, monkeypatch: pytest.MonkeyPatch) -> ClusterFolder:
    """The cluster, with an object to reconcile, as the one of kubectl."""
    async with connect(load(served.kubeconfig)) as client:
        await client.apply(ConfigMap(name="probe"))
    monkeypatch.setenv("KUBECONFIG", str(served.kubeconfig))
    return served


def test_saved_code_reconciles_without_a_restart(tmp_path: Path, cluster: ClusterFolder) -> None:
    """Each save is reconciled by the new code, also two within one second; at the end nothing runs."""
    file = write_project(tmp_path)
    with NavarchRun(tmp_path, "--reload") as run:
        run.wait_for("reconciled by 1")
        for version in "23":
            file.write_text(CONTROLLER.replace('"1"', f'"{version}"'))
            run.wait_for(f"reconciled by {version}")
        (child,) = run.children()
        assert run.end() == 0
    assert ProcessIdentity.of(child) is None


@pytest.mark.real
async def test_saved_code_reconciles_on_a_real_cluster(tmp_path: Path, rig_cluster: rig.Cluster) -> None:
    """As on the embedded one; the object is removed afterwards."""
    async with connect(load(rig_cluster.kubeconfig)) as client:
        await client.apply(ConfigMap(name="probe"))
        await asyncio.to_thread(_reload_once, tmp_path, str(rig_cluster.kubeconfig))
        await client.delete(ConfigMap, "probe")


def _reload_once(root: Path, kubeconfig: str) -> None:
    file = write_project(root)
    with NavarchRun(root, "--reload", "--kubeconfig", kubeconfig) as run:
        run.wait_for("reconciled by 1")
        file.write_text(CONTROLLER.replace('"1"', '"2"'))
        run.wait_for("reconciled by 2")
        assert run.end() == 0


def test_broken_code_is_named_and_the_former_keeps_running(tmp_path: Path, cluster: ClusterFolder) -> None:
    """A syntax error has its file and line; the next save is tried again."""
    file = write_project(tmp_path)
    with NavarchRun(tmp_path, "--reload", "--output", "json") as run:
        run.wait_for("reconciled by 1")
        (before,) = run.children()
        file.write_text(f"{CONTROLLER}def (\n")
        told = json.loads(run.wait_for("cannot import the code"))
        assert told["place"] == f"src/probe_operator/controllers/probe.py:{len(CONTROLLER.splitlines()) + 1}"
        assert told["state"] == "the code of before keeps running; save the file again"
        assert before in run.children()
        file.write_text(CONTROLLER.replace("import operator", "import missing"))
        assert "ImportError" in json.loads(run.wait_for("cannot import the code"))["why"]
        file.write_text(CONTROLLER.replace('"1"', '"2"'))
        run.wait_for("reconciled by 2")


@pytest.mark.long
def test_broken_code_at_the_start_waits_for_a_save(tmp_path: Path, cluster: ClusterFolder) -> None:
    """Code that fails in any way, even by an exit, is said to run nothing; Ctrl-C ends also then."""
    file = write_project(tmp_path, "raise SystemExit(3)\n")
    with NavarchRun(tmp_path, "--reload", "--output", "json") as run:
        told = json.loads(run.wait_for("cannot import the code"))
        assert told["place"] == "src/probe_operator/controllers/probe.py:1"
        assert told["state"] == "nothing runs until the next file is saved"
        file.write_text(CONTROLLER)
        run.wait_for("reconciled by 1")
        file.write_text("import os\nos._exit(7)\n")
        assert "exit code 7" in json.loads(run.wait_for("cannot import the code"))["why"]
        assert run.end() == 0


@pytest.mark.parametrize("reload", [pytest.param(False, marks=pytest.mark.long), True])
def test_killed_supervisor_leaves_no_process(tmp_path: Path, cluster: ClusterFolder, reload: bool) -> None:
    """The kernel ends the operator with it."""
    write_project(tmp_path)
    with NavarchRun(tmp_path, *(["--reload"] if reload else [])) as run:
        run.wait_for("reconciled by 1")
        children = run.children()
        assert len(children) == reload
        run.process.kill()
        run.process.wait(SECONDS)
        wait_for("the end of the operator", lambda: all(map(_has_ended, children)) or None, seconds=SECONDS)


@pytest.mark.long
def test_reconcile_that_does_not_end_is_given_up(tmp_path: Path, cluster: ClusterFolder) -> None:
    """A blocked event loop hinders neither the reload nor the end."""
    blocked = CONTROLLER.replace("        print(", "        import time\n        print(").replace(
        "flush=True)", "flush=True)\n        time.sleep(600)"
    )
    file = write_project(tmp_path, blocked)
    with NavarchRun(tmp_path, "--reload") as run:
        run.wait_for("reconciled by 1")
        file.write_text(blocked.replace('"1"', '"2"'))
        run.wait_for("reconciled by 2")
        assert run.end(signal.SIGTERM) == 0


@pytest.mark.long
def test_logging_of_the_project_is_left_alone(tmp_path: Path, cluster: ClusterFolder) -> None:
    """As in production; the supervisor's own lines keep their form."""
    file = write_project(
        tmp_path, f"import logging\n\nlogging.basicConfig(format='mine: %(message)s', level='INFO')\n{CONTROLLER}"
    )
    with NavarchRun(tmp_path, "--reload", "--output", "json") as run:
        assert run.wait_for("starting").startswith("mine: starting")
        file.write_text(CONTROLLER)
        assert json.loads(run.wait_for("reloading"))["logger"] == "navarch.run"
        assert json.loads(run.wait_for("starting"))["logger"] == "navarch.operator"


@pytest.mark.long
def test_moved_project_is_said_and_the_operator_runs_on(tmp_path: Path, cluster: ClusterFolder) -> None:
    """Its code is in memory; once the folder is back, a save counts again."""
    root = tmp_path / "here"
    root.mkdir()
    file = write_project(root)
    with NavarchRun(root, "--reload") as run:
        run.wait_for("reconciled by 1")
        root.rename(tmp_path / "there")
        run.wait_for("it was moved or deleted; the operator keeps running")
        (tmp_path / "there").rename(root)
        run.wait_for("is back")
        file.write_text(CONTROLLER.replace('"1"', '"2"'))
        run.wait_for("reconciled by 2")


@pytest.mark.long
def test_operator_that_cannot_run_ends_with_1(tmp_path: Path, cluster: ClusterFolder) -> None:
    """A CRD that is missing, an address that is taken, a server that is not there, a token that is refused."""
    write_project(tmp_path, OF_KIND)
    with NavarchRun(tmp_path) as run:
        assert "navarch install" in run.wait_for("cannot run")
        assert run.process.wait(SECONDS) == 1
    config = cluster.kubeconfig.read_text()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        (tmp_path / "src/probe_operator/controllers/probe.py").write_text(CONTROLLER)
        with NavarchRun(tmp_path, f"--health-probe-bind-address={address}") as run:
            assert address in run.wait_for("cannot run")
            assert run.process.wait(SECONDS) == 1
    nobody = yaml.safe_load(config)
    nobody["users"][0]["user"] = {"token": "expired"}
    (tmp_path / "nobody").write_text(yaml.safe_dump(nobody))
    with NavarchRun(tmp_path, "--kubeconfig", str(tmp_path / "nobody")) as run:
        assert "Unauthorized" in run.wait_for("cannot run")
        assert run.process.wait(SECONDS) == 1
    closed = tmp_path / "closed"
    closed.write_text(re.sub(r"https://127.0.0.1:\d+", f"https://{address}", config))
    with NavarchRun(tmp_path, "--kubeconfig", str(closed)) as run:
        assert address in run.wait_for("cannot run")
        assert run.process.wait(SECONDS) == 1


def test_faults_before_the_start_have_a_remedy(
    tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No project, no kubeconfig, code that cannot be imported, a wrong flag, two clusters: one sentence each, exit code 1."""
    monkeypatch.chdir(tmp_path)
    assert "navarch init NAME" in program.run("run").stderr
    file = write_project(tmp_path, "1 +\n")
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    told = program.run("run")
    assert (told.returncode, "or name another one: --kubeconfig FILE" in told.stderr) == (1, True)
    nobody = tmp_path / "kubeconfig"
    nobody.write_text(NOBODY)
    with NavarchRun(tmp_path, KUBECONFIG=str(nobody)) as run:
        assert run.process.wait(SECONDS) == 1
    assert "src/probe_operator/controllers/probe.py:1: SyntaxError: invalid syntax" in "".join(run.lines)
    file.write_text(CONTROLLER)
    told = program.run("run", "--cluster", "--context", "other")
    assert (told.returncode, "expected --cluster or a kubeconfig, got both" in told.stderr) == (1, True)
    told = program.run("run", "--", "--unknown")
    assert (told.returncode, "unrecognized arguments: --unknown" in told.stderr) == (1, True)


def test_cluster_is_started_with_crds_and_kept(tmp_path: Path, program: Program) -> None:
    """`--cluster dev` starts it, installs the CRDs of the project, and says that it stays and how it is stopped."""
    write_project(tmp_path, OF_KIND)
    with NavarchRun(tmp_path, "--cluster", "dev") as run:
        run.wait_for("installed CRD")
        assert run.end() == 0
    assert "cluster 'dev' keeps running; stop it: navarch cluster down --name dev" in "".join(run.lines)
    assert [(row["name"], row["state"]) for row in program.status()] == [("dev", "running")]


@pytest.mark.long
async def test_webhooks_of_an_ended_operator_do_not_hinder_writes(tmp_path: Path, program: Program) -> None:
    """While it runs, it denies; afterwards its registration is gone from the cluster for development."""
    webhook = "@operator.validate(ConfigMap)\nasync def deny(config: ConfigMap, review: Review[ConfigMap]) -> None:\n"
    denial = '    if config.name == "denied":\n        review.deny("metadata.name", "not this one")\n'
    write_project(tmp_path, f"from navarch import Review\n{CONTROLLER}\n\n{webhook}{denial}")
    with NavarchRun(tmp_path, "--cluster", "dev", "--reload") as run:
        run.wait_for("listening")
        async with connect(program.kubeconfig()) as client:
            await until_none(partial(_denial, client), seconds=SECONDS)
            assert await asyncio.to_thread(run.end) == 0
            await client.create(ConfigMap(name="denied"))


async def _denial(client: Client) -> str | None:
    """Returns what is missing; None once the webhook denies, whose registration follows its server."""
    try:
        await client.using(dry_run=True).create(ConfigMap(name="denied"))
    except Invalid:
        return None
    return "expected the webhook to deny"


def test_terminal_shows_a_view(tmp_path: Path, cluster: ClusterFolder) -> None:
    """Controllers, watches, and what the operator prints; a small terminal has less; Ctrl-C clears the view."""
    write_project(tmp_path)
    with _Terminal(tmp_path, "--reload", "--health-probe-bind-address=0") as terminal:
        terminal.wait_for("reconciled by 1")
        terminal.wait_for("CONTROLLER")
        terminal.wait_for("configmaps")
        terminal.wait_for("watching")
        terminal.resize(40, 4)
        terminal.wait_for("probe-operator on 127.0.0.1:")
        terminal.write(b"\x03")
        assert terminal.process.wait(SECONDS) == 0


@pytest.mark.long
@pytest.mark.parametrize("endless", ["reconcile", "import"])
def test_ctrl_c_ends_whatever_the_code_does(tmp_path: Path, cluster: ClusterFolder, endless: str) -> None:
    """Also while it prints without end, or while its import does not end."""
    loop = "while True:\n        print('x' * 1000, flush=True)\n"
    endless_reconcile = CONTROLLER[: CONTROLLER.index('if config.name == "probe"')] + loop
    write_project(tmp_path, endless_reconcile if endless == "reconcile" else loop)
    with _Terminal(tmp_path, "--reload", "--health-probe-bind-address=0") as terminal:
        terminal.wait_for("xxx")
        terminal.write(b"\x03")
        wait_for("the end", terminal.ended, seconds=SECONDS)
        assert terminal.process.returncode == 0


def _has_ended(pid: int) -> bool:
    return ProcessIdentity.of(pid) is None


_WITH_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
"""Makes the terminal the one whose Ctrl-C goes to all processes of the program."""


class _Terminal:
    """`navarch run` on a terminal of 80 columns and 24 lines."""

    def __init__(self, root: Path, *arguments: str) -> None:
        self._ours, theirs = pty.openpty()
        self.resize(80, 24)
        self.process = Popen(
            [sys.executable, "-c", _WITH_TERMINAL, "-m", "navarch", "run", *arguments],
            cwd=root,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "", "LINES": ""},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        os.set_blocking(self._ours, False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self._shown = ""

    def write(self, keys: bytes) -> None:
        os.write(self._ours, keys)

    def ended(self) -> bool:
        """Returns whether the program has ended; reads what it shows, so that it can."""
        with contextlib.suppress(OSError):
            os.read(self._ours, 2**20)
        return self.process.poll() is not None

    def wait_for(self, text: str) -> None:
        """Reads until the text was shown since the start or the last change of the size."""

        def is_shown() -> bool:
            with contextlib.suppress(BlockingIOError):
                found = os.read(self._ours, 65536).decode(errors="replace")
                self._shown += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", found)
            return text in self._shown

        wait_for(f"{text!r} on the terminal", is_shown, seconds=SECONDS)
