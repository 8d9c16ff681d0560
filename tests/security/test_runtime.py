"""Whatever a container does, the process that runs all containers of its node goes on with its work."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from navarch._base.clock import SystemClock
from navarch.cluster.nodes.runtime import ContainerConfig, Mount
from navarch.cluster.nodes.shim.program.guard import GUARDED
from navarch.cluster.nodes.shim.program.kernel import CALLS
from navarch.cluster.nodes.shim.program.sockets import SOCKET_CALLS
from navarch.cluster.nodes.shim.runtime import ShimContainer, ShimRuntime
from navarch.errors import ContainerError
from security import bare_kernel

_SECONDS = 30.0
_PATH = {"PATH": os.environ["PATH"]}
_OWN_PYTHON = (sys.executable, "-I", "-S")
_KINDS = {
    "as-started": _OWN_PYTHON,
    "no-namespaces": (sys.executable, str(Path(bare_kernel.__file__)), "unshare", "--", *_OWN_PYTHON),
}


class Runtime:
    """A shim, and containers in it that are numbered."""

    def __init__(self, shim: ShimRuntime, folder: Path) -> None:
        self.shim = shim
        self.folder = folder
        self._count = 0

    async def start(self, *argv: str, mounts: tuple[Mount, ...] = (), address: str = "127.77.0.5") -> Started:
        """Starts a container; the test fails if the shim does not do that in time."""
        self._count += 1
        log = self.folder / f"{self._count}.log"
        launch = ContainerConfig(id=str(self._count), argv=argv, env=_PATH, log=log, mounts=mounts, address=address)
        async with asyncio.timeout(_SECONDS):
            container = await self.shim.start(launch)
        return Started(container, log)

    async def python(self, program: str, *, mounts: tuple[Mount, ...] = (), address: str = "127.77.0.5") -> Started:
        """Starts a program in Python."""
        return await self.start(*_OWN_PYTHON, "-c", program, mounts=mounts, address=address)


class Started:
    """A container and its log."""

    def __init__(self, container: ShimContainer, log: Path) -> None:
        self.container = container
        self._log = log

    async def ended(self) -> tuple[int, list[str]]:
        """How it ended, and the lines that it has said."""
        async with asyncio.timeout(_SECONDS):
            code = (await self.container.wait()).code
        return code, self.said()

    def said(self) -> list[str]:
        """The lines so far."""
        return [line.split(" ", 3)[3] for line in self._log.read_text().splitlines()]

    async def until(self, word: str) -> None:
        """Returns when it has said that."""
        await eventually(lambda: word in self.said(), f"the container to say {word!r}")


async def eventually(holds: Callable[[], bool], what: str) -> None:
    """Returns once it holds."""
    clock = SystemClock()
    end = clock.monotonic() + _SECONDS
    while not holds():
        assert clock.monotonic() < end, f"expected {what} within {_SECONDS:g} s"
        await clock.sleep(0.02)


@pytest.fixture(params=["as-started", "no-namespaces"])
async def runtime(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Runtime]:
    """On a machine that gives namespaces to containers, or not."""
    monkeypatch.setattr("navarch.cluster.nodes.shim.runtime._PYTHON", _KINDS[request.param])
    async with ShimRuntime(tmp_path / "shim", stop_seconds=0.1) as shim:
        yield Runtime(shim, tmp_path)


_only_with_namespaces = pytest.mark.parametrize("runtime", ["as-started"], indirect=True)

_MAKES_PIPES = """
import os
print("ready", flush=True)
while True:
    for work in (os.mkfifo, os.unlink):
        try:
            work("/a/x")
        except OSError:
            pass
