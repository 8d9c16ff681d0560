"""Parts of a cluster do not die unseen: each fault is inflicted from outside, told, and outlived."""

from __future__ import annotations

import itertools
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from chaos.waiting import until
from cli.programs import Program
from navarch.client import Config, load
from navarch.cluster.embedded.cluster_folder import ClusterFolder, StoreKind, start_cluster

SECONDS = 60.0
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
MEGABYTE = 2**20


class Answer(NamedTuple):
    """What the server said."""

    status: int
    text: str
    audit_id: str


class Served:
    """A cluster behind HTTPS, as somebody outside of its process sees it."""

    def __init__(self, folder: ClusterFolder) -> None:
        self.folder = folder

    @property
    def pid(self) -> int:
        running = self.folder.running()
        assert running is not None, "expected the cluster to run"
        return running.identity.pid

    @property
    def config(self) -> Config:
        return load(self.folder.kubeconfig)

    def ask(self, method: str, path: str, body: Any = None) -> Answer:
        config = self.config
        connection = HTTPSConnection(urlsplit(config.server).netloc, context=config.ssl_context(), timeout=SECONDS)
        try:
            connection.request(
                method, path, json.dumps(body) if body is not None else None, {"Content-Type": "application/json"}
            )
            answer = connection.getresponse()
            return Answer(answer.status, answer.read().decode(), answer.headers.get("Audit-Id") or "")
        finally:
            connection.close()

    def send(self, head: bytes) -> bytes:
        """Sends bytes as they are, which no HTTP client would; the first line of the answer."""
        place, context = urlsplit(self.config.server), self.config.ssl_context()
        assert context is not None
        with (
            socket.create_connection((place.hostname, place.port), timeout=SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=place.hostname) as secured,
        ):
            secured.sendall(head)
            return secured.makefile("rb").readline()

    def create(self, name: str) -> int:
        return self.ask("POST", CONFIG_MAPS, {"metadata": {"name": name}, "data": {"text": "x" * 1000}}).status

    def config_maps(self) -> set[str]:
        found = json.loads(self.ask("GET", CONFIG_MAPS).text)["items"]
        return {item["metadata"]["name"] for item in found} - {"kube-root-ca.crt"}

    def failing(self, endpoint: str = "healthz") -> dict[str, str]:
        """The checks that fail, and why."""
        lines = self.ask("GET", f"/{endpoint}?verbose").text.splitlines()
        failed = [line.removeprefix("[-]").partition(" failed: ") for line in lines if line.startswith("[-]")]
        return {check: cause for check, _, cause in failed}

    def is_audited(self, audit_id: str) -> bool:
        log = self.folder.audit_log
        return log.is_file() and audit_id.encode() in log.read_bytes()

    def restarts(self, task: str) -> int:
        wanted = f'navarch_task_restarts_total{{task="{task}"}} '
        lines = self.ask("GET", "/metrics").text.splitlines()
        return next((int(float(line.removeprefix(wanted))) for line in lines if line.startswith(wanted)), 0)

    def log(self) -> str:
        return self.folder.log.read_text()

    def kill(self) -> None:
        """With -9; returns when it is gone."""
        handle = os.pidfd_open(self.pid)
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        os.close(handle)
        assert self.folder.last() is not None


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Program]:
    """The command line with a folder of its own; what it has started has ended when the test has."""
    program = Program(tmp_path, monkeypatch, capsys)
    yield program
    for path in program.root.iterdir() if program.root.is_dir() else ():
        if (running := ClusterFolder(program.root, path.name).running()) is not None:
            running.stop()


def started(program: Program, name: str = "dev", *, nodes: int = 0, store: StoreKind = "file") -> Served:
    folder = ClusterFolder(program.root, name)
    start_cluster(folder, nodes=nodes, store=store)
    return Served(folder)


def status_of(program: Program, name: str = "dev") -> tuple[int, dict[str, Any]]:
    """The exit code of `navarch cluster status`, and what it prints for programs."""
    result = program.run("cluster", "status", "--output", "json")
    (row,) = [row for row in json.loads(result.stdout) if row["name"] == name]
    return result.returncode, row


