"""`ShimRuntime`: the container runtime whose containers are processes of this machine."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from navarch.cluster.nodes.runtime import ContainerConfig, Exit, Mount
from navarch.cluster.nodes.shim import program
from navarch.cluster.nodes.shim.connection import Link, ShimProcess, close_all
from navarch.cluster.nodes.shim.image_programs import ImagePrograms
from navarch.cluster.nodes.shim.program.processes import end_left_behind
from navarch.cluster.streams import ContainerProcess, ProcessOptions
from navarch.errors import ContainerError

_PYTHON: Final = (sys.executable, "-I", "-S")
_PACKAGE: Final = program.__name__
# Importing the package by its parents would import all of navarch: it is put in its place by hand.
_BOOT: Final = f"""\
import sys

module = type(sys)
sys.modules["navarch"] = module("navarch")
sys.modules[{_PACKAGE!r}] = package = module({_PACKAGE!r})
package.__path__ = [sys.argv[1]]
from {_PACKAGE}.main import main
main(int(sys.argv[2]), sys.argv[3])
"""


class MountPaths:
    """Replaces paths of mounts by their sources on this machine, for containers without a root file system of their
    own.

    A read-only mount of a volume that is also mounted writable keeps its path: by its source it could be written.

    >>> from pathlib import Path
    >>> places = MountPaths([Mount(Path("/pods/7/data"), "/var/etcd")])
    >>> places.in_text("--data-dir=/var/etcd/data --other=/var/etcdish")
    '--data-dir=/pods/7/data/data --other=/var/etcdish'
    """

    def __init__(self, mounts: Iterable[Mount]) -> None:
        named = [(mount.target.rstrip("/"), str(mount.source / mount.sub_path), mount.read_only) for mount in mounts]
        writable = {source for _, source, read_only in named if not read_only}
        self._sources = {
            target: source for target, source, read_only in named if target and not (read_only and source in writable)
        }
        targets = "|".join(re.escape(target) for target in sorted(self._sources, key=len, reverse=True))
        self._pattern = re.compile(rf"(?:(?<![\w./-])|(?<=://))(?:{targets})(?![\w.-])")

    def in_text(self, text: str) -> str:
        """Returns the text with replaced paths; a path inside another path or name is not replaced."""
        return self._pattern.sub(lambda found: self._sources[found[0]], text) if self._sources else text

    def in_all(self, texts: Iterable[str]) -> tuple[str, ...]:
        """Returns the texts with replaced paths."""
        return tuple(self.in_text(text) for text in texts)

    def in_launch(self, launch: ContainerConfig) -> ContainerConfig:
        """Returns the configuration with replaced paths in its command, environment and working directory."""
        env = {name: self.in_text(value) for name, value in launch.env.items()}
        return msgspec.structs.replace(
            launch, argv=self.in_all(launch.argv), env=env, folder=self.in_text(launch.folder)
        )


class ShimContainer:
    """A started container."""

    def __init__(self, shim: ShimRuntime, container: str, ended: asyncio.Future[Exit], notice: str) -> None:
        self._shim = shim
        self._ended = ended
        self.id = container
        self.notice = notice

    async def wait(self) -> Exit:
        """See `Started`."""
        return await asyncio.shield(self._ended)

    async def signal(self, number: int) -> None:
        """See `Started`."""
        self._shim.signal(self.id, number)


class ShimRuntime:
    """Runs containers as processes of a shim, which kills them all when the cluster's process is gone.

    `folder` is the shim's own; containers have `stop_seconds` to terminate when the runtime is left. Containers with a
    root file system of their own do not see the `hidden` folders, except for their volumes.
    """

    def __init__(self, folder: Path, *, stop_seconds: float = 0.5, hidden: tuple[Path, ...] = ()) -> None:
        self._folder = folder
        self._hidden = hidden
        self._stop_seconds = stop_seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._link: Link | None = None
        self._ready: asyncio.Future[dict[str, Any]] | None = None
        self._beginning: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._running: dict[str, asyncio.Future[Exit]] = {}
        self.limits: tuple[str, ...] = ()
        self.is_isolated = False
        """See `Runtime`."""
        self._ends_all = True
        self._places: dict[str, MountPaths] = {}
        self._programs: dict[str, Callable[[tuple[str, ...]], tuple[str, ...]]] = {}
        self._first: dict[str, int] = {}

    async def __aenter__(self) -> Self:
        base = self._folder / "root"
        base.mkdir(parents=True, exist_ok=True)
        self._ready = asyncio.get_running_loop().create_future()
        self._link = link = self._spawned(base)
        try:
            told = await self._first_of(self._ready)
        except BaseException:  # nobody leaves what was not entered
            link.close()
            await self._reaped()
            raise
        self.limits, self.is_isolated, self._ends_all = tuple(told["limits"]), told["mounts"], told["processes"]
        return self

    def _spawned(self, base: Path) -> Link:
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self._process = _spawned(theirs.fileno(), base)
        except OSError:
            ours.close()
            raise
        return Link(ours, self._heard)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._link is not None
        self._link.send({"do": "stop", "seconds": self._stop_seconds})
        try:
            await self._link.closed.wait()
        finally:
            self._link.close()
            await self._reaped()

    async def lost(self) -> None:
        """See `Runtime`."""
        assert self._link is not None
        await self._link.closed.wait()

    async def start(self, launch: ContainerConfig) -> ShimContainer:
        """See `Runtime`."""
        ended: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()
        self._running[launch.id] = ended
        try:
            if not self.is_isolated:
                launch = self._without_tree(launch)
            told = await self._begun({"do": "start", **_plan(launch, self._hidden)})
        except BaseException:
            self.signal(launch.id, signal.SIGKILL)
            self._forget(launch.id)
            raise
        self._first[launch.id] = told["pid"]
        return ShimContainer(self, launch.id, ended, told["notice"])

    def _without_tree(self, launch: ContainerConfig) -> ContainerConfig:
        """Returns the configuration for a container that has no root file system of its own; raises `ContainerError`."""
        places = self._places[launch.id] = MountPaths(launch.mounts)
        launch = places.in_launch(launch)
        if launch.root is None:
            return launch
        programs = ImagePrograms(launch.root, launch.mounts)
        launch = programs.in_launch(launch)
        self._programs[launch.id] = partial(programs.command, env=launch.env, folder=launch.folder)
        return launch

    async def exec(self, container: str, argv: tuple[str, ...], options: ProcessOptions) -> ContainerProcess:
        """See `Runtime`."""
        identity = f"{container}-exec-{os.urandom(8).hex()}"
        ended: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()
        self._running[identity] = ended
        if container in self._places:
            argv = self._places[container].in_all(argv)
        if container in self._programs:
            argv = self._programs[container](argv)
        message = {"do": "exec", "id": identity, "container": container, "argv": list(argv)}
        try:
            told = await self._begun({**message, "stdin": options.stdin, "tty": options.tty})
        except BaseException:
            self.signal(identity, signal.SIGKILL)
            self._forget(identity)
            raise
        return ShimProcess(_streams(told, options), ended, lambda: self.signal(identity, signal.SIGKILL), options)

    async def attach(self, container: str, options: ProcessOptions) -> ContainerProcess:
        """See `Runtime`."""
        identity = f"{container}-attach-{os.urandom(8).hex()}"
        wanted = {"stdin": options.stdin, "stdout": options.stdout or options.tty, "stderr": options.stderr}
        ended = self._running.get(container)
        if ended is None:
            raise ContainerError("container not running")
        told = await self._begun({"do": "attach", "id": identity, "container": container, **wanted})
        return ShimProcess(_streams(told, options), ended, lambda: None, options)

    async def freeze(self, *, frozen: bool) -> None:
        """See `Runtime`."""
        if self._link is not None:
            self._link.send({"do": "freeze", "frozen": frozen})

    async def kill(self) -> None:
        """See `Runtime`."""
        if self._process is not None and self._link is not None:
            self._process.kill()
            await self._link.closed.wait()

    def signal(self, identity: str, number: int) -> None:
        """Sends a signal to a container or process; does nothing after its end."""
        if self._link is not None:
            self._link.send({"do": "signal", "id": identity, "number": int(number)})

    async def _begun(self, message: dict[str, Any]) -> dict[str, Any]:
        """Returns the shim's answer to a start once the program runs; raises `ContainerError` if it does not."""
        assert self._link is not None
        identity = message["id"]
        answer = self._beginning[identity] = asyncio.get_running_loop().create_future()
        self._link.send(message)
        try:
            told = await self._first_of(answer)
        finally:
            self._beginning.pop(identity, None)
        if told["is"] == "failed":
            raise ContainerError(told["fault"])
        return told

    async def _first_of(self, answer: asyncio.Future[dict[str, Any]]) -> dict[str, Any]:
        """Returns the answer; raises `ContainerError` if the shim dies first."""
        assert self._link is not None
        async with asyncio.TaskGroup() as group:
            lost = group.create_task(self._link.closed.wait())
            await asyncio.wait((answer, lost), return_when=asyncio.FIRST_COMPLETED)
            lost.cancel()
        if not answer.done():
            raise ContainerError("the process that runs this node's containers has died")
        return answer.result()

    def _heard(self, message: dict[str, Any]) -> None:
        match message["is"]:
            case "ready":
                assert self._ready is not None
                self._ready.set_result(message)
            case "started" | "failed":
                self._answered(message)
            case "ended":
                ended = self._forget(message["id"])
                if ended is not None and not ended.done():
                    ended.set_result(Exit(message["code"], message["signal"]))

    def _forget(self, identity: str) -> asyncio.Future[Exit] | None:
        self._places.pop(identity, None)
        self._programs.pop(identity, None)
        self._first.pop(identity, None)
        return self._running.pop(identity, None)

    def _answered(self, message: dict[str, Any]) -> None:
        answer = self._beginning.get(message["id"])
        if answer is None or answer.done():
            close_all(message["descriptors"])
        else:
            answer.set_result(message)

    async def _reaped(self) -> None:
        """Returns when the shim and all of its processes have ended."""
        assert self._process is not None
        process, self._process, self._link = self._process, None, None
        loop, over = asyncio.get_running_loop(), asyncio.Event()
        pidfd = os.pidfd_open(process.pid)
        loop.add_reader(pidfd, over.set)
        try:
            await over.wait()
        finally:
            loop.remove_reader(pidfd)
            os.close(pidfd)
            if not over.is_set():
                process.kill()
            process.wait()
            self._forget_running()

    def _forget_running(self) -> None:
        """What ran was killed; without process namespaces, what it had started in its turn is still to be."""
        if not self._ends_all:
            end_left_behind(self._first)
        for identity in tuple(self._running):
            ended = self._forget(identity)
            if ended is not None and not ended.done():
                ended.set_result(Exit(128 + signal.SIGKILL, signal.SIGKILL))


