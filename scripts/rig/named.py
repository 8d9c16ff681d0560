"""Clusters that keep running in the background, each under a name.

A supervisor process of its own holds the cluster (see `supervise`), so that everything said about `running` is true
here too: if the supervisor ends, in whatever way, the cluster ends. Its process id and start time lie in the
cluster's folder; a process that merely has the same id is never taken for it.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path

from rig import build, folders, janitor, programs
from rig.cluster import Cluster
from rig.errors import RigError, WaitError
from rig.locking import turn
from rig.process import Identity, identify, tail
from rig.starting import running
from rig.waiting import wait_for

UP_LIMIT = 240.0
DOWN_LIMIT = 60.0

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,30}")


def folder_of(name: str) -> Path:
    """Return the folder of a named cluster; raises RigError for a name that is no plain word."""
    if not _NAME.fullmatch(name):
        raise RigError(f"expected a name of lower-case letters, digits and dashes, got {name!r}")
    return folders.state() / name


def find(name: str) -> Cluster | None:
    """Return the named cluster if it is up."""
    folder = folder_of(name)
    if _supervisor(folder) is None:
        return None
    try:
        return Cluster.from_json((folder / "cluster.json").read_text())
    except FileNotFoundError:
        return None


def find_all() -> Iterator[tuple[str, Cluster | None]]:
    """Yield every name that has a folder, with its cluster if that is up."""
    root = folders.state()
    for folder in sorted(root.iterdir()) if root.is_dir() else ():
        if folder.is_dir() and _NAME.fullmatch(folder.name):
            yield folder.name, find(folder.name)


def up(name: str, *, node: bool = False, progress: build.Report = build.report) -> Cluster:
    """Return the named cluster, starting it if it is not up; raises RigError if it cannot."""
    build.build(programs.ALL if node else programs.CONTROL_PLANE, progress=progress)
    with _turn(name, progress):
        if cluster := find(name):
            if node and cluster.node is None:
                raise RigError(f"cluster {name!r} is up without a node: take it down first")
            return cluster
        _stop(name)  # one that hangs half-started, or what a reboot left behind
        return _await_cluster(name, _start_supervisor(name, node=node))


def down(name: str, *, progress: build.Report = build.report) -> bool:
    """Stop the named cluster and remove its folder; False if there was none."""
    with _turn(name, progress):
        existed = folder_of(name).exists()
        _stop(name)
        _log_of(name).unlink(missing_ok=True)
        return existed


def _stop(name: str) -> None:
    folder = folder_of(name)
    if supervisor := _supervisor(folder):
        os.kill(supervisor.pid, signal.SIGTERM)
        wait_for(f"cluster {name!r} to stop", lambda: not supervisor.alive(), seconds=DOWN_LIMIT)
    janitor.clean(folder)


def _turn(name: str, progress: build.Report) -> AbstractContextManager[None]:
    """Let only one process at a time change a cluster's state."""
    lock = folder_of(name).with_name(f".{name}.lock")
    return turn(lock, lambda: progress(f"waiting for another command on cluster {name!r}"))


def supervise(name: str, *, node: bool) -> None:
    """Hold a cluster until SIGTERM or SIGINT; this is the background process itself."""
    folder = folder_of(name)
    folder.mkdir(mode=0o700, parents=True)
    os.chdir("/")
    _write(folder / "supervisor.json", json.dumps(asdict(_myself())))
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    with running(folder=folder, node=node, registry=node) as cluster:
        _write(folder / "cluster.json", cluster.to_json())
        ended.wait()


def _start_supervisor(name: str, *, node: bool) -> int:
    """Start the background process and return its id. It must outlive us, so no Popen object is to watch over it."""
    command = [sys.executable, "-m", "rig", "supervise", "--name", name, *(["--node"] if node else [])]
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    streams = (
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(_log_of(name)), flags, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    )
    environment = {**os.environ, "PYTHONPATH": str(folders.SOURCE.parent)}
    return os.posix_spawn(command[0], command, environment, file_actions=streams, setsid=True)


def _await_cluster(name: str, pid: int) -> Cluster:
    def probe() -> Cluster | None:
        ended, _ = os.waitpid(pid, os.WNOHANG)
        if ended:
            raise RigError(f"cluster {name!r} did not start:\n{tail(_log_of(name), lines=30)}")
        return find(name)

    try:
        return wait_for(f"cluster {name!r}", probe, seconds=UP_LIMIT)
    except (WaitError, KeyboardInterrupt):
        os.kill(pid, signal.SIGTERM)
        raise


def _log_of(name: str) -> Path:
    """The supervisor's own output lies beside the folder: it must survive a start that fails."""
    return folders.state() / f"{name}.log"


def _supervisor(folder: Path) -> Identity | None:
    """Return the supervisor of a folder if it is alive."""
    try:
        identity = Identity(**json.loads((folder / "supervisor.json").read_text()))
    except FileNotFoundError:
        return None
    return identity if identity.alive() else None


def _myself() -> Identity:
    identity = identify(os.getpid())
    if identity is None:
        raise RigError("/proc does not show this process; the rig needs Linux")
    return identity


def _write(path: Path, text: str) -> None:
    """Write a file that is complete whenever it exists."""
    partial = path.with_suffix(".partial")
    partial.touch(mode=0o600)
    partial.write_text(text)
    partial.rename(path)
