"""Clusters as folders: which there are, which run, and what each of them keeps.

$XDG_STATE_HOME/navarch/clusters/<name>/
    process.json     who serves it: process id, start time, boot
    kubeconfig       how it is reached; readable by its owner alone, like everything here
    ca.pem, key.pem  its authority, and the key of its ServiceAccount tokens
    store            what keeps its objects: memory, file or etcd
    nodes            how many nodes it has
    images.json      images that were added
    machines/        logs and volumes of its nodes
    data/, etcd/     its objects, in a file or in an etcd
    cluster.log, audit.log
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import Final, Literal, Self

import msgspec

from navarch.api.names import DNS_LABEL
from navarch.errors import ConfigError, InvalidValueError

__all__ = ["ETCDCTL", "ClusterFolder", "Identity", "Running", "Store", "folders", "state_root"]

Store = Literal["memory", "file", "etcd"]
"""What keeps a cluster's objects."""

ETCDCTL: Final = "etcdctl.env"
"""The file in the folder of an etcd with the variables that etcdctl reads."""

_PROCESS: Final = "process.json"
_STORE: Final = "store"
_USUAL_STORE: Final = b"file"
_NODES: Final = "nodes"
_USUAL_NODES: Final = b"1"
_MOST_SECONDS: Final = 15.0


class Identity(msgspec.Struct, frozen=True):
    """One process, which no later one with the same number is mistaken for."""

    pid: int
    started: int
    boot: str

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """The process that has this number now; None if none has, or if it has ended and waits to be noticed."""
        try:
            state, *fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        except OSError:
            return None
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return None if state in {"Z", "X"} else cls(pid, int(fields[18]), boot)


class Running(msgspec.Struct, frozen=True):
    """Who serves a cluster, and where."""

    identity: Identity
    url: str
    since: str

    def is_alive(self) -> bool:
        """Whether that process is still there."""
        return Identity.of(self.identity.pid) == self.identity

    def stop(self, seconds: float = _MOST_SECONDS) -> bool:
        """Ends the process, by force if it takes longer; whether it was there."""
        try:
            handle = os.pidfd_open(self.identity.pid)
        except ProcessLookupError:
            return False
        try:
            if not self.is_alive():  # the handle is of whoever has that number now
                return False
            signal.pidfd_send_signal(handle, signal.SIGTERM)
            if not _ended(handle, seconds):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                _ended(handle, seconds)
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
        """What the process has to say."""
        return self.path / "cluster.log"

    @property
    def audit_log(self) -> Path:
        """Every request."""
        return self.path / "audit.log"

    @property
    def data(self) -> Path:
        """The objects, if they are in a file."""
        return self.path / "data"

    @property
    def etcd(self) -> Path:
        """The objects, if they are in an etcd, and how it is reached."""
        return self.path / "etcd"

    def environment(self) -> str:
        """Lines for a shell in which kubectl is to reach the cluster, and etcdctl its etcd if it has one."""
        etcd = self.read(f"{self.etcd.name}/{ETCDCTL}") or b""
        return f"export KUBECONFIG={quote(str(self.kubeconfig))}\n{etcd.decode()}"

    @property
    def store(self) -> Store:
        """What keeps the objects."""
        try:
            kept: Store = msgspec.convert((self.read(_STORE) or _USUAL_STORE).decode().strip(), type=Store)
        except (UnicodeDecodeError, msgspec.ValidationError) as error:
            raise ConfigError(f"expected memory, file or etcd in {self.path / _STORE}: {error}") from None
        return kept

    @property
    def nodes(self) -> int:
        """How many nodes it has."""
        kept = self.read(_NODES) or _USUAL_NODES
        if not kept.strip().isdigit():
            raise ConfigError(f"expected a number in {self.path / _NODES}, got {kept[:20]!r}")
        return int(kept)

    @property
    def images(self) -> Path:
        """The images that were added."""
        return self.path / "images.json"

    @property
    def machines(self) -> Path:
        """Logs and volumes of its nodes."""
        return self.path / "machines"

    def exists(self) -> bool:
        """Whether there is such a cluster, running or not."""
        return self.path.is_dir()

    def has_served(self) -> bool:
        """Whether it has answered requests before, so that objects of it must be somewhere."""
        return any(path.exists() for path in (self.kubeconfig, self.path / _PROCESS, self.audit_log))

    def make(self) -> None:
        """Makes the folder, for its owner alone."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)

    def choose(self, store: Store | None, nodes: int | None = None) -> None:
        """Settles how many nodes there are and, for a new cluster, what keeps the objects.

        Raises `ConfigError` if an old one has chosen otherwise.
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
        self.write(_STORE, (store or _USUAL_STORE.decode()).encode())

    def running(self) -> Running | None:
        """The process that serves it, if it is alive."""
        found = self.last()
        return found if found is not None and found.is_alive() else None

    def last(self) -> Running | None:
        """The process that serves it or served it last."""
        try:
            return msgspec.json.decode((self.path / _PROCESS).read_bytes(), type=Running)
        except (OSError, msgspec.DecodeError):
            return None

    def write_running(self, running: Running) -> None:
        """Says who serves it."""
        self.write(_PROCESS, msgspec.json.encode(running))

    def read(self, name: str) -> bytes | None:
        """The content of a file; None if there is none."""
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        """Writes a file as a whole or not at all, for its owner alone."""
        temporary = self.path / f".{name}.new"
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(handle)
        temporary.replace(self.path / name)


def state_root(environment: Mapping[str, str]) -> Path:
    """Where the folders of clusters are."""
    base = environment.get("XDG_STATE_HOME") or ""
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".local" / "state") / "navarch" / "clusters"


def folders(root: Path) -> list[ClusterFolder]:
    """Every cluster, by name."""
    if not root.is_dir():
        return []
    names = sorted(path.name for path in root.iterdir() if path.is_dir() and not DNS_LABEL.faults(path.name))
    return [ClusterFolder(root, name) for name in names]


def _ended(handle: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(seconds * 1000))
