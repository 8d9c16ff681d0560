"""The shim isolates containers as far as the machine allows, and reports the limits."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import signal
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from cluster.nodes.machines import long_while, processes_with, sleeping
from navarch.cluster.nodes.runtime import Account, ContainerConfig, Mount
from navarch.cluster.nodes.shim.program.output import ContainerLog
from navarch.cluster.nodes.shim.runtime import ShimRuntime
from navarch.errors import ContainerError

_PATH = {"PATH": os.environ["PATH"]}
_SCRIPT = """
import asyncio, os, signal, sys
from pathlib import Path
from navarch.cluster.nodes.runtime import ContainerConfig, Mount
from navarch.cluster.nodes.shim.runtime import ShimRuntime

async def main():
    folder = Path(sys.argv[1])
    (folder / "volume").mkdir()
    async with ShimRuntime(folder, stop_seconds=0.1) as shim:
        print("isolated", shim.is_isolated)
        for limit in shim.limits:
            print("limit", limit)
        script = f"(setsid sleep {sys.argv[2]} &); id -u; cat /somewhere/deep/x; echo word > /data/x; exit 4"
        (folder / "file").write_text("text")
        mounts = (Mount(folder / "volume", "/data"), Mount(folder / "file", "/somewhere/deep/x", read_only=True))
        launch = ContainerConfig(
            id="a", argv=("sh", "-c", script), env={"PATH": os.environ["PATH"]}, log=folder / "log", mounts=mounts
        )
        container = await shim.start(launch)
        print("exit", (await container.wait()).code)
    for line in (folder / "log").read_text().splitlines():
        print("said", line.split(" ", 3)[3])

asyncio.run(main())
"""
_needs_unshare = pytest.mark.skipif(
    shutil.which("unshare") is None or os.geteuid() != 0, reason="makes a machine of another kind with unshare, as root"
)


async def _said(folder: Path, seconds: str, *around: str) -> list[str]:
    """What the script above says where it is run by the command around it."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    process = await asyncio.create_subprocess_exec(
        *around, sys.executable, "-c", _SCRIPT, str(folder), seconds, env=env, stdout=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(120):
        output, _ = await process.communicate()
    return output.decode().splitlines()


@_needs_unshare
async def test_root_is_not_needed(tmp_path: Path) -> None:
    """Containers of an ordinary user have their own files and processes too."""
    seconds = long_while()
    said = await _said(tmp_path, seconds, "unshare", "--map-user=1000", "--map-group=1000", "--")
    assert "isolated True" in said
    assert "limit not root: runAsUser, runAsGroup and fsGroup are not honoured" in said
    assert said[-3:] == ["exit 4", "said 1000", "said text"]
    assert _text(tmp_path / "volume" / "x") == "word\n"
    assert not sleeping(seconds)


@_needs_unshare
async def test_limits_of_the_machine_are_said(tmp_path: Path) -> None:
    """Without namespaces programs run, and still nothing outlives its container."""
    none = "; ".join(f"echo 0 > /proc/sys/user/max_{kind}_namespaces" for kind in ("mnt", "pid", "user"))
    seconds = long_while()
    said = await _said(tmp_path, seconds, "unshare", "--map-root-user", "sh", "-c", f'{none}; exec "$@"', "sh")
    assert "isolated False" in said
    assert any(line.startswith("limit no process namespaces") for line in said)
    assert any(line.startswith("limit no mount namespaces") and "by where they are" in line for line in said)
    assert "said text" in said
    assert "exit 4" in said
    assert await asyncio.to_thread(_text, tmp_path / "volume" / "x") == "word\n"
    assert not sleeping(seconds)


def _text(path: Path) -> str:
    return path.read_text()


async def test_a_signal_is_told(tmp_path: Path) -> None:
    """The exit of a program that a signal killed has the signal's number."""
    async with ShimRuntime(tmp_path, stop_seconds=0.1) as shim:
        container = await shim.start(ContainerConfig(id="a", argv=("sleep", "100"), env=_PATH, log=tmp_path / "log"))
        await container.signal(signal.SIGKILL)
        assert await container.wait() == (137, 9)
        await container.signal(signal.SIGTERM)


async def test_many_start_at_once(tmp_path: Path) -> None:
    """Containers start concurrently, and each has its own result."""
    async with ShimRuntime(tmp_path, stop_seconds=0.1) as shim:

        async def run(number: int) -> int:
            argv = ("sh", "-c", f"exit {number}")
            launch = ContainerConfig(id=str(number), argv=argv, env=_PATH, log=tmp_path / f"{number}.log")
            return (await (await shim.start(launch)).wait()).code

        assert await asyncio.gather(*map(run, range(20))) == list(range(20))


