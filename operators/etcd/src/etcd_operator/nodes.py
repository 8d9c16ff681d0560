"""What became of the nodes of silent members."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from etcd_operator.observation import Lost
from navarch import Context
from navarch.errors import ApiError
from navarch.k8s.core.v1 import Node

__all__ = ["Nodes"]

_KNOWN_FOR: Final = timedelta(seconds=5)
_SILENT: Final = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})


class Nodes:
    """Asks the API server of a node, but not more often than every few seconds, for however many members.

    Where that is not allowed, nothing is known of nodes, and members are waited for as long as for any other.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[datetime, Lost]] = {}

    async def lost(self, ctx: Context, name: str) -> Lost:
        """Whether the node is gone, or cannot be reached."""
        now = ctx.now()
        self._known = {each: known for each, known in self._known.items() if now - known[0] < _KNOWN_FOR}
        if name not in self._known:
            self._known[name] = now, await _asked(name, ctx)
        return self._known[name][1]


async def _asked(name: str, ctx: Context) -> Lost:
    try:
        node = await ctx.get(Node, name)
    except ApiError:
        return ""
    if node is None:
        return "gone"
    is_silent = any(taint.key in _SILENT and taint.effect == "NoExecute" for taint in node.spec.taints or ())
    return "unreachable" if is_silent else ""
