"""What a node asks of whatever runs its containers: to start, signal and enter them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Protocol, Self

import msgspec

from navarch._base.tasks import unless
from navarch.cluster.streams import Process, ProcessOptions


class AttachedProcess:
    """See `Process`: the streams of a container whose input stays open for others. Who has no more input has left it."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._left = asyncio.Event()

    def stdout(self) -> AsyncIterator[bytes]:
        """See `Process`."""
        return self._until_left(self._process.stdout())

    def stderr(self) -> AsyncIterator[bytes]:
        """See `Process`."""
        return self._until_left(self._process.stderr())

    async def _until_left(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        while (piece := await unless(self._left.wait(), _following(pieces))) is not None:
            yield piece

    async def write(self, data: bytes) -> None:
        """See `Process`."""
        await self._process.write(data)

    async def close_stdin(self) -> None:
        """See above."""
        self._left.set()

    async def resize(self, width: int, height: int) -> None:
        """See `Process`."""
        await self._process.resize(width, height)

    async def wait(self) -> int:
        """The exit code of the container, 0 for whoever has left."""
        code = await unless(self._left.wait(), self._process.wait())
        return 0 if code is None else code

    async def close(self) -> None:
        """See `Process`."""
        await self._process.close()


async def _following(pieces: AsyncIterator[bytes]) -> bytes | None:
    return await anext(pieces, None)


class Exit(NamedTuple):
    """How a program ended. One that was killed by a signal has the code 128 + its number, as a shell would say."""

    code: int
    signal: int = 0


class Mount(msgspec.Struct, frozen=True):
    """A file or folder of this machine at a place of the container's own tree.

    `sub_path` is the part of the source that is mounted. It is resolved when the container starts, by whoever mounts it,
    and never leaves the source, whatever links are in it.
    """

    source: Path
    target: str
    read_only: bool = False
    sub_path: str = ""


class Account(msgspec.Struct, frozen=True):
    """As whom a program runs; None leaves it to whoever runs the cluster."""

    user: int | None = None
    group: int | None = None
    groups: tuple[int, ...] = ()


class ContainerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """All that a container begins with. `id` is of this one start; another start is another container.

    `address` is the pod's: what the container binds on all addresses or on localhost is bound there.
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


class RunningContainer(Protocol):
    """A container that was started."""

    @property
    def id(self) -> str:
        """The id it was launched with."""
        ...

    @property
    def notice(self) -> str:
        """What it cannot do on this machine, and the remedy; empty if there is nothing to say."""
        ...

    async def wait(self) -> Exit:
        """Returns when its program has ended, and everything that it started with it."""
        ...

    async def signal(self, number: int) -> None:
        """Sends the signal to its first process; SIGKILL ends all of them. Nothing happens once it has ended."""
        ...


class Runtime(Protocol):
    """Runs containers. An `async with`, which may be entered again after it ended: nothing it started outlives it."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

    @property
    def limits(self) -> tuple[str, ...]:
        """What this machine does not allow, in words, and what that means; known once it was entered."""
        ...

    @property
    def is_isolated(self) -> bool:
        """Whether containers have file trees of their own; otherwise mounts are named by where they are."""
        ...

    async def lost(self) -> None:
        """Returns when the runtime has died, and every container with it."""
        ...

    async def start(self, launch: ContainerConfig) -> RunningContainer:
        """Starts a container; raises `ContainerError` if its program cannot be run."""
        ...

    async def exec(self, container: str, argv: tuple[str, ...], options: ProcessOptions) -> Process:
        """Runs another program inside a running container; raises `ContainerError`."""
        ...

    async def attach(self, container: str, options: ProcessOptions) -> Process:
        """The streams of a running container itself, from now on; raises `ContainerError`."""
        ...

    async def freeze(self, *, frozen: bool) -> None:
        """Stops every process of every container in its tracks, or lets them go on."""
        ...

    async def kill(self) -> None:
        """Dies at once, as in a power cut."""
        ...