def is_degraded_by(program: Program, check: str) -> bool:
    code, row = status_of(program)
    return (code, row["state"]) == (3, "degraded") and check in [problem["check"] for problem in row["problems"]]


def is_well(program: Program) -> bool:
    code, row = status_of(program)
    return (code, row["state"], row["problems"]) == (0, "running", [])


# The audit log


async def test_no_byte_of_a_request_stops_the_audit_log(program: Program) -> None:
    """Whatever a header, a path or a query holds: this request is recorded, and so are those after it."""
    served = started(program)
    heads = (
        b"GET /version HTTP/1.1\r\nHost: x\r\nUser-Agent: \xff\r\n\r\n",
        b"GET /version HTTP/1.1\r\nHost: x\r\nUser-Agent: \xed\xa0\x80\r\n\r\n",
        b"GET /version HTTP/1.1\r\nHost: x\r\nAudit-Id: \xff\xfe\r\n\r\n",
        b"GET /version HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \xff\r\n\r\n",
        b"GET /version HTTP/1.1\r\nHost: x\r\nImpersonate-User: \xe9\r\n\r\n",
        b"GET /version HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: \xff\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /%ff%ed%a0%80?%ff=%ff&\xfe=\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /api/v1/namespaces/%00/pods/%ff HTTP/1.1\r\nHost: x\r\n\r\n",
        b"BREW\xff /version HTTP/1.1\r\nHost: x\r\n\r\n",
    )
    for head in heads:
        served.send(head)
        after = served.ask("GET", "/version")
        assert after.status == 200
        await until(lambda: served.is_audited(after.audit_id), f"the audit log after {head!r}", seconds=SECONDS)  # noqa: B023 - awaited at once
    whole, _, _ = served.folder.audit_log.read_bytes().rpartition(b"\n")  # the cluster goes on writing
    records = [json.loads(line) for line in whole.splitlines()]
    assert {record["kind"] for record in records} == {"Event"}
    assert any(record.get("userAgent") == "�" for record in records)
    assert "Traceback" not in served.log()
    assert is_well(program)


async def test_the_audit_log_is_rotated(program: Program) -> None:
    """A file of 20 MB is put aside, and of those the last three are kept."""
    served = started(program)
    for number in range(5):
        answer = served.ask("GET", f"/version?number={number}")
        await until(lambda: served.is_audited(answer.audit_id), "the request to be recorded", seconds=SECONDS)  # noqa: B023 - awaited at once
        with served.folder.audit_log.open("ab") as file:
            file.write(b"\n" * (20 * MEGABYTE - file.tell()))
    answer = served.ask("GET", "/version")
    await until(lambda: served.is_audited(answer.audit_id), "the request to be recorded", seconds=SECONDS)
    assert sorted(path.name for path in served.folder.path.glob("audit.log*")) == [
        "audit.log",
        "audit.log.1",
        "audit.log.2",
        "audit.log.3",
    ]
    assert served.folder.audit_log.stat().st_size < MEGABYTE
    assert "number=4" in (served.folder.path / "audit.log.1").read_text()


async def test_an_audit_log_that_cannot_be_written_is_told_and_comes_back(program: Program) -> None:
    """Something else lies in its place: requests are answered, and are in the log once that is gone."""
    served = started(program)
    served.folder.audit_log.unlink(missing_ok=True)
    served.folder.audit_log.mkdir()
    answer = served.ask("GET", "/version")
    await until(lambda: is_degraded_by(program, "audit"), "status to show the audit log", seconds=SECONDS)
    assert served.ask("GET", "/healthz/audit").status == 500
    assert served.ask("GET", "/readyz").status == 200
    served.folder.audit_log.rmdir()
    await until(lambda: is_well(program), "status to be well", seconds=SECONDS)
    assert served.is_audited(answer.audit_id)


# The disk


