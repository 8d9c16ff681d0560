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


Answer = tuple[dict[str, Any], list[str]]
"""What comes back, and the server's warnings."""


async def _posted(client: Client, path: str, body: dict[str, Any], **query: str) -> Answer:
    return await _asked(client, "POST", path, body, **query)


async def _asked(client: Client, method: str, path: str, body: dict[str, Any], **query: str) -> Answer:
    kept: list[Transport] = []

    def keep(transport: Transport) -> Transport:
        kept.append(transport)
        return transport

    client.through(keep)
    where = f"/api/v1/namespaces/{client.options.namespace}/{path}"
    headers = {"Content-Type": "application/json"}
    request = Request(method=method, path=where, query=query, headers=headers, body=json.dumps(body).encode())
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


async def test_pod_that_need_not_wait_any_more_says_so(account: Client) -> None:
    """In the answer that it goes with."""
    spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": "none", "serviceAccountName": "runner"}
    await account.create(Dynamic({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "waits"}, "spec": spec}))
    for seconds in (30, 0):
        answer, _ = await _asked(account, "DELETE", "pods/waits", {"gracePeriodSeconds": seconds})
        assert answer["metadata"]["deletionGracePeriodSeconds"] == seconds


async def test_dry_run_of_a_deletion_shows_what_it_would_write(client: Client) -> None:
    """An object that loses its last finalizer, rather than that it went."""
    metadata = {"name": "kept", "finalizers": ["orphan"]}
    await client.create(Dynamic({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}))
    options = {"propagationPolicy": "Background", "dryRun": ["All"]}
    shown, _ = await _asked(client, "DELETE", "configmaps/kept", options)
    assert (shown["kind"], shown["metadata"].get("finalizers")) == ("ConfigMap", None)
