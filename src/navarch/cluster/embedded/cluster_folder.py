"""Clusters as folders: their files, and the process that serves each.

$XDG_STATE_HOME/navarch/clusters/<name>/
    process.json     the serving process: process id, start time, boot
    kubeconfig       for clients; readable by its owner alone, like all files here
    ca.pem, key.pem  the certificate authority, and the key of ServiceAccount tokens
    store            the kind of storage: memory, file or etcd
    nodes            the number of nodes
    images.json      additional images
    machines/        logs, volumes and loaded images of its nodes
    data/, etcd/     its objects, in a file or in an etcd
    cluster.log, audit.log
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import Final, Literal, Self
from urllib.parse import urlsplit

import msgspec

from navarch.api.names import DNS_LABEL
from navarch.cluster.nodes.shim.program.confined_directory import ConfinedDirectory
from navarch.errors import ConfigError, InvalidValueError

_PROGRAM: Final = """
import gc, os, sys
gc.disable()
given = os.environ.get("SSL_CERT_FILE")
os.environ["SSL_CERT_FILE"] = os.devnull
from navarch.cluster.embedded.program import main
del os.environ["SSL_CERT_FILE"]
if given is not None:
    os.environ["SSL_CERT_FILE"] = given
sys.exit(main(*sys.argv[1:]))
"""
"""Two things would take a quarter of the start: garbage collections during the imports, and aiohttp's reading of all
authorities that this machine trusts (requests to webhooks name their own).
"""
_START_SECONDS: Final = 90.0
_SHOWN_LINES: Final = 10


def start_cluster(
    folder: ClusterFolder, port: int = 0, store: StoreKind | None = None, nodes: int | None = None
) -> ClusterProcess:
    """Starts the process that serves the folder, and returns when it is ready.

    Without `port` it takes its last one, if that is free; without `nodes` as many as it had, or one. A new cluster stores
    its objects in `store`, by default a file. The process has its own session: it survives the terminal. Raises
    `ConfigError` with the end of its log if it does not become ready.
    """
    folder.make()
    nodes_before = folder.nodes
    folder.choose(store, nodes)
    reader, writer = os.pipe()
    try:
        process = _spawn(folder, port or _port_before(folder), writer)
    finally:
        os.close(writer)
    try:
        is_ready = _is_ready(reader)
    except BaseException:
        process.kill()
        raise
    finally:
        os.close(reader)
    running = folder.running()
    if not is_ready or running is None:
        process.kill()
        process.wait()
        folder.choose(None, nodes_before)
        raise ConfigError(f"cluster {folder.name!r} did not start; {folder.log} ends with:\n{_tail(folder)}")
    process.returncode = 0  # it outlives this process: subprocess must not warn that nobody waited
    return running


def remove_cluster(folder: ClusterFolder) -> None:
    """Removes the folder of a cluster that does not run, with volumes of any depth."""
    with ConfinedDirectory.at(folder.path.parent) as clusters:
        clusters.remove_all(folder.path.name)


def _spawn(folder: ClusterFolder, port: int, ready: int) -> subprocess.Popen[bytes]:
    handle = os.open(folder.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(handle, "ab") as log:
        return subprocess.Popen(  # noqa: S603 - this very interpreter
            [sys.executable, "-c", _PROGRAM, str(folder.path), str(port), str(ready)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=(ready,),
            cwd=folder.path,
        )


def _is_ready(reader: int) -> bool:
    """Returns True if the process reports that it is ready, before it ends or the time is over."""
    poll = select.poll()
    poll.register(reader, select.POLLIN)
    return bool(poll.poll(_START_SECONDS * 1000)) and os.read(reader, 16) == b"ready\n"


def _port_before(folder: ClusterFolder) -> int:
    """Returns the last port of the cluster if it is free now, else 0."""
    last = folder.last()
    port = (urlsplit(last.url).port or 0) if last else 0
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return 0
    return port


def _tail(folder: ClusterFolder) -> str:
    lines = (folder.read(folder.log.name) or b"").decode(errors="replace").splitlines()
    return "\n".join(lines[-_SHOWN_LINES:]) or "(nothing)"


StoreKind = Literal["memory", "file", "etcd"]
"""The kind of storage that holds a cluster's objects."""

ETCDCTL: Final = "etcdctl.env"
"""The file in the folder of an etcd with the variables that etcdctl reads."""

_PROCESS: Final = "process.json"
_STORE: Final = "store"
_DEFAULT_STORE: Final = b"file"
_NODES: Final = "nodes"
_DEFAULT_NODES: Final = b"1"
_STOP_SECONDS: Final = 15.0


class ProcessIdentity(msgspec.Struct, frozen=True):
    """Identifies a process also after its process id was given to another one."""

    pid: int
    started: int
    boot: str

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """Returns the process that has this id now; None if there is none, or a zombie."""
        try:
            state, *fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        except OSError:
            return None
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return None if state in {"Z", "X"} else cls(pid, int(fields[18]), boot)