@contextmanager
def full_disk(served: Served) -> Iterator[None]:
    """The process of the cluster can write to no file, which takes no root: EFBIG in the place of ENOSPC."""
    usual = resource.prlimit(served.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(served.pid, resource.RLIMIT_FSIZE, (0, usual[1]))
    try:
        yield
    finally:
        resource.prlimit(served.pid, resource.RLIMIT_FSIZE, usual)


async def test_a_full_disk_refuses_writes_and_nothing_else(program: Program) -> None:
    """Reads go on, health says why, writes go on by themselves when there is room; nothing acknowledged is lost, and
    nothing refused is there after a crash.
    """
    served = started(program)
    assert served.create("before") == 201
    with full_disk(served):
        refused = served.ask("POST", CONFIG_MAPS, {"metadata": {"name": "refused"}})
        assert (refused.status, json.loads(refused.text)["reason"]) == (500, "InternalError")
        assert "File too large" in refused.text
        assert served.ask("DELETE", f"{CONFIG_MAPS}/before").status == 500
        assert served.config_maps() == {"before"}
        assert "File too large" in served.failing()["etcd"]
        assert "etcd-readiness" in served.failing("readyz")
        assert served.ask("GET", "/livez").status == 200
        assert is_degraded_by(program, "etcd")
    await until(lambda: served.ask("GET", "/healthz").status == 200, "healthz without a write", seconds=SECONDS)
    assert served.create("after") == 201
    await until(lambda: is_well(program), "status to be well", seconds=SECONDS)
    assert "Traceback" not in served.log()
    served.kill()
    await until(lambda: served.folder.running() is None, "the process to be gone", seconds=SECONDS)
    start_cluster(served.folder)
    assert served.config_maps() == {"before", "after"}


async def test_many_outages_lose_nothing(program: Program) -> None:
    """Whenever the disk is full: what was acknowledged is what is there."""
    served, acknowledged = started(program), set()
    for outage in range(5):
        with full_disk(served):
            codes = {served.create(f"refused-{outage}-{number}") for number in range(3)}
        assert codes == {500}
        acknowledged |= {name for number in range(3) if served.create(name := f"kept-{outage}-{number}") == 201}
    assert len(acknowledged) == 15
    assert served.config_maps() == acknowledged
    served.kill()
    await until(lambda: served.folder.running() is None, "the process to be gone", seconds=SECONDS)
    start_cluster(served.folder)
    assert served.config_maps() == acknowledged


def _can_mount() -> bool:
    return os.geteuid() == 0 and shutil.which("mount") is not None


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of a few megabytes at the place of the clusters' folders."""
    root = tmp_path / "navarch" / "clusters"
    root.mkdir(parents=True)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(root)], check=False).returncode:
        pytest.skip("a small disk takes a mount, and that is refused here")
    yield root
    subprocess.run(["umount", "--lazy", str(root)], check=True)


@pytest.mark.skipif(not _can_mount(), reason="a small disk takes a mount, and that takes root")
async def test_a_cluster_outlives_a_disk_that_is_really_full(small_disk: Path, program: Program) -> None:
    """StoreKind, audit log, the cluster's own log, and a node with its volumes on the same disk."""
    served = started(program, nodes=1)
    await until(lambda: is_ready(served, "node-1"), "the node", seconds=SECONDS)
    assert served.create("before") == 201
    filler = small_disk / "filler"
    with filler.open("wb", buffering=0) as file:
        size = 65536
        while size:
            try:
                file.write(b"x" * size)
            except OSError:
                size //= 2
    names = (f"written-{number}" for number in itertools.count())
    kept = {"before", *itertools.takewhile(lambda name: served.create(name) == 201, names)}
    assert "No space left on device" in served.failing()["etcd"]
    assert served.config_maps() == kept
    filler.unlink()
    await until(lambda: is_well(program), "status to be well", seconds=SECONDS)
    assert served.create("after") == 201
    assert served.ask("POST", "/api/v1/namespaces/default/pods", pod("later")).status == 201
    await until(lambda: phase(served, "later") == "Running", "a pod to run", seconds=SECONDS)
    served.kill()
    await until(lambda: served.folder.running() is None, "the process to be gone", seconds=SECONDS)
    start_cluster(served.folder)
    assert served.config_maps() == {*kept, "after"}


