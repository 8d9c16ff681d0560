"""What can be had of the containers of a node: logs, commands and ports as byte streams. A node offers it, and the server
carries it to its clients.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Literal, NamedTuple, Protocol

import msgspec

LogStream = Literal["All", "Stdout", "Stderr"]


class LogOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Which part of a log, as in Kubernetes' PodLogOptions. `previous` is the container before the present one."""

    follow: bool = False
    previous: bool = False
    since: datetime | None = None
    tail: int | None = None
    timestamps: bool = False
    limit_bytes: int | None = None
    stream: LogStream = "All"


class ProcessOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Which streams of a process are wanted. With `tty` there is one terminal for all of them."""

    stdin: bool = False
    stdout: bool = True
    stderr: bool = True
    tty: bool = False


class ContainerProcess(Protocol):
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


class PodStreams(Protocol):
    """The containers of one node. Pods are named by uid.

    What cannot be had raises `ContainerError`, in the words of Kubernetes' node: there is no such pod or container, or it
    does not run (yet).
    """

    def is_running(self, pod_uid: str, container: str = "") -> bool:
        """Whether that container of the pod runs, or, with none named, whether the pod is on the node."""
        ...

    def logs(self, pod_uid: str, container: str, options: LogOptions) -> AsyncIterator[bytes]:
        """The log in pieces of whole lines; with `follow` until the container has ended. Close it to stop early."""
        ...

    async def exec(
        self, pod_uid: str, container: str, argv: tuple[str, ...], options: ProcessOptions
    ) -> ContainerProcess:
        """Runs a program inside the container."""
        ...

    async def attach(self, pod_uid: str, container: str, options: ProcessOptions) -> ContainerProcess:
        """The streams of the container's own program."""
        ...

    async def forward(self, pod_uid: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to that port of the pod."""
        ...


class NodePage(NamedTuple):
    """What a node answers over HTTP."""

    status: int
    content_type: str
    body: bytes
