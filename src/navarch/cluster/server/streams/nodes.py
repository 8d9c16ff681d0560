"""What the server asks of the nodes of its cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Final, NamedTuple, Protocol

import msgspec

__all__ = ["NO_NODES", "ClusterNode", "LogOptions", "NodePage", "Nodes", "PodStreams", "Process", "ProcessOptions"]


class NodePage(NamedTuple):
    """What a node answers over HTTP."""

    status: int
    content_type: str
    body: bytes


class LogOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Which part of a log. `previous` is the container before the present one."""

    follow: bool = False
    previous: bool = False
    since: datetime | None = None
    tail: int | None = None
    timestamps: bool = False
    limit_bytes: int | None = None


class ProcessOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Which streams of a process are wanted. With `tty` there is one terminal for all of them."""

    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False


class Process(Protocol):
    """A program inside a container. Whoever got it calls `close`."""

    def stdout(self) -> AsyncIterator[bytes]:
        """What it writes, until it closes the stream; nothing if it was not wanted."""
        ...

    def stderr(self) -> AsyncIterator[bytes]:
        """The same for errors."""
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
        """Lets go of it, and ends it if it was started for us. May be called twice."""
        ...


class PodStreams(Protocol):
    """The containers of one node. Pods are named by uid.

    What cannot be had raises `ContainerError`, in the words of Kubernetes' node.
    """

    def is_running(self, pod_uid: str, container: str = "") -> bool:
        """Whether that container of the pod runs, or, with none named, whether the pod is on the node."""
        ...

    def logs(self, pod_uid: str, container: str, options: LogOptions) -> AsyncIterator[bytes]:
        """The log in pieces of whole lines; with `follow` until the container has ended."""
        ...

    async def exec(self, pod_uid: str, container: str, argv: tuple[str, ...], options: ProcessOptions) -> Process:
        """Runs a program inside the container."""
        ...

    async def attach(self, pod_uid: str, container: str, options: ProcessOptions) -> Process:
        """The streams of the container's own program."""
        ...

    async def forward(self, pod_uid: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to that port of the pod."""
        ...


class ClusterNode(PodStreams, Protocol):
    """One node, with what it has beside its containers."""

    def pod_address(self, pod_uid: str) -> str:
        """Where the node has put the pod; empty if it is not on the node."""
        ...

    @property
    def node_address(self) -> str:
        """The node's own address."""
        ...

    def page(self, path: str) -> NodePage:
        """What the node itself answers."""
        ...


class Nodes(Protocol):
    """The nodes that the server can reach."""

    def find(self, name: str) -> ClusterNode | None:
        """The node of that name; None if it cannot be reached."""
        ...


class _NoNodes:
    def find(self, name: str) -> ClusterNode | None:  # noqa: ARG002 - there is none
        return None


NO_NODES: Final[Nodes] = _NoNodes()
"""For a server that reaches none."""
