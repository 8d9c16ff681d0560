"""A Scale as a table, as `kubectl get deployment web --subresource=scale` asks for it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from navarch.api import Dynamic
from navarch.client import Client, Request, Transport


async def _asked(client: Client, form: str, **query: str) -> dict[str, Any]:
    kept: list[Transport] = []

    def keep(transport: Transport) -> Transport:
        kept.append(transport)
        return transport

    client.through(keep)
    path = f"/apis/apps/v1/namespaces/{client.options.namespace}/deployments/web/scale"
    accept = {"Accept": f"application/json;as={form};v=v1;g=meta.k8s.io"}
    answer = await kept[0].send(Request(method="GET", path=path, query=query, headers=accept))
    try:
        found: dict[str, Any] = json.loads(await answer.read())
        return found
    finally:
        await answer.close()


@pytest.fixture
async def scaled(client: Client) -> Client:
    """A Deployment whose pods nobody runs."""
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "main", "image": "x"}]}}
    spec = {"replicas": 3, "paused": True, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    head = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
    await client.create(Dynamic({**head, "spec": spec}))
    return client


async def test_scale_is_a_row_of_a_table(scaled: Client) -> None:
    """How many are wanted, and how many there are."""
    table = await _asked(scaled, "Table")
    columns = [(column["name"], column["type"]) for column in table["columnDefinitions"]]
    assert columns == [("Name", "string"), ("Desired", "integer"), ("Available", "integer"), ("Age", "string")]
    (row,) = table["rows"]
    assert row["cells"][:3] == ["web", 3, 0]
    assert row["object"]["metadata"]["name"] == "web"
    assert (await _asked(scaled, "Table", includeObject="None"))["rows"][0]["object"] is None


async def test_scale_has_metadata_alone(scaled: Client) -> None:
    """Without the fields that others manage."""
    found = await _asked(scaled, "PartialObjectMetadata")
    assert found["kind"] == "PartialObjectMetadata"
    refused = await _asked(scaled, "PartialObjectMetadataList")
    assert refused["message"].endswith("the requested object is not a list (*autoscaling.Scale)")
    assert {*found["metadata"]} == {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"}
