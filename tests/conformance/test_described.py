"""What the API says of the fields that every object has."""

from __future__ import annotations

import json
from typing import Any

import pytest

from navarch.client import Client, Request, Transport

_META = "io.k8s.apimachinery.pkg.apis.meta.v1"


async def document_of(client: Client, name: str) -> dict[str, Any]:
    """The OpenAPI document of a group and version."""
    kept: list[Transport] = []

    def keep(transport: Transport) -> Transport:
        kept.append(transport)
        return transport

    client.through(keep)
    answer = await kept[0].send(Request(method="GET", path=f"/openapi/v3/{name}", headers={}, body=b""))
    try:
        body = await answer.read()
        found: dict[str, Any] = json.loads(body) if body else {}  # Kubernetes has no body while it builds the document
        return found
    finally:
        await answer.close()


@pytest.mark.parametrize("kind", ["ObjectMeta", "OwnerReference", "ManagedFieldsEntry"])
async def test_fields_of_metadata_are_described(client: Client, kind: str) -> None:
    """So that `kubectl explain` has something to say."""
    schema = (await document_of(client, "apis/apps/v1"))["components"]["schemas"][f"{_META}.{kind}"]
    assert schema["description"]
    silent = [name for name, field in schema["properties"].items() if not field.get("description")]
    assert not silent