def pod(name: str, image: str = "busybox") -> dict[str, Any]:
    container = {"name": "main", "image": image, "command": ["sh", "-c", "sleep 1000"]}
    return {"metadata": {"name": name}, "spec": {"containers": [container], "terminationGracePeriodSeconds": 0}}


def phase(served: Served, name: str) -> str:
    return str(json.loads(served.ask("GET", f"/api/v1/namespaces/default/pods/{name}").text)["status"]["phase"])


def is_ready(served: Served, node: str) -> bool:
    answer = served.ask("GET", f"/api/v1/nodes/{node}")
    conditions = json.loads(answer.text)["status"].get("conditions", []) if answer.status == 200 else []
    return any(known["type"] == "Ready" and known["status"] == "True" for known in conditions)


# images.json


def _garbage(path: Path) -> None:
    path.write_text('[\n  {"name": "x",\n')


def _wrong_types(path: Path) -> None:
    path.write_text('[{"name": 1, "argv": "sh"}]')


def _no_program(path: Path) -> None:
    path.write_text('[{"name": "x", "argv": []}]')


def _nul(path: Path) -> None:
    path.write_text('[{"name": "x", "argv": ["sh", "a\\u0000b"]}]')


def _no_text(path: Path) -> None:
    path.write_bytes(b'[{"name": "\xff\xfe", "argv": ["sh"]}]')


def _deep(path: Path) -> None:
    path.write_text("[" * 100_000)


def _huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**31)


def _folder(path: Path) -> None:
    path.mkdir()


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


BAD_IMAGES = (_garbage, _wrong_types, _no_program, _nul, _no_text, _deep, _huge, _folder, _fifo, _loop)


