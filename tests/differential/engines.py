"""Both servers, asked in the same way."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import parse_qs, quote, unquote, urlencode

import aiohttp
from yarl import URL

import rig
from differential.steps import JSON, Step
from navarch.cluster.embedded.cluster import EmbeddedCluster
from navarch.cluster.server.wire.request import ApiRequest

USER_AGENT = "fuzzer/1"
_PATIENCE = aiohttp.ClientTimeout(total=60)


@dataclass(frozen=True)
class Answer:
    """What came back; the body is JSON, or a list of it for a watch, or else a text."""

    status: int
    warnings: tuple[str, ...]
    content_type: str
    body: Any


class UnansweredError(Exception):
    """The server has closed the connection instead: its handler broke down."""


class Engine(Protocol):
    """A server."""

    async def ask(self, step: Step) -> Answer:
        """The answer to a step in which nothing is named any more."""
        ...


class Embedded:
    """The embedded server, without a network."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster

    async def ask(self, step: Step) -> Answer:
        headers = {
            "authorization": f"Bearer {self._cluster.token}",
            "user-agent": USER_AGENT,
            "accept": step.accept,
            "content-type": step.media_type,
            **{name.lower(): value for name, value in step.impersonating},
        }
        request = ApiRequest(
            method=step.method,
            path=unquote(step.path),
            query=parse_qs(urlencode(step.query), keep_blank_values=True),
            headers=headers,
            body=step.text.encode(),
        )
        reply = await self._cluster.server.handle(request)
        if reply.stream is None:
            return _answer(reply.status, reply.warnings, reply.content_type, reply.body)
        try:
            text = b"".join([chunk async for chunk in reply.stream])
        finally:
            await reply.stream.aclose()  # type: ignore[attr-defined]  # the server gives streams that can be closed
        return _answer(reply.status, reply.warnings, reply.content_type, text, is_stream=True)


class Real:
    """The rig's API server."""

    def __init__(self, cluster: rig.Cluster, session: aiohttp.ClientSession) -> None:
        self._url = cluster.url
        self._session = session

    async def ask(self, step: Step) -> Answer:
        try:
            return await self._asked(step)
        except aiohttp.ServerDisconnectedError as error:
            raise UnansweredError(str(step)) from error

    async def _asked(self, step: Step) -> Answer:
        query = f"?{urlencode(step.query)}" if step.query else ""
        url = URL(f"{self._url}{quote(step.path)}{query}", encoded=True)
        headers = {"Accept": step.accept, "Content-Type": step.media_type, **dict(step.impersonating)}
        data = step.text.encode()
        async with self._session.request(step.method, url, data=data, headers=headers) as response:
            warnings = [_unquoted(each) for each in response.headers.getall("Warning", ())]
            content_type = response.headers.get("Content-Type", "")
            is_stream = ("watch", "true") in step.query and response.status == 200
            return _answer(response.status, warnings, content_type, await response.read(), is_stream=is_stream)


@asynccontextmanager
async def real(cluster: rig.Cluster) -> AsyncIterator[Real]:
    """The rig's server as its administrator."""
    context = ssl.create_default_context(cafile=str(cluster.ca_file))
    headers = {"Authorization": f"Bearer {cluster.token}", "User-Agent": USER_AGENT}
    connector = aiohttp.TCPConnector(ssl=context, limit=0)
    async with aiohttp.ClientSession(connector=connector, headers=headers, timeout=_PATIENCE) as session:
        yield Real(cluster, session)


def _unquoted(header: str) -> str:
    """The text of `299 - "text"`."""
    return header.split(" ", 2)[2][1:-1].replace('\\"', '"').replace("\\\\", "\\")


def _answer(status: int, warnings: list[str], content_type: str, body: bytes, *, is_stream: bool = False) -> Answer:
    content_type = content_type.partition(";")[0]
    if is_stream:
        return Answer(status, tuple(warnings), content_type, [json.loads(line) for line in body.splitlines() if line])
    decoded = json.loads(body) if content_type == JSON and body else body.decode()
    return Answer(status, tuple(warnings), content_type, decoded)
