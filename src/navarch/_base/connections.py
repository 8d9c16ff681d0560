"""Connections of HTTP clients."""

from __future__ import annotations

from typing import Any

import aiohttp

__all__ = ["Connector"]


class Connector(aiohttp.TCPConnector):
    """Pools connections, and drops one that cannot be used again at once.

    aiohttp says goodbye by TLS and waits up to 30 s for the other side to do the same; nobody waits for that when the
    session is closed. A watch that was left, or a request that was cancelled, then held its socket longer than its
    client and, at the end of the event loop, left it to the garbage collection.
    """

    def _release(self, key: Any, protocol: Any, *, should_close: bool = False) -> None:
        if (should_close or protocol.should_close or self.force_close) and protocol.transport is not None:
            protocol.transport.abort()
        super()._release(key, protocol, should_close=should_close)
