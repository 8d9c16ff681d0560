"""Starting the process of a cluster, and waiting until it can be used."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
from typing import Final
from urllib.parse import urlsplit

from navarch.cluster.embedded.state import ClusterFolder, Running, Store
from navarch.cluster.nodes.shim.program.root import Root
from navarch.errors import ConfigError

__all__ = ["remove", "start"]

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
"""What is imported is kept from two things that would take a quarter of the start. The collector would look through all of
it, again and again, and find nothing. aiohttp would read every authority that this machine trusts, for requests that name
none; those to webhooks always do.
"""
_START_SECONDS: Final = 90.0
_SHOWN_LINES: Final = 10


def start(folder: ClusterFolder, port: int = 0, store: Store | None = None, nodes: int | None = None) -> Running:
    """Starts the process that serves the folder, and returns when it does.

    Without a port it takes the one it had, if that is free, and as many nodes as it had, or one; a new one keeps its
    objects in `store`, usually a file. The process has a session of its own: it goes on when the terminal is closed.
    Raises `ConfigError` with the end of its log if it cannot run.
    """
    folder.make()
    nodes_before = folder.nodes
    folder.choose(store, nodes)
    reader, writer = os.pipe()
    try:
        process = _spawned(folder, port or _port_before(folder), writer)
    finally:
        os.close(writer)
    try:
        is_ready = _is_told(reader)
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
        raise ConfigError(f"the cluster {folder.name!r} could not be started; {folder.log} ends with:\n{_tail(folder)}")
    process.returncode = 0  # it goes on without this process, and nobody is to wait for it
    return running


def remove(folder: ClusterFolder) -> None:
    """Removes a cluster that does not run, with all that it holds, however deep its containers made their volumes."""
    with Root.at(folder.path.parent) as clusters:
        clusters.remove_all(folder.path.name)


def _spawned(folder: ClusterFolder, port: int, ready: int) -> subprocess.Popen[bytes]:
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


def _is_told(reader: int) -> bool:
    """Whether the process said that it is ready; it has not if it ended, or took too long."""
    poll = select.poll()
    poll.register(reader, select.POLLIN)
    return bool(poll.poll(_START_SECONDS * 1000)) and os.read(reader, 16) == b"ready\n"


def _port_before(folder: ClusterFolder) -> int:
    """The port it had, if nobody else has it now; 0 for any."""
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