"""


@_only_with_namespaces
async def test_pipe_at_the_place_of_a_mount_keeps_nobody_waiting(runtime: Runtime) -> None:
    """A container puts it into a volume in which a file is to be mounted for another one, just before that is done."""
    volume, file = runtime.folder / "volume", runtime.folder / "file"
    volume.mkdir()
    file.touch()
    for _ in range(2):
        maker = await runtime.python(_MAKES_PIPES, mounts=(Mount(volume, "/a"),))
        await maker.until("ready")
    for _ in range(40):
        with suppress(ContainerError):  # the mount may fail
            await runtime.start("true", mounts=(Mount(volume, "/a"), Mount(file, "/a/x")))


_GIVES_AWAY = """
import array, socket
with socket.socket(socket.AF_UNIX) as other:
    other.connect("/v/socket")
    other.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [1, 2]))])
    other.recv(1)
"""
_GOES_ON_WRITING = """
import array, os, socket
with socket.socket(socket.AF_UNIX) as server:
    server.bind("/v/socket")
    server.listen()
    print("ready", flush=True)
    given, _ = server.accept()
    _, ancillary, *_ = given.recvmsg(1, 100)
    streams = array.array("i", ancillary[0][2])
    for stream in streams:
        os.set_blocking(stream, False)
    pieces = 0
    while True:
        for stream in streams:
            try:
                pieces += bool(os.write(stream, b"x" * 65536))
            except OSError:
                pass
        if pieces > 4 and given is not None:
            given.close()
            given = None
"""


@_only_with_namespaces
async def test_output_of_a_container_that_has_ended_is_not_read_for_ever(runtime: Runtime) -> None:
    """It has passed its streams to another one, which goes on writing to them."""
    (runtime.folder / "volume").mkdir()
    mounts = (Mount(runtime.folder / "volume", "/v"),)
    for number in range(2):
        writer = await runtime.python(_GOES_ON_WRITING.replace("/v/socket", f"/v/{number}"), mounts=mounts)
        await writer.until("ready")
        giver = await runtime.python(_GIVES_AWAY.replace("/v/socket", f"/v/{number}"), mounts=mounts)
        async with asyncio.timeout(_SECONDS):
            await giver.container.wait()
    assert await (await runtime.start("echo", "word")).ended() == (0, ["word"])


_CALLS_WITH_NONSENSE = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
numbers = {numbers}
values = (-1, 2**63 - 1, -(2**63), 2**32, 1)
path = ctypes.c_char_p(b"/mnt/volume/x")
for number in numbers:
    for value in values:
        odd = ctypes.c_long(value)
        libc.syscall(number, odd, odd, odd, odd, odd, odd)
        libc.syscall(number, path, odd, odd, odd, odd, odd)
        libc.syscall(number, -100, path, odd, odd, odd, odd)
        libc.syscall(number, odd, path, odd, path, odd, odd)
print("done")
"""


OF_DESCRIPTORS = {number for number, call in GUARDED.items() if any(path < 0 for _, path in call.paths)}
"""Calls that change the file of a descriptor: these have no address, and the container may make them."""


async def test_call_with_addresses_that_nobody_can_have_ends_nothing(runtime: Runtime) -> None:
    """It fails for its caller: the paths, flags and buffers of each call that the shim is asked about."""
    (runtime.folder / "volume").mkdir()
    program = _CALLS_WITH_NONSENSE.replace("{numbers}", str(sorted({*CALLS, *GUARDED, *SOCKET_CALLS} - OF_DESCRIPTORS)))
    mounts = (Mount(runtime.folder / "volume", "/mnt/volume"),)
    assert await (await runtime.python(program, mounts=mounts)).ended() == (0, ["done"])
    assert await (await runtime.start("echo", "word")).ended() == (0, ["word"])


async def test_number_that_is_no_signal_ends_nothing(runtime: Runtime) -> None:
    """It is sent to nobody."""
    sleeper = await runtime.start("sleep", "100")
    for number in (-1, 65, 1000, 2**31, 2**62):
        await sleeper.container.signal(number)
    assert await (await runtime.start("echo", "word")).ended() == (0, ["word"])
