"""`PodStreams`: logs, exec, attach and port-forward of the containers of a node. Nodes implement it, the server calls it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Literal, NamedTuple, Protocol

import msgspec

LogStream = Literal["All", "Stdout", "Stderr"]


class LogOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Selects a part of a log, as Kubernetes' PodLogOptions. `previous` selects the container before the last restart."""

    follow: bool = False
    previous: bool = False
    since: datetime | None = None
    tail: int | None = None
    timestamps: bool = False
    limit_bytes: int | None = None
    stream: LogStream = "All"


class ProcessOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Selects the streams of a process. With `tty` one terminal carries all of them."""

    stdin: bool = False
    stdout: bool = True
    stderr: bool = True
    tty: bool = False


class ContainerProcess(Protocol):
    """A process inside a container, with its streams. The caller must call `close`."""

    def stdout(self) -> AsyncIterator[bytes]:
        """Yields its output until it closes the stream; iterate at most once. Empty if it was not requested."""
        ...

    def stderr(self) -> AsyncIterator[bytes]:
        """Yields its errors; empty with a terminal."""
        ...

    async def write(self, data: bytes) -> None:
        """Writes to its stdin; waits while it does not read, and drops input after it closed stdin."""
        ...

    async def close_stdin(self) -> None:
        """Closes its stdin."""
        ...

    async def resize(self, width: int, height: int) -> None:
        """Resizes its terminal, if it has one."""
        ...

    async def wait(self) -> int:
        """Waits for its end; returns the exit code."""
        ...

    async def close(self) -> None:
        """Closes its streams, and kills it if `exec` started it. May be called twice."""
        ...


class PodStreams(Protocol):
    """The containers of one node. Pods are named by uid.

    Methods raise `ContainerError` with the kubelet's text if the pod or container does not exist or does not run.
    """

    def is_running(self, pod_uid: str, container: str = "") -> bool:
        """Returns True if that container of the pod runs, or, without a name, if the pod is on the node."""
        ...

    def logs(self, pod_uid: str, container: str, options: LogOptions) -> AsyncIterator[bytes]:
        """Yields the log in chunks of complete lines; with `follow` until the container ends. Close it to stop early."""
        ...

    async def exec(
        self, pod_uid: str, container: str, argv: tuple[str, ...], options: ProcessOptions
    ) -> ContainerProcess:
        """Starts a process inside the container."""
        ...

    async def attach(self, pod_uid: str, container: str, options: ProcessOptions) -> ContainerProcess:
        """Returns the streams of the container's main process."""
        ...

    async def forward(self, pod_uid: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connects to that port of the pod."""
        ...


class NodePage(NamedTuple):
    """The HTTP response of a node."""

    status: int
    content_type: str
    body: bytes