async def test_large_environments_arrive(tmp_path: Path) -> None:
    """An environment larger than the socket's buffer arrives whole."""
    env = {**_PATH, **{f"NAME_{number}": "x" * 100_000 for number in range(15)}}
    async with ShimRuntime(tmp_path, stop_seconds=0.1) as shim:
        argv = ("sh", "-c", "echo ${#NAME_14}")
        container = await shim.start(ContainerConfig(id="a", argv=argv, env=env, log=tmp_path / "log"))
        assert (await container.wait()).code == 0
    assert _text(tmp_path / "log").endswith(" stdout F 100000\n")


async def test_a_dead_shim_is_told(tmp_path: Path) -> None:
    """Waiting for a container and starting one fail; entered again, the runtime works."""
    shim = ShimRuntime(tmp_path, stop_seconds=0.1)
    async with shim:
        container = await shim.start(ContainerConfig(id="a", argv=("sleep", "100"), env=_PATH, log=tmp_path / "log"))
        await shim.kill()
        await shim.lost()
        with pytest.raises(ContainerError, match="has died"):
            await shim.start(ContainerConfig(id="b", argv=("sleep", "100"), env=_PATH, log=tmp_path / "log"))
    assert (await container.wait()).code == 137
    async with shim:
        again = await shim.start(ContainerConfig(id="a", argv=("true",), env=_PATH, log=tmp_path / "log"))
        assert (await again.wait()).code == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
async def test_a_program_runs_as_somebody_else(tmp_path: Path) -> None:
    """runAsUser and groups apply, and capabilities are those of containers without device nodes."""
    argv = ("sh", "-c", "id -u; id -g; id -G; grep CapBnd /proc/self/status")
    async with ShimRuntime(tmp_path, stop_seconds=0.1) as shim:
        account = Account(user=1234, group=2345, groups=(3456,))
        launch = ContainerConfig(id="a", argv=argv, env=_PATH, log=tmp_path / "log", account=account)
        assert (await (await shim.start(launch)).wait()).code == 0
    said = [line.split(" ", 3)[3] for line in _text(tmp_path / "log").splitlines()]
    assert said == ["1234", "2345", "2345 3456", "CapBnd:\t00000000a00425fb"]


async def test_a_mount_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    """The start fails with the reason, and the next container starts."""
    async with ShimRuntime(tmp_path, stop_seconds=0.1) as shim:
        mounts = (Mount(tmp_path / "nothing", "/data"),)
        launch = ContainerConfig(id="a", argv=("true",), env=_PATH, log=tmp_path / "log", mounts=mounts)
        with pytest.raises(ContainerError, match="No such file or directory"):
            await shim.start(launch)
        good = await shim.start(ContainerConfig(id="b", argv=("true",), env=_PATH, log=tmp_path / "log"))
        assert (await good.wait()).code == 0


async def test_a_log_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    """A full disk, or a folder that is gone, fails the start and nothing else."""
    async with ShimRuntime(tmp_path, stop_seconds=0.1) as shim:
        launch = ContainerConfig(id="a", argv=("true",), env=_PATH, log=tmp_path / "nowhere" / "log")
        with pytest.raises(ContainerError, match="No such file or directory"):
            await shim.start(launch)
        good = await shim.start(ContainerConfig(id="b", argv=("true",), env=_PATH, log=tmp_path / "log"))
        assert (await good.wait()).code == 0


def test_a_full_disk_loses_lines_and_nothing_else() -> None:
    """Lines that the disk does not take are lost."""
    log = ContainerLog("/dev/full")
    log.add("stdout", b"line\n" * 1000)
    log.close()


async def test_shims_leave_nothing(tmp_path: Path) -> None:
    """Shims that run one after the other leave no process and no descriptor."""
    before, seconds = _descriptors(), long_while()
    for number in range(10):
        async with ShimRuntime(tmp_path, stop_seconds=0.0) as shim:
            await shim.start(ContainerConfig(id=str(number), argv=("sleep", seconds), env=_PATH, log=tmp_path / "log"))
    assert not sleeping(seconds)
    assert not processes_with(str(tmp_path))
    assert not _descriptors() - before


def _descriptors() -> Counter[str]:
    """What is open, and how often; what earlier tests have left may be closed at any time."""
    found: Counter[str] = Counter()
    for link in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # closed meanwhile
            found[os.readlink(link)] += 1  # noqa: PTH115 - may be a number, no path
    return found


async def test_a_start_that_is_given_up_leaves_nothing(tmp_path: Path) -> None:
    """A cancelled start leaves no process and no socket: a cluster may stop while its nodes start."""
    before = _children()
    async with asyncio.TaskGroup() as group:
        starting = group.create_task(ShimRuntime(tmp_path).__aenter__())
        await asyncio.wait((starting,), timeout=0.001)
        assert len(_children() - before) == 1
        starting.cancel()
    assert starting.cancelled()
    assert not _children() - before
    gc.collect()  # a socket or process that nobody has closed would be warned of now


def _children() -> set[str]:
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())
