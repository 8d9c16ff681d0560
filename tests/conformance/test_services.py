"""Services whose fields mean nothing for them."""

from __future__ import annotations

import json
from typing import Any

from navarch.client import Client, Request, Transport


async def _created(client: Client, name: str, spec: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The Service's spec, and the server's warnings."""
    kept: list[Transport] = []

    def keep(transport: Transport) -> Transport:
        kept.append(transport)
        return transport

    client.through(keep)
    body = json.dumps({"metadata": {"name": name}, "spec": spec}).encode()
    path, headers = f"/api/v1/namespaces/{client.options.namespace}/services", {"Content-Type": "application/json"}
    answer = await kept[0].send(Request(method="POST", path=path, headers=headers, body=body))
    try:
        found = json.loads(await answer.read())
        assert answer.status == 201, found
        return found["spec"], [*answer.warnings()]
    finally:
        await answer.close()


async def test_mere_name_has_no_traffic_policy(client: Client) -> None:
    """Kubernetes takes it, and does not show it."""
    given = {"type": "ExternalName", "externalName": "example.com", "internalTrafficPolicy": "Local"}
    spec, _ = await _created(client, "name", given)
    assert spec == {"type": "ExternalName", "externalName": "example.com", "sessionAffinity": "None"}


async def test_what_headless_services_ignore_is_told(client: Client) -> None:
    """In a warning for each field."""
    given = {"externalIPs": ["192.0.2.1"], "sessionAffinity": "ClientIP", "loadBalancerIP": "192.0.2.2"}
    _, warnings = await _created(client, "headless", {"clusterIP": "None", "ports": [{"port": 1}], **given})
    ignored = ("loadBalancerIP", "externalIPs", "SessionAffinity")
    assert warnings == [f'299 - "spec.{name} is ignored for headless services"' for name in ignored]
