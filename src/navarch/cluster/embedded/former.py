"""Nodes that a cluster had before it was started with fewer of them."""

from __future__ import annotations

import logging
import re
from contextlib import suppress
from typing import Final

from navarch.client import Client
from navarch.cluster.nodes.node_status import RUNTIME
from navarch.errors import NotFound
from navarch.k8s.core.v1 import Node

__all__ = ["node_name", "remove_former_nodes"]

_NAME: Final = re.compile(r"node-([1-9]\d*)")

_log = logging.getLogger("navarch.cluster")


def node_name(number: int) -> str:
    """What the process nodes of a cluster are called; the first is 1."""
    return f"node-{number}"


async def remove_former_nodes(client: Client, count: int) -> None:
    """Removes those beyond the first `count`, which nobody will start. Their pods go elsewhere, as with any node that is
    deleted; their volumes stay where they are, for when they come back.
    """
    for node in await client.list(Node):
        if _is_former(node, count):
            _log.info("node %s is removed: the cluster has %d nodes now", node.name, count)
            with suppress(NotFound):
                await client.delete(Node, node.name)


def _is_former(node: Node, count: int) -> bool:
    """Whether it was one of ours: others may have written nodes of their own."""
    found, info = _NAME.fullmatch(node.name), node.status.node_info
    return (
        found is not None and int(found[1]) > count and info is not None and info.container_runtime_version == RUNTIME
    )
