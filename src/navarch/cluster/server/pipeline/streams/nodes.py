"""What the server asks of the nodes of its cluster."""

from __future__ import annotations

from typing import Final, Protocol

from navarch.cluster.streams import NodePage, PodStreams

__all__ = ["NO_NODES", "ClusterNode", "Nodes"]


class ClusterNode(PodStreams, Protocol):
    """One node, with what it has beside its containers."""

    def pod_address(self, pod_uid: str) -> str:
        """Where the node has put the pod; empty if it is not on the node."""
        ...

    @property
    def address(self) -> str:
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
