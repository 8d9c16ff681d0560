"""The container runtime interface of nodes: `Runtime` starts, signals and enters containers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Protocol, Self

import msgspec

from navarch._base.tasks import unless
from navarch.cluster.streams import ContainerProcess, ProcessOptions


class AttachedProcess:
    """A `ContainerProcess` of a container whose stdin stays open for others: a client that closes its stdin detaches."""

    def __init__(self, process: ContainerProcess) -> None:
        self._process = process
        self._left = asyncio.Event()

    def stdout(self) -> AsyncIterator[bytes]:
        """See `ContainerProcess`."""
        return self._until_left(self._process.stdout())

    def stderr(self) -> AsyncIterator[bytes]:
        """See `ContainerProcess`."""
        return self._until_left(self._process.stderr())

    async def _until_left(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        while (piece := await unless(self._left.wait(), _following(pieces))) is not None:
            yield piece

    async def write(self, data: bytes) -> None:
        """See `ContainerProcess`."""
        await self._process.write(data)

    async def close_stdin(self) -> None:
        """Detaches the client."""
        self._left.set()

    async def resize(self, width: int, height: int) -> None:
        """See `ContainerProcess`."""
        await self._process.resize(width, height)

    async def wait(self) -> int:
        """Returns the exit code of the container; 0 after the client has detached."""
        code = await unless(self._left.wait(), self._process.wait())
        return 0 if code is None else code

    async def close(self) -> None:
        """See `ContainerProcess`."""
        await self._process.close()


async def _following(pieces: AsyncIterator[bytes]) -> bytes | None:
    return await anext(pieces, None)


class Exit(NamedTuple):
    """The exit of a program. The code is 128 + the signal's number if a signal killed it, as in a shell."""

    code: int
    signal: int = 0


class Mount(msgspec.Struct, frozen=True):
    """A file or folder of this machine, mounted at a path in the container.

    `sub_path` is the mounted part of the source. The runtime resolves it when the container starts; links in it never
    lead out of the source.
    """

    source: Path
    target: str
    read_only: bool = False
    sub_path: str = ""


class Account(msgspec.Struct, frozen=True):
    """The user and groups of a program; None keeps those of the cluster's process."""

    user: int | None = None
    group: int | None = None
    groups: tuple[int, ...] = ()


class ContainerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of one start of a container. Each start has its own `id`.

    `address` is the pod's: sockets that the container binds to all addresses or to localhost are bound to it. `root` is
    the folder of an unpacked image, whose files the container sees instead of the machine's, and never changes; with
    `read_only` it cannot write over them either.
    """

    id: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    log: Path
    folder: str = "/"
    hostname: str = ""
    mounts: tuple[Mount, ...] = ()
    account: Account = msgspec.field(default_factory=Account)
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False
    privileged: bool = False
    address: str = "127.0.0.1"
    root: Path | None = None
    read_only: bool = False


class RunningContainer(Protocol):
    """A started container."""

    @property
    def id(self) -> str:
        """Returns the id of its `ContainerConfig`."""
        ...

    @property
    def notice(self) -> str:
        """Returns what the container cannot do on this machine, and the remedy; empty if there is no limit."""
        ...

    async def wait(self) -> Exit:
        """Returns when the program and all processes that it started have ended."""
        ...

    async def signal(self, number: int) -> None:
        """Sends the signal to the first process; SIGKILL ends all processes. Does nothing after the end."""
        ...


class Runtime(Protocol):
    """Runs containers. Enter it with `async with`, again after it ended; no container outlives it."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

    @property
    def limits(self) -> tuple[str, ...]:
        """Returns the limits of this machine, each with its consequence; known after entering."""
        ...

    @property
    def is_isolated(self) -> bool:
        """Returns whether containers have a root file system of their own; else mounts keep their paths on the machine."""
        ...

    async def lost(self) -> None:
        """Returns when the runtime has died, and every container with it."""
        ...

    async def start(self, launch: ContainerConfig) -> RunningContainer:
        """Starts a container; raises `ContainerError` if its program cannot be executed."""
        ...

    async def exec(self, container: str, argv: tuple[str, ...], options: ProcessOptions) -> ContainerProcess:
        """Runs another program inside a running container; raises `ContainerError`."""
        ...

    async def attach(self, container: str, options: ProcessOptions) -> ContainerProcess:
        """Attaches to the streams of a running container; raises `ContainerError`."""
        ...

    async def freeze(self, *, frozen: bool) -> None:
        """Stops every process of every container, or continues them."""
        ...

    async def kill(self) -> None:
        """Kills the runtime and its containers at once, as a power cut does."""
        ...
