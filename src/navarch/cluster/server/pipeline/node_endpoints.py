"""The endpoints of subresources that lead to nodes: log, exec, attach, portforward, proxy. Each is imported with its first request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from navarch.cluster.server.pipeline.endpoints.call import RequestAuthorizer, ResourceCall
from navarch.cluster.server.pipeline.streams.node_access import NodeAccess, NodeDirectory
from navarch.cluster.server.wire.request import Reply

Endpoint = Callable[[ResourceCall], Awaitable[Reply]]


def stream_endpoints(nodes: NodeDirectory, authorizer: RequestAuthorizer) -> dict[tuple[str, str, str], Endpoint]:
    """What serves them, by group, resource and subresource."""
    reaching = NodeAccess(nodes, authorizer)
    return {
        ("", "pods", "log"): partial(_log, nodes),
        ("", "pods", "exec"): partial(_execute, reaching),
        ("", "pods", "attach"): partial(_attach, reaching),
        ("", "pods", "portforward"): partial(_forward, reaching),
        **{("", plural, "proxy"): partial(_proxy, nodes) for plural in ("pods", "services", "nodes")},
    }


async def _log(nodes: NodeDirectory, call: ResourceCall) -> Reply:
    from navarch.cluster.server.pipeline.streams.logs import log  # noqa: PLC0415 - see above

    return await log(nodes, call)


async def _execute(reaching: NodeAccess, call: ResourceCall) -> Reply:
    from navarch.cluster.server.pipeline.streams.remote_command import execute  # noqa: PLC0415 - see above

    return await execute(reaching, call)


async def _attach(reaching: NodeAccess, call: ResourceCall) -> Reply:
    from navarch.cluster.server.pipeline.streams.remote_command import attach  # noqa: PLC0415 - see above

    return await attach(reaching, call)


async def _forward(reaching: NodeAccess, call: ResourceCall) -> Reply:
    from navarch.cluster.server.pipeline.streams.port_forward import forward  # noqa: PLC0415 - see above

    return await forward(reaching, call)


async def _proxy(nodes: NodeDirectory, call: ResourceCall) -> Reply:
    from navarch.cluster.server.pipeline.proxy.proxy import proxy  # noqa: PLC0415 - see above

    return await proxy(nodes, call)
