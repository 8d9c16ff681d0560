"""Processes, their identity, and their end."""

import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from rig import process
from rig.errors import WaitError
from rig.process import Daemon, Identity
from rig.waiting import wait_for

STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); signal.pause()"


def test_identity_is_that_of_this_process() -> None:
    """A running process is alive under its identity."""
    identity = process.identify(os.getpid())
    assert identity is not None
    assert identity.alive()


def test_recycled_process_id_is_not_alive() -> None:
    """A process of the same id that started at another time, or after another boot, is a stranger."""
    mine = process.identify(os.getpid())
    assert mine is not None
    assert not replace(mine, started=mine.started + 1).alive()
    assert not replace(mine, boot="another").alive()


def test_ended_process_is_not_alive() -> None:
    """Neither a zombie nor a reaped process is alive."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    identity = process.identify(child.pid)
    assert isinstance(identity, Identity)
    child.kill()
    wait_for("the child to become a zombie", lambda: not identity.alive(), seconds=60)
    child.communicate()
    assert process.identify(child.pid) is None


def test_daemon_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    """Stopping is bounded: what does not end by itself is killed and reaped."""
    daemon = Daemon("stubborn", [sys.executable, "-c", STUBBORN], tmp_path / "log")
    daemon.start()
    wait_for("the daemon", lambda: "ready" in daemon.tail(), seconds=60, daemon=daemon)
    daemon.stop(grace=0.1)
    assert daemon.exit_code() == -9


def test_daemon_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    """The kernel ties the death signal to a thread; the rig's own thread starts everything, so none is killed."""
    daemon = Daemon("quiet", [sys.executable, "-c", STUBBORN], tmp_path / "log")
    starter = threading.Thread(target=daemon.start)
    starter.start()
    starter.join()
    wait_for("the daemon", lambda: "ready" in daemon.tail(), seconds=60, daemon=daemon)
    assert daemon.exit_code() is None
    daemon.stop(grace=0)


def test_wait_that_fails_says_what_was_awaited(tmp_path: Path) -> None:
    """A wait in vain names its object and shows the end of the log."""
    (tmp_path / "server.log").write_text("first\nbind: address already in use\n")
    with pytest.raises(WaitError, match=r"(?s)waited 0 s in vain for the server.*server\.log:.*already in use"):
        wait_for("the server", lambda: None, seconds=0, log=tmp_path / "server.log")


def test_wait_ends_when_the_daemon_ends(tmp_path: Path) -> None:
    """A wait for a process that has died does not last until its limit."""
    daemon = Daemon("server", [sys.executable, "-c", "raise SystemExit('no such flag')"], tmp_path / "server.log")
    daemon.start()
    with pytest.raises(WaitError, match=r"(?s)server ended with exit code 1 while waiting for it.*no such flag"):
        wait_for("it", lambda: None, seconds=60, daemon=daemon)
