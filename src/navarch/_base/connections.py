"""The connection pool of HTTP clients."""

from __future__ import annotations

from typing import Any

import aiohttp


class Connector(aiohttp.TCPConnector):
    """A connection pool that aborts a connection at once if it cannot be reused.

    aiohttp closes TLS and waits up to 30 s for the peer to do the same, but a closed session does not wait for that. An
    abandoned watch or a cancelled request would then keep its socket longer than its client, and leave it to the garbage
    collector at the end of the event loop.
    """

    def _release(self, key: Any, protocol: Any, *, should_close: bool = False) -> None:
        if (should_close or protocol.should_close or self.force_close) and protocol.transport is not None:
            protocol.transport.abort()
        super()._release(key, protocol, should_close=should_close)
