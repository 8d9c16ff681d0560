"""The subresources of pods that lead to their nodes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from navarch.cluster.server.endpoints.call import Call
from navarch.cluster.server.request import Reply
from navarch.cluster.server.streams.commands import attach, execute
from navarch.cluster.server.streams.logs import log
from navarch.cluster.server.streams.nodes import Nodes
from navarch.cluster.server.streams.ports import forward
from navarch.cluster.server.streams.reaching import Authorizer, Reaching

__all__ = ["stream_endpoints"]

Endpoint = Callable[[Call], Awaitable[Reply]]


def stream_endpoints(nodes: Nodes, authorizer: Authorizer) -> dict[tuple[str, str, str], Endpoint]:
    """What serves them, by group, resource and subresource."""
    reaching = Reaching(nodes, authorizer)
    return {
        ("", "pods", "log"): partial(log, nodes),
        ("", "pods", "exec"): partial(execute, reaching),
        ("", "pods", "attach"): partial(attach, reaching),
        ("", "pods", "portforward"): partial(forward, reaching),
    }
