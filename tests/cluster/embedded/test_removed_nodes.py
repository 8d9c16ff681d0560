"""A cluster that is started with fewer nodes than it had."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from navarch.cluster.embedded.control_plane import delete_removed_nodes, node_name
from navarch.cluster.nodes.node_status import Profile, node_object, register
from navarch.k8s.core.v1 import Node
from navarch.testing.cluster import Cluster

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.cluster(controllers=False)
async def test_nodes_that_nobody_starts_any_more_are_removed(cluster: Cluster) -> None:
    """Only those that were such nodes: what others have written is theirs."""
    ours = [Profile(name=node_name(number)) for number in (1, 2, 3, 11)]
    others = [Profile(name="node-4", runtime="containerd://2"), Profile(name="node-5-simulated"), Profile(name="mine")]
    for profile in (*ours, *others):
        await register(cluster.client, node_object(profile, NOW))
    await delete_removed_nodes(cluster.client, 2)
    left = {node.name for node in await cluster.client.list(Node)}
    assert left == {"node-1", "node-2", *(profile.name for profile in others)}
