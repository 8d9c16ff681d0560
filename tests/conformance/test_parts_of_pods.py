"""What may be done to the parts of a pod that have verbs of their own, and what the server makes of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from navarch.api import Dynamic
from navarch.client import Client, Request, StrategicPatch, Transport
from navarch.errors import Invalid
from navarch.k8s.core.v1 import Pod

_NOWHERE = {"no": "where"}


@pytest.fixture
async def account(client: Client) -> Client:
    """An account for pods and tokens."""
    await client.create(Dynamic({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "runner"}}))
    return client


@pytest.fixture
async def pod(account: Client) -> Client:
    """A pod that nobody runs."""
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    spec = {"containers": [container], "nodeSelector": _NOWHERE, "serviceAccountName": "runner"}
    metadata = {"name": "a", "labels": {"app": "a"}}
    await account.create(Dynamic({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}))
    return account


async def _refused(client: Client, part: str, spec: dict[str, Any]) -> set[str]:
    with pytest.raises(Invalid) as refused:
        await client.patch(Pod, "a", StrategicPatch({"spec": spec}), subresource=part)
    return {cause.field for cause in refused.value.causes}


async def _posted(client: Client, path: str, body: dict[str, Any], **query: str) -> tuple[dict[str, Any], list[str]]:
    """The answer, and the server's warnings."""
    kept: list[Transport] = []

    def keep(transport: Transport) -> Transport:
        kept.append(transport)
        return transport

    client.through(keep)
    where = f"/api/v1/namespaces/{client.options.namespace}/{path}"
    headers = {"Content-Type": "application/json"}
    request = Request(method="POST", path=where, query=query, headers=headers, body=json.dumps(body).encode())
    answer = await kept[0].send(request)
    try:
        return json.loads(await answer.read()), [*answer.warnings()]
    finally:
        await answer.close()


async def test_container_for_debugging_is_a_container(pod: Client) -> None:
    """With an image, and without what only containers that serve somebody have."""
    for container, fields in (
        ({"name": "e"}, {"image"}),
        ({"name": "e", "image": "i", "targetContainerName": "none"}, {"targetContainerName"}),
        ({"name": "e", "image": "i", "ports": [{"containerPort": 80}]}, {"ports"}),
        ({"name": "c", "image": "i"}, {"name"}),
    ):
        found = await _refused(pod, "ephemeralcontainers", {"ephemeralContainers": [container]})
        assert found == {f"spec.ephemeralContainers[0].{field}" for field in fields}


async def test_resize_adds_no_container_and_removes_no_resources(pod: Client) -> None:
    """It changes what is there."""
    added = await _refused(pod, "resize", {"containers": [{"name": "d", "image": "i"}]})
    removed = await _refused(pod, "resize", {"containers": [{"name": "c", "resources": {"requests": {"cpu": None}}}]})
    assert (added, removed) == ({"spec.containers"}, {"spec", "spec.containers[0].resources.requests"})


async def test_eviction_is_read_as_strictly_as_asked(pod: Client) -> None:
    """Unknown fields are warned of or refused; so is a dry run that is none."""
    body = {"metadata": {"name": "a"}, "unheardOf": 1}
    answer, warnings = await _posted(pod, "pods/a/eviction", body, dryRun="All")
    assert (answer["status"], warnings) == ("Success", ['299 - "unknown field \\"unheardOf\\""'])
    answer, _ = await _posted(pod, "pods/a/eviction", body, fieldValidation="Strict")
    assert "strict decoding error" in answer["message"]
    answer, _ = await _posted(pod, "pods/a/eviction", {}, dryRun="Odd")
    assert answer["code"] == 422


async def test_binding_needs_a_name(client: Client) -> None:
    """That of the pod, and before it that of the node."""
    for target, code in (({"name": "n"}, 400), ({}, 500)):
        answer, _ = await _posted(client, "bindings", {"target": target})
        assert answer["code"] == code


async def test_requested_token_belongs_to_whoever_asks(account: Client) -> None:
    """As any object that is created."""
    answer, _ = await _posted(account, "serviceaccounts/runner/token", {"spec": {"audiences": ["x"]}})
    [entry] = answer["metadata"]["managedFields"]
    assert entry["fieldsV1"] == {"f:spec": {"f:audiences": {}, "f:expirationSeconds": {}}}