def _spawned(fd: int, base: Path) -> subprocess.Popen[bytes]:
    where = str(Path(program.__file__ or "").parent)
    command = [*_PYTHON, "-c", _BOOT, where, str(fd), str(base)]
    null = subprocess.DEVNULL
    return subprocess.Popen(command, pass_fds=(fd,), stdin=null, stdout=null, cwd="/", process_group=0)  # noqa: S603 - our own


def _plan(launch: ContainerConfig, hidden: tuple[Path, ...]) -> dict[str, Any]:
    account = launch.account
    return {
        "id": launch.id,
        "argv": list(launch.argv),
        "env": dict(launch.env),
        "log": str(launch.log),
        "folder": launch.folder,
        "hostname": launch.hostname,
        "mounts": [(str(mount.source), mount.target, mount.read_only, mount.sub_path) for mount in launch.mounts],
        "hidden": [str(folder) for folder in hidden],
        "account": (account.user, account.group, list(account.groups)),
        "privileged": launch.privileged,
        "address": launch.address,
        "image": str(launch.root or ""),
        "read_only": launch.read_only and launch.root is not None,
        "stdin": launch.stdin,
        "stdin_once": launch.stdin_once,
        "tty": launch.tty,
    }


def _streams(told: Mapping[str, Any], options: ProcessOptions) -> dict[str, int]:
    """Returns the requested streams by name, and closes the others."""
    found = dict(zip(told["streams"], told["descriptors"], strict=True))
    unwanted = [] if options.tty else [name for name in ("stdout", "stderr") if not getattr(options, name)]
    close_all([found.pop(name) for name in unwanted if name in found])
    return found