class ClusterProcess(msgspec.Struct, frozen=True):
    """The process that serves a cluster, and its URL."""

    identity: ProcessIdentity
    url: str
    since: str

    def is_alive(self) -> bool:
        """Returns True if that process still runs."""
        return ProcessIdentity.of(self.identity.pid) == self.identity

    def stop(self, seconds: float = _STOP_SECONDS) -> bool:
        """Terminates the process, and kills it after `seconds`; returns False if it did not run."""
        try:
            handle = os.pidfd_open(self.identity.pid)
        except ProcessLookupError:
            return False
        try:
            if not self.is_alive():  # the handle is of the process that has this id now
                return False
            signal.pidfd_send_signal(handle, signal.SIGTERM)
            if not _has_ended(handle, seconds):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                _has_ended(handle, seconds)
        finally:
            os.close(handle)
        return True


class ClusterFolder:
    """The folder of one cluster."""

    def __init__(self, root: Path, name: str) -> None:
        if faults := DNS_LABEL.faults(name):
            raise InvalidValueError(f"expected the name of a cluster like 'dev' or 'test-1', got {name!r}: {faults[0]}")
        self.name = name
        self.path = root / name

    @property
    def kubeconfig(self) -> Path:
        """The file for kubectl."""
        return self.path / "kubeconfig"

    @property
    def log(self) -> Path:
        """The log of the serving process."""
        return self.path / "cluster.log"

    @property
    def audit_log(self) -> Path:
        """The audit log."""
        return self.path / "audit.log"

    @property
    def data(self) -> Path:
        """The folder of a file storage."""
        return self.path / "data"

    @property
    def etcd(self) -> Path:
        """The folder of an etcd: data and client certificates."""
        return self.path / "etcd"

    def environment(self) -> str:
        """Returns shell lines that point kubectl to the cluster, and etcdctl to its etcd if it has one."""
        etcd = self.read(f"{self.etcd.name}/{ETCDCTL}") or b""
        return f"export KUBECONFIG={quote(str(self.kubeconfig))}\n{etcd.decode()}"

    @property
    def store(self) -> StoreKind:
        """The kind of storage."""
        try:
            kept: StoreKind = msgspec.convert((self.read(_STORE) or _DEFAULT_STORE).decode().strip(), type=StoreKind)
        except (UnicodeDecodeError, msgspec.ValidationError) as error:
            raise ConfigError(f"expected memory, file or etcd in {self.path / _STORE}: {error}") from None
        return kept

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        kept = self.read(_NODES) or _DEFAULT_NODES
        if not kept.strip().isdigit():
            raise ConfigError(f"expected a number in {self.path / _NODES}, got {kept[:20]!r}")
        return int(kept)

    @property
    def images(self) -> Path:
        """The file of additional images."""
        return self.path / "images.json"

    @property
    def machines(self) -> Path:
        """Logs, volumes and loaded images of its nodes."""
        return self.path / "machines"

    def exists(self) -> bool:
        """Returns True if the cluster exists, running or not."""
        return self.path.is_dir()

    def has_served(self) -> bool:
        """Returns True if the cluster has served before, so that its objects must exist."""
        return any(path.exists() for path in (self.kubeconfig, self.path / _PROCESS, self.audit_log))

    def make(self) -> None:
        """Creates the folder, readable by its owner alone."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)

    def choose(self, store: StoreKind | None, nodes: int | None = None) -> None:
        """Stores the number of nodes and, for a new cluster, the kind of storage.

        Raises `ConfigError` if an existing cluster has another kind of storage.
        """
        if nodes is not None:
            self.write(_NODES, str(nodes).encode())
        if (self.path / _STORE).exists() or self.data.exists():
            if store is not None and store != self.store:
                raise ConfigError(
                    f"cluster {self.name!r} keeps its objects in {self.store!r}, not in {store!r}; take another name, or "
                    f"remove it first with `navarch cluster down --delete --name {self.name}`"
                )
            return
        self.write(_STORE, (store or _DEFAULT_STORE.decode()).encode())

    def running(self) -> ClusterProcess | None:
        """Returns the process that serves the cluster now."""
        found = self.last()
        return found if found is not None and found.is_alive() else None

    def last(self) -> ClusterProcess | None:
        """Returns the process that serves the cluster, or served it last."""
        try:
            return msgspec.json.decode((self.path / _PROCESS).read_bytes(), type=ClusterProcess)
        except (OSError, msgspec.DecodeError):
            return None

    def write_running(self, running: ClusterProcess) -> None:
        """Stores the process that serves the cluster."""
        self.write(_PROCESS, msgspec.json.encode(running))

    def read(self, name: str) -> bytes | None:
        """Returns the content of a file; None if it does not exist."""
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        """Writes a file atomically, readable by its owner alone."""
        temporary = self.path / f".{name}.new"
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(handle)
        temporary.replace(self.path / name)


def state_root(environment: Mapping[str, str]) -> Path:
    """Returns the folder that holds the folders of clusters."""
    base = environment.get("XDG_STATE_HOME") or ""
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".local" / "state") / "navarch" / "clusters"


def cluster_folders(root: Path) -> list[ClusterFolder]:
    """Returns every cluster, sorted by name."""
    if not root.is_dir():
        return []
    names = sorted(path.name for path in root.iterdir() if path.is_dir() and not DNS_LABEL.faults(path.name))
    return [ClusterFolder(root, name) for name in names]


def _has_ended(handle: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(seconds * 1000))
