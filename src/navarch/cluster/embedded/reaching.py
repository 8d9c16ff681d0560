"""The nodes of a cluster as its server reaches them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING

from navarch.cluster.nodes import runtime
from navarch.cluster.server.streams.nodes import ClusterNode, LogOptions, NodePage, Process, ProcessOptions

if TYPE_CHECKING:
    from navarch.cluster.nodes.node import Node

__all__ = ["ReachableNodes"]


class ReachableNodes:
    """Those of `nodes`, by name, that would answer now; see `Nodes`."""

    def __init__(self, nodes: Callable[[], Mapping[str, Node]]) -> None:
        self._nodes = nodes

    def find(self, name: str) -> ClusterNode | None:
        """See `Nodes`."""
        node = self._nodes().get(name)
        return _Streams(node) if node is not None and node.is_reachable else None


class _Streams:
    """See `ClusterNode`: the server and the nodes do not know each other's options."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def is_running(self, pod_uid: str, container: str = "") -> bool:
        return self._node.is_running(pod_uid, container)

    def logs(self, pod_uid: str, container: str, options: LogOptions) -> AsyncIterator[bytes]:
        wanted = runtime.LogOptions(
            follow=options.follow,
            previous=options.previous,
            since=options.since,
            tail=options.tail,
            timestamps=options.timestamps,
            limit_bytes=options.limit_bytes,
        )
        return self._node.logs(pod_uid, container, wanted)

    async def exec(self, pod_uid: str, container: str, argv: tuple[str, ...], options: ProcessOptions) -> Process:
        return await self._node.exec(pod_uid, container, argv, _process_options(options))

    async def attach(self, pod_uid: str, container: str, options: ProcessOptions) -> Process:
        return await self._node.attach(pod_uid, container, _process_options(options))

    async def forward(self, pod_uid: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await self._node.forward(pod_uid, port)

    def pod_address(self, pod_uid: str) -> str:
        return self._node.pod_address(pod_uid)

    @property
    def node_address(self) -> str:
        return self._node.address

    def page(self, path: str) -> NodePage:
        return NodePage(*self._node.page(path))


def _process_options(options: ProcessOptions) -> runtime.ProcessOptions:
    return runtime.ProcessOptions(stdin=options.stdin, stdout=options.stdout, stderr=options.stderr, tty=options.tty)
