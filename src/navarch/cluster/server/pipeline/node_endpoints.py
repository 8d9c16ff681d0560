"""The subresources that lead to nodes and to what runs there. What serves them is imported when it is first asked for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from navarch.cluster.server.pipeline.endpoints.call import Call
from navarch.cluster.server.pipeline.streams.node_access import Authorizer, Nodes, Reaching
from navarch.cluster.server.wire.request import Reply

Endpoint = Callable[[Call], Awaitable[Reply]]


def stream_endpoints(nodes: Nodes, authorizer: Authorizer) -> dict[tuple[str, str, str], Endpoint]:
    """What serves them, by group, resource and subresource."""
    reaching = Reaching(nodes, authorizer)
    return {
        ("", "pods", "log"): partial(_log, nodes),
        ("", "pods", "exec"): partial(_execute, reaching),
        ("", "pods", "attach"): partial(_attach, reaching),
        ("", "pods", "portforward"): partial(_forward, reaching),
        **{("", plural, "proxy"): partial(_proxy, nodes) for plural in ("pods", "services", "nodes")},
    }


async def _log(nodes: Nodes, call: Call) -> Reply:
    from navarch.cluster.server.pipeline.streams.logs import log  # noqa: PLC0415 - see above

    return await log(nodes, call)


async def _execute(reaching: Reaching, call: Call) -> Reply:
    from navarch.cluster.server.pipeline.streams.remote_command import execute  # noqa: PLC0415 - see above

    return await execute(reaching, call)


async def _attach(reaching: Reaching, call: Call) -> Reply:
    from navarch.cluster.server.pipeline.streams.remote_command import attach  # noqa: PLC0415 - see above

    return await attach(reaching, call)


async def _forward(reaching: Reaching, call: Call) -> Reply:
    from navarch.cluster.server.pipeline.streams.port_forward import forward  # noqa: PLC0415 - see above

    return await forward(reaching, call)


async def _proxy(nodes: Nodes, call: Call) -> Reply:
    from navarch.cluster.server.pipeline.proxy.proxy import proxy  # noqa: PLC0415 - see above

    return await proxy(nodes, call)
