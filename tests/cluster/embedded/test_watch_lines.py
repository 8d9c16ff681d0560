"""An event is written once for each form in which it is watched, however many watch."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from navarch._base.clock import ManualClock
from navarch.cluster.embedded.cluster import EmbeddedCluster
from navarch.cluster.server.objects import watches
from navarch.cluster.server.objects.response_bodies import shaped
from navarch.cluster.server.wire.request import ApiRequest
from navarch.k8s.core.v1 import ConfigMap

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
MANY = 30
SECONDS = 60.0


async def opened(cluster: EmbeddedCluster, accept: str, include: str = "") -> AsyncIterator[bytes]:
    """The chunks of a watch that has begun."""
    query = {"watch": ["true"], **({"includeObject": [include]} if include else {})}
    headers = {"authorization": f"Bearer {cluster.token}", "accept": accept}
    request = ApiRequest(method="GET", path="/api/v1/namespaces/default/configmaps", query=query, headers=headers)
    reply = await cluster.server.handle(request)
    assert reply.stream is not None
    return reply.stream


async def line_of(stream: AsyncIterator[bytes], name: str) -> dict[str, Any]:
    """The line about the object of that name."""
    async for chunk in stream:
        for line in chunk.splitlines():
            if f'"name":"{name}"'.encode() in line:
                found: dict[str, Any] = json.loads(line)
                return found
    raise AssertionError(f"expected a line about {name}, got the end of the watch")


async def test_event_is_written_once_for_each_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table takes long to write for a large object: it was written for each watch of a table."""
    made: list[str] = []

    def counting(data: bytes, resource: Any, form: Any, request: ApiRequest) -> bytes:
        if b'"name":"a"' in data:
            made.append(f"{form.kind} {request.parameter('includeObject')}".strip())
        return shaped(data, resource, form, request)

    monkeypatch.setattr(watches, "shaped", counting)
    async with EmbeddedCluster(clock=ManualClock()) as cluster, asyncio.timeout(SECONDS):
        forms = [(TABLE, ""), (TABLE, "Object"), (METADATA, "")] * MANY
        streams = [await opened(cluster, *form) for form in forms]
        reading = asyncio.gather(*(line_of(stream, "a") for stream in streams))
        await asyncio.sleep(0)  # noqa: TID251 - one turn, so that all wait
        await cluster.client().create(ConfigMap(name="a", namespace="default", data={"x": "y"}))
        lines = await reading
        for stream in streams:
            await stream.aclose()  # type: ignore[attr-defined]  # the server gives streams that can be closed
    assert sorted(made) == ["PartialObjectMetadata", "Table", "Table Object"]
    assert [line["object"]["kind"] for line in lines] == ["Table", "Table", "PartialObjectMetadata"] * MANY
    assert {line["object"]["rows"][0]["object"]["kind"] for line in lines[1::3]} == {"ConfigMap"}


async def test_only_the_first_table_of_each_watch_has_columns() -> None:
    """Also where the line was written for another watch that is further."""
    async with EmbeddedCluster(clock=ManualClock()) as cluster, asyncio.timeout(SECONDS):
        client = cluster.client()
        first = await opened(cluster, TABLE)
        has_columns = []
        for name in ("a", "b"):
            await client.create(ConfigMap(name=name, namespace="default"))
            has_columns.append(bool((await line_of(first, name))["object"]["columnDefinitions"]))
        second = await opened(cluster, TABLE)
        await line_of(second, "b")
        third = await opened(cluster, TABLE)
        has_columns.append(bool((await line_of(third, "a"))["object"]["columnDefinitions"]))
        for stream in (first, second, third):
            await stream.aclose()  # type: ignore[attr-defined]  # the server gives streams that can be closed
    assert has_columns == [True, False, True]


async def test_lines_that_are_kept_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four thousand lines of a megabyte would be four gigabytes."""
    made = []

    class Noted(watches.WatchLines):
        def __init__(self) -> None:
            super().__init__()
            made.append(self)

    monkeypatch.setattr(watches, "_KEPT_BYTES", 5000)
    monkeypatch.setattr(watches, "WatchLines", Noted)
    async with EmbeddedCluster(clock=ManualClock()) as cluster, asyncio.timeout(SECONDS):
        stream = await opened(cluster, "application/json")
        for number in range(10):
            await cluster.client().create(ConfigMap(name=f"a{number}", namespace="default", data={"x": "y" * 1000}))
            await line_of(stream, f"a{number}")
        await stream.aclose()  # type: ignore[attr-defined]  # the server gives streams that can be closed
    (lines,) = made
    assert 0 < sum(map(len, lines._known.values())) == lines._bytes <= 5000
