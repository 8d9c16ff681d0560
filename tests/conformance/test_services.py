"""Services whose fields mean nothing for them."""

from __future__ import annotations

import json
from typing import Any

from navarch.client import Client, Request, Transport


def _transport(client: Client) -> Transport:
    kept: list[Transport] = []

    def keep(transport: Transport) -> Transport:
        kept.append(transport)
        return transport

    client.through(keep)
    return kept[0]


async def _created(client: Client, name: str, spec: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The Service's spec, and the server's warnings."""
    body = json.dumps({"metadata": {"name": name}, "spec": spec}).encode()
    path, headers = f"/api/v1/namespaces/{client.options.namespace}/services", {"Content-Type": "application/json"}
    answer = await _transport(client).send(Request(method="POST", path=path, headers=headers, body=body))
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


async def test_who_writes_the_status_is_not_warned_of_the_rest(client: Client) -> None:
    """Only who writes the fields is."""
    given = {"externalName": "example.com", "ports": [{"port": 1}]}
    said = 'spec.externalName is ignored when spec.type is not "ExternalName"'
    _, warnings = await _created(client, "odd", given)
    assert warnings == [f'299 - "{said}"'.replace('"ExternalName"', '\\"ExternalName\\"')]
    path = f"/api/v1/namespaces/{client.options.namespace}/services/odd/status"
    headers = {"Content-Type": "application/merge-patch+json"}
    answer = await _transport(client).send(Request(method="PATCH", path=path, headers=headers, body=b"{}"))
    assert (answer.status, [*answer.warnings()]) == (200, [])
    await answer.close()


async def test_what_headless_services_ignore_is_told(client: Client) -> None:
    """In a warning for each field."""
    given = {"externalIPs": ["192.0.2.1"], "sessionAffinity": "ClientIP", "loadBalancerIP": "192.0.2.2"}
    _, warnings = await _created(client, "headless", {"clusterIP": "None", "ports": [{"port": 1}], **given})
    ignored = ("loadBalancerIP", "externalIPs", "SessionAffinity")
    assert warnings == [f'299 - "spec.{name} is ignored for headless services"' for name in ignored]
