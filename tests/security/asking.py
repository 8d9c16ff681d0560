"""Requests over HTTPS to a fresh cluster, as its administrator or as anybody else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.client import HTTPSConnection
from typing import Any, NamedTuple

import msgspec

from navarch.client import Config
from navarch.testing.cluster import over_https

Json = dict[str, Any]
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
_SECONDS = 60.0


class Answer(NamedTuple):
    """The code of an answer, and its body."""

    code: int
    body: Any

    @property
    def message(self) -> str:
        return str(self.body.get("message", ""))


class Asker:
    """A cluster that is asked; `user` is whom the administrator acts as."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self._connection = HTTPSConnection(
            config.server.removeprefix("https://"), context=config.ssl_context(), timeout=_SECONDS
        )

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        media_type: str = "application/json",
        *,
        user: str = "",
        accept: str = "application/json",
    ) -> Answer:
        """One request; a body of bytes is sent as it is."""
        headers = {"Authorization": f"Bearer {self.config.token}", "Content-Type": media_type, "Accept": accept}
        if user:
            headers["Impersonate-User"] = user
        data = body if body is None or isinstance(body, bytes) else msgspec.json.encode(body)
        self._connection.request(method, path, data, headers)
        with self._connection.getresponse() as answer:
            content = answer.read()
        is_json = (answer.headers["Content-Type"] or "").startswith("application/json")
        return Answer(answer.status, msgspec.json.decode(content) if is_json else content)

    def grant(self, user: str, *rules: tuple[str, str, str]) -> None:
        """Allows a user everywhere what the rules say: groups, resources and verbs, each with commas."""
        listed = [
            {"apiGroups": groups.split(","), "resources": resources.split(","), "verbs": verbs.split(",")}
            for groups, resources, verbs in rules
        ]
        subject = {"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
        reference = {"kind": "ClusterRole", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
        named = {"metadata": {"name": user}}
        assert self.ask("POST", f"{RBAC}/clusterroles", {**named, "rules": listed}).code == 201
        binding = {**named, "subjects": [subject], "roleRef": reference}
        assert self.ask("POST", f"{RBAC}/clusterrolebindings", binding).code == 201

    def close(self) -> None:
        self._connection.close()


@asynccontextmanager
async def asked_cluster() -> AsyncIterator[Asker]:
    """A fresh cluster."""
    async with over_https() as cluster:
        assert cluster.access is not None
        asker = Asker(cluster.access.config(cluster.access.token))
        try:
            yield asker
        finally:
            asker.close()
