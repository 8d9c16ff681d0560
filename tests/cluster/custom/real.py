"""Asks a real API server."""

from __future__ import annotations

import http.client
import json
import ssl
from typing import Any
from urllib.parse import urlsplit

import rig

__all__ = ["Real"]


class Real:
    """A real API server over one connection."""

    def __init__(self, cluster: rig.Cluster) -> None:
        address = urlsplit(cluster.url)
        trust = ssl.create_default_context(cafile=str(cluster.ca_file))
        self._token = cluster.token
        self._connection = http.client.HTTPSConnection(address.hostname or "", address.port, context=trust)

    def close(self) -> None:
        """Ends the connection."""
        self._connection.close()

    async def __call__(
        self, method: str, path: str, body: Any = None, *, media_type: str = "application/json", accept: str = ""
    ) -> tuple[int, dict[str, Any]]:
        """The status code and the answer."""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": media_type, "Accept": accept}
        self._connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = self._connection.getresponse()
        text = response.read()
        return response.status, json.loads(text) if text.startswith(b"{") else {}
