"""The nodes of a cluster as its server reaches them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from navarch.cluster.server.pipeline.streams.node_access import ClusterNode

if TYPE_CHECKING:
    from navarch.cluster.nodes.kubelet import Kubelet

__all__ = ["ReachableNodes"]


class ReachableNodes:
    """Those of `nodes`, by name, that would answer now; see `Nodes`."""

    def __init__(self, nodes: Callable[[], Mapping[str, Kubelet]]) -> None:
        self._nodes = nodes

    def find(self, name: str) -> ClusterNode | None:
        """See `Nodes`."""
        node = self._nodes().get(name)
        return node if node is not None and node.is_reachable else None
