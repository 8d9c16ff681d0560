"""What a node asks of whatever runs its containers, and what it offers to those who look into them.

`Runtime` is below the pods: it starts, signals and enters containers. `PodStreams` is above them: logs, exec, attach and
port-forward of one node as byte streams, for the API server to carry to its clients.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Literal, NamedTuple, Protocol, Self

import msgspec

__all__ = [
    "Account",
    "Exit",
    "Launch",
    "LogOptions",
    "LogStream",
    "Mount",
    "PodStreams",
    "Process",
    "ProcessOptions",
    "Runtime",
    "Started",
]

LogStream = Literal["All", "Stdout", "Stderr"]


class Exit(NamedTuple):
    """How a program ended. One that was killed by a signal has the code 128 + its number, as a shell would say."""

    code: int
    signal: int = 0


class Mount(msgspec.Struct, frozen=True):
    """A file or folder of this machine at a place of the container's own tree."""

    source: Path
    target: str
    read_only: bool = False


class Account(msgspec.Struct, frozen=True):
    """As whom a program runs; None leaves it to whoever runs the cluster."""

    user: int | None = None
    group: int | None = None
    groups: tuple[int, ...] = ()


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """All that a container begins with. `id` is of this one start; another start is another container."""

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


class Started(Protocol):
    """A container that was started."""

    @property
    def id(self) -> str:
        """The id it was launched with."""
        ...

    async def wait(self) -> Exit:
        """Returns when its program has ended, and everything that it started with it."""
        ...

    async def signal(self, number: int) -> None:
        """Sends the signal to its first process; SIGKILL ends all of them. Nothing happens once it has ended."""
        ...


class ProcessOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Which streams of a process are wanted. With `tty` there is one terminal for all of them."""

    stdin: bool = False
    stdout: bool = True
    stderr: bool = True
    tty: bool = False


class Process(Protocol):
    """A program inside a container, with its streams in our hands. Whoever got it calls `close`."""

    def stdout(self) -> AsyncIterator[bytes]:
        """What it writes, until it closes the stream; to be read at most once. Empty if it was not wanted."""
        ...

    def stderr(self) -> AsyncIterator[bytes]:
        """The same for errors; with a terminal there is nothing."""
        ...

    async def write(self, data: bytes) -> None:
        """Gives it input, waiting while it does not read; what it no longer wants is dropped."""
        ...

    async def close_stdin(self) -> None:
        """There is no more input."""
        ...

    async def resize(self, width: int, height: int) -> None:
        """Its terminal has another size now; nothing happens without one."""
        ...

    async def wait(self) -> int:
        """Its exit code, when it has ended."""
        ...

    async def close(self) -> None:
        """Lets go of its streams, and ends it if it was started for us (exec, but not attach). May be called twice."""
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

    async def lost(self) -> None:
        """Returns when the runtime has died, and every container with it."""
        ...

    async def start(self, launch: Launch) -> Started:
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


class LogOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Which part of a log, as in Kubernetes' PodLogOptions. `previous` is the container before the present one."""

    follow: bool = False
    previous: bool = False
    since: datetime | None = None
    tail: int | None = None
    timestamps: bool = False
    limit_bytes: int | None = None
    stream: LogStream = "All"


class PodStreams(Protocol):
    """What can be had of the containers of one node. Pods are named by uid.

    All raise `ContainerError` where there is no such pod or container, or where it does not run (yet); its text is what
    Kubernetes' node would say.
    """

    def logs(self, pod_uid: str, container: str, options: LogOptions) -> AsyncIterator[bytes]:
        """The log in pieces of whole lines; with `follow` until the container has ended. Close it to stop early."""
        ...

    async def exec(self, pod_uid: str, container: str, argv: tuple[str, ...], options: ProcessOptions) -> Process:
        """Runs a program inside the container."""
        ...

    async def attach(self, pod_uid: str, container: str, options: ProcessOptions) -> Process:
        """The streams of the container itself."""
        ...

    async def forward(self, pod_uid: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to that port of the pod."""
        ...