def _removed(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink()


@pytest.mark.long
async def test_bad_images_change_nothing_while_a_cluster_runs(program: Program) -> None:
    """Whatever is in the place of the file: it is told, pods of images that were known start, and it is read again when
    it is mended.
    """
    served = started(program, nodes=1)
    path = served.folder.images
    assert (
        program.run("cluster", "image", "add", "tool:1.0", "--name", "dev", "--", "sh", "-c", "sleep 1000").returncode
        == 0
    )
    good = path.read_bytes()
    await until(lambda: is_ready(served, "node-1"), "the node", seconds=SECONDS)
    for number, harm in enumerate(BAD_IMAGES):
        path.unlink()
        harm(path)
        await until(lambda: is_degraded_by(program, "images"), f"status to show {harm.__name__}", seconds=SECONDS)
        assert str(path) in served.failing()["images"]
        name = f"tool-{number}"
        created = {"metadata": {"name": name}, "spec": {"containers": [{"name": "main", "image": "tool:1.0"}]}}
        assert served.ask("POST", "/api/v1/namespaces/default/pods", created).status == 201
        await until(lambda: phase(served, name) == "Running", f"a pod with {harm.__name__}", seconds=SECONDS)  # noqa: B023 - awaited at once
        _removed(path)
        path.write_bytes(good)
        await until(lambda: is_well(program), "status to be well", seconds=SECONDS)
    assert served.log().count("line 3: expected a list of images") == 1
    assert "Traceback" not in served.log()


@pytest.mark.parametrize(
    "harm", [_garbage, _huge, *(pytest.param(harm, marks=pytest.mark.long) for harm in (_wrong_types, _folder, _fifo))]
)
def test_bad_images_are_refused_by_commands(program: Program, harm: Callable[[Path], None]) -> None:
    """With the file and the remedy, when a cluster is started and when an image is added; the file stays as it is."""
    folder = ClusterFolder(program.root, "dev")
    folder.make()
    harm(folder.images)
    for arguments in (("up", "--name", "dev", "--nodes", "0"), ("image", "add", "--name", "dev", "x", "--", "sh")):
        result = program.run("cluster", *arguments)
        assert result.returncode == 1
        said = " ".join((result.stdout + result.stderr).split())
        assert str(folder.images) in said
        assert "fix the file, or remove it" in said
        assert "Traceback" not in said
    assert folder.running() is None


# The store


def _log_of(folder: ClusterFolder) -> Path:
    return max(folder.data.glob("*.log"))


def _no_data(folder: ClusterFolder) -> None:
    shutil.rmtree(folder.data)


def _no_log(folder: ClusterFolder) -> None:
    _log_of(folder).unlink()


def _no_files(folder: ClusterFolder) -> None:
    _no_data(folder)
    folder.data.mkdir()


def _no_choice(folder: ClusterFolder) -> None:
    _no_data(folder)
    (folder.path / "store").unlink()


def _empty(folder: ClusterFolder) -> None:
    os.truncate(_log_of(folder), 0)


def _only_header(folder: ClusterFolder) -> None:
    os.truncate(_log_of(folder), 8)


def _header_and_no_mark(folder: ClusterFolder) -> None:
    os.truncate(_log_of(folder), 8)
    (folder.data / "mark").unlink(missing_ok=True)


def _half(folder: ClusterFolder) -> None:
    os.truncate(_log_of(folder), _log_of(folder).stat().st_size // 2)


def _last_byte(folder: ClusterFolder) -> None:
    os.truncate(_log_of(folder), _log_of(folder).stat().st_size - 1)


def _flipped(folder: ClusterFolder) -> None:
    content = bytearray(_log_of(folder).read_bytes())
    content[len(content) // 2] ^= 0x10
    _log_of(folder).write_bytes(content)


def _log_is_fifo(folder: ClusterFolder) -> None:
    log = _log_of(folder)
    log.unlink()
    os.mkfifo(log)


def _log_is_folder(folder: ClusterFolder) -> None:
    log = _log_of(folder)
    log.unlink()
    log.mkdir()


def _data_is_file(folder: ClusterFolder) -> None:
    _no_data(folder)
    folder.data.write_text("")


def _foreign(folder: ClusterFolder) -> None:
    _log_of(folder).write_bytes(b"something else" * 100_000)


HARMED_STORES = (
    _no_data,
    _no_log,
    _no_files,
    _no_choice,
    _empty,
    _only_header,
    _header_and_no_mark,
    _half,
    _last_byte,
    _flipped,
    _log_is_folder,
    _log_is_fifo,
    _data_is_file,
    _foreign,
)


@pytest.mark.long
async def test_a_cluster_whose_objects_are_gone_is_refused(program: Program, tmp_path: Path) -> None:
    """However they went, and also after a crash: the words name the place and the remedy, and nothing is made anew."""
    served = started(program)
    assert served.create("kept") == 201
    served.kill()
    await until(lambda: served.folder.running() is None, "the process to be gone", seconds=SECONDS)
    copy = tmp_path / "copy"
    shutil.copytree(served.folder.path, copy)
    for harm in HARMED_STORES:
        harm(served.folder)
        result = program.run("cluster", "up", "--name", "dev", "--no-wait")
        said = " ".join((result.stdout + result.stderr).split())
        assert result.returncode == 1, f"{harm.__name__}: {said}"
        assert "expected the objects of cluster 'dev' in" in said, harm.__name__
        assert "navarch cluster down --delete --name dev" in said, harm.__name__
        assert "Traceback" not in said, harm.__name__
        shutil.rmtree(served.folder.path)
        shutil.copytree(copy, served.folder.path)
    start_cluster(served.folder)
    assert served.config_maps() == {"kept"}


async def test_an_etcd_whose_objects_are_gone_is_refused(program: Program) -> None:
    """The same for a cluster with an etcd of its own."""
    served = started(program, store="etcd")
    served.kill()
    await until(lambda: served.folder.running() is None, "the process to be gone", seconds=SECONDS)
    shutil.rmtree(served.folder.etcd / "data")
    result = program.run("cluster", "up", "--name", "dev", "--no-wait")
    assert result.returncode == 1
    assert "expected the objects of cluster 'dev' in" in " ".join(result.stderr.split())


async def test_files_that_are_removed_while_a_cluster_runs_come_back(program: Program) -> None:
    """The cluster has its objects in memory: it writes them anew, and a crash after that loses nothing."""
    served = started(program)
    assert served.create("before") == 201
    shutil.rmtree(served.folder.data)
    await until(lambda: served.create("after") in {201, 409}, "a write to be taken again", seconds=SECONDS)
    await until(lambda: served.ask("GET", "/healthz").status == 200, "healthz", seconds=SECONDS)
    served.kill()
    await until(lambda: served.folder.running() is None, "the process to be gone", seconds=SECONDS)
    start_cluster(served.folder)
    assert served.config_maps() == {"before", "after"}


# Processes


def _children(pid: int, word: str) -> list[int]:
    """The processes that this one has started whose command line has the word in it."""
    children = [
        each for task in Path(f"/proc/{pid}/task").iterdir() for each in (task / "children").read_text().split()
    ]
    return [int(each) for each in children if word.encode() in Path(f"/proc/{each}/cmdline").read_bytes()]


async def test_a_node_whose_shim_is_killed_comes_back(program: Program) -> None:
    """The failure is counted and told, and the node runs pods again."""
    served = started(program, nodes=1)
    await until(lambda: is_ready(served, "node-1"), "the node", seconds=SECONDS)
    for kills in range(1, 3):
        (shim,) = _children(served.pid, "shim")
        os.kill(shim, signal.SIGKILL)
        await until(lambda: served.restarts("node-1") == kills, "a restart", seconds=SECONDS)  # noqa: B023 - awaited at once
        await until(lambda: len(_children(served.pid, "shim")) == 1, "a new shim", seconds=SECONDS)
    assert "node-1 failed: the process that runs this node's containers has died; restart 1 in" in served.log()
    await until(lambda: is_well(program), "status to be well", seconds=SECONDS)
    assert status_of(program)[1]["restarts"] == 2
    assert served.ask("POST", "/api/v1/namespaces/default/pods", pod("later")).status == 201
    await until(lambda: phase(served, "later") == "Running", "a pod to run", seconds=SECONDS)


async def test_an_etcd_that_is_killed_comes_back(program: Program) -> None:
    """Its end is told; it is started again, and everything goes on without a restart of the cluster."""
    served = started(program, store="etcd")
    assert served.create("before") == 201
    (etcd,) = _children(served.pid, "--listen-client-urls")
    os.kill(etcd, signal.SIGKILL)
    await until(lambda: served.create("after") in {201, 409}, "a write to be taken again", seconds=SECONDS)
    await until(lambda: served.ask("GET", "/healthz").status == 200, "healthz", seconds=SECONDS)
    assert served.config_maps() == {"before", "after"}
    assert served.restarts("etcd-process") == 1
    assert "etcd-process failed: etcd ended with code -9" in served.log()
    crd = definition()
    assert served.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd).status == 201
    await until(
        lambda: served.ask("GET", "/apis/example.com/v1/gadgets").status == 200,
        "a new kind to be served",
        seconds=SECONDS,
    )


def definition() -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object"}}
    return {
        "metadata": {"name": "gadgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": {"plural": "gadgets", "kind": "Gadget"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


async def test_a_cluster_that_stands_still_is_not_shown_as_running(program: Program) -> None:
    """Its process is there, and does not answer."""
    served = started(program)
    os.kill(served.pid, signal.SIGSTOP)
    try:
        code, row = status_of(program)
    finally:
        os.kill(served.pid, signal.SIGCONT)
    assert (code, row["state"]) == (3, "not answering")
    await until(lambda: is_well(program), "status to be well", seconds=SECONDS)
