"""The real server, asked the same."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from http.client import HTTPSConnection
from urllib.parse import urlsplit

import rig
from cluster.access.asking import Answer, Json, Step
from navarch.cluster.server.pipeline.authentication.signing import SigningKey


class RealServer:
    """A rig's API server, with the key that it signs tokens with."""

    def __init__(self, cluster: rig.Cluster) -> None:
        self.key = SigningKey.from_pem((cluster.folder / "certificates/service-accounts.key").read_bytes())
        self.tokens = {"$admin": cluster.token}
        self._context = ssl.create_default_context(cafile=str(cluster.ca_file))
        self._address = urlsplit(cluster.url).netloc
        self._own = threading.local()
        self._all: list[HTTPSConnection] = []

    async def ask(self, step: Step, body: Json | None, token: str) -> Answer:
        return await asyncio.to_thread(self.asked, step, body, token)

    def asked(self, step: Step, body: Json | None, token: str) -> Answer:
        """The same without a loop."""
        kind = "application/merge-patch+json" if step.method == "PATCH" else "application/json"
        bearer = (("Authorization", f"Bearer {token}"),) if token else ()
        connection = self._connection()
        data = b"" if body is None else json.dumps(body).encode()
        connection.putrequest(step.method, step.path)
        for name, value in (*bearer, ("Content-Type", kind), ("Content-Length", str(len(data))), *step.headers):
            connection.putheader(name, value)
        connection.endheaders(data)
        answer = connection.getresponse()
        content = answer.read()
        is_json = "json" in (answer.getheader("Content-Type") or "")
        return answer.status, json.loads(content) if is_json else content.decode()

    def close(self) -> None:
        """Ends all connections."""
        for connection in self._all:
            connection.close()

    def _connection(self) -> HTTPSConnection:
        """One for each thread; it connects again by itself."""
        found: HTTPSConnection | None = getattr(self._own, "connection", None)
        if found is None:
            found = self._own.connection = HTTPSConnection(self._address, context=self._context, timeout=30)
            self._all.append(found)
        return found
