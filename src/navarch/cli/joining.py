"""Waiting for the nodes of a cluster that was just started."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from navarch.api import truncate_to_seconds
from navarch.cli.nodes import node_rows
from navarch.cluster.embedded.cluster_folder import ClusterFolder
from navarch.cluster.embedded.components import POWER, POWER_OFF
from navarch.errors import ConfigError

if TYPE_CHECKING:
    from navarch.client import Client
    from navarch.k8s.core.v1 import Node

__all__ = ["joined"]

_LOOK_SECONDS = 0.05


async def joined(client: Client, folder: ClusterFolder, since: datetime | None, seconds: float) -> list[dict[str, Any]]:
    """What is shown of the nodes once all of them are ready, but for those that were switched off.

    What a node said of itself before `since`, it said before the cluster was started again. Raises `ConfigError` if it
    takes longer.
    """
    from navarch.k8s.core.v1 import Node  # noqa: PLC0415 - see places.asked

    count, limit = folder.nodes, client.clock.monotonic() + seconds
    while True:
        there = [node.name for node in await client.list(Node) if _has_joined(node, since)]
        if len(there) >= count:
            return await node_rows(client)
        if client.clock.monotonic() > limit:
            raise ConfigError(
                f"the cluster is up, but of its {count} nodes {len(there)} are ready after {seconds:g} s; "
                f"{folder.log} may say why"
            )
        await client.clock.sleep(_LOOK_SECONDS)


def _has_joined(node: Node, since: datetime | None) -> bool:
    if node.annotations.get(POWER) == POWER_OFF:
        return True
    return any(
        known.type == "Ready" and known.status == "True" and _is_news(known.last_heartbeat_time, since)
        for known in node.status.conditions or []
    )


def _is_news(said: datetime | None, since: datetime | None) -> bool:
    return since is None or (said is not None and said >= truncate_to_seconds(since))
