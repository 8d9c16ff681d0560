"""An API server as a client sees it that speaks HTTP and nothing else, and what its answers say about Pod Security."""

from __future__ import annotations

import itertools
import json
import re
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

import rig
from navarch._base.clock import SystemClock
from navarch.cluster.embedded.components import ComponentOptions
from navarch.testing.cluster import Cluster, over_https

Json = dict[str, Any]

JSON = "application/json"
MERGE = "application/merge-patch+json"
LABEL = "pod-security.kubernetes.io/"
SECONDS = 30.0

_PATIENCE = aiohttp.ClientTimeout(total=60)
_VIOLATION = re.compile(r'(?:would )?violates? PodSecurity "([^"]+)": (.*)$', re.DOTALL)
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Answer:
    """An answer: its code, its body as JSON, and the texts of its warnings."""

    status: int
    body: Json
    warnings: tuple[str, ...]

    @property
    def verdict(self) -> Json:
        """What Pod Security says: the code and the reason, the controls that are violated, and those warned of."""
        found = {"code": self.status, "reason": self.body.get("reason", "") if self.status >= 400 else ""}
        return {
            **found,
            "violated": violated(self.body.get("message", "")) if self.status == 403 else "",
            "warned": [violated(text) for text in self.warnings if "PodSecurity" in text],
        }


def violated(text: str) -> str:
    """The level and the controls that a refusal or a warning names, without their details, which each server tells in
    its own words: `baseline:latest: hostPort, privileged`.
    """
    found = _VIOLATION.search(text)
    if found is None:
        return ""
    controls = re.sub(r" \((?:\"(?:[^\"\\]|\\.)*\"|[^()\"])*\)", "", found[2])
    return f"{found[1]}: {controls.replace('AppArmor profiles', 'AppArmor profile')}"


class Server:
    """A server, asked as its administrator."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self._url = url
        self._session = session

    async def ask(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        *,
        media_type: str = JSON,
        query: Mapping[str, str] | None = None,
    ) -> Answer:
        """The answer to one request."""
        headers = {"Content-Type": media_type, "Accept": JSON}
        data = None if body is None else json.dumps(body).encode()
        async with self._session.request(
            method, self._url + path, data=data, headers=headers, params=query or {}
        ) as response:
            warnings = tuple(map(_unquoted, response.headers.getall("Warning", ())))
            return Answer(response.status, json.loads(await response.read()), warnings)

    async def namespace(self, **labels: str) -> str:
        """A new namespace with these labels of Pod Security (`enforce="baseline"`, `warn_version="v1.25"`), and its path."""
        name = f"pod-security-{next(_numbers)}"
        answer = await self.ask("POST", "/api/v1/namespaces", namespace(name, labels))
        assert answer.status == 201, answer
        path = f"/api/v1/namespaces/{name}"
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        made = await self.ask("POST", f"{path}/serviceaccounts", account)
        assert made.status in {201, 409}, made
        return path

    async def label(self, path: str, **labels: str | None) -> Answer:
        """Sets labels of a namespace."""
        return await self.ask("PATCH", path, {"metadata": {"labels": _labels(labels)}}, media_type=MERGE)

    async def dry_run(self, path: str, pod: Json) -> Answer:
        """What would come of creating a pod."""
        return await self.ask("POST", f"{path}/pods", pod, query={"dryRun": "All"})

    async def until_refused(self, path: str, pod: Json) -> Answer:
        """The refusal of a pod, once admission has heard of the labels of its namespace."""
        clock = SystemClock()
        deadline = clock.monotonic() + SECONDS
        while (answer := await self.dry_run(path, pod)).status != 403:
            assert clock.monotonic() < deadline, f"expected a pod to be refused within {SECONDS} s, got {answer}"
            await clock.sleep(0.05)
        return answer


def namespace(name: str, labels: Mapping[str, str]) -> Json:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": _labels(labels)}}


def _labels(labels: Mapping[str, Any]) -> Json:
    return {f"{LABEL}{name.replace('_', '-')}": value for name, value in labels.items()}


def _unquoted(header: str) -> str:
    """The text of `299 - "text"`."""
    return header.split(" ", 2)[2][1:-1].replace('\\"', '"').replace("\\\\", "\\")


@asynccontextmanager
async def serving(real: rig.Cluster | None) -> AsyncIterator[Server]:
    """The real server, or a fresh embedded one over HTTPS, with controllers."""
    if real is not None:
        async with _connected(real.url, real.token, ssl.create_default_context(cafile=str(real.ca_file))) as server:
            yield server
        return
    async with over_https(ComponentOptions()) as cluster, serving_of(cluster) as server:
        yield server


@asynccontextmanager
async def serving_of(cluster: Cluster) -> AsyncIterator[Server]:
    """The server of an embedded cluster."""
    assert cluster.access is not None
    trust = ssl.create_default_context(cadata=cluster.access.authority.decode())
    async with _connected(cluster.access.url, cluster.access.token, trust) as server:
        yield server


@asynccontextmanager
async def _connected(url: str, token: str, trust: ssl.SSLContext) -> AsyncIterator[Server]:
    headers = {"Authorization": f"Bearer {token}"}
    connector = aiohttp.TCPConnector(ssl=trust)
    async with aiohttp.ClientSession(connector=connector, headers=headers, timeout=_PATIENCE) as session:
        yield Server(url, session)
