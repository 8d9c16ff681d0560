"""`kubernetes_asyncio`: the official client's sister for asyncio."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from kubernetes_asyncio import client as k8s
from kubernetes_asyncio import config as k8s_config
from kubernetes_asyncio import utils, watch
from kubernetes_asyncio.client.exceptions import ApiException
from kubernetes_asyncio.config.incluster_config import InClusterConfigLoader
from kubernetes_asyncio.dynamic import DynamicClient

from conformance.clients.mounting import Mount
from conformance.conftest import Compacting

LIMIT = 60
GROUP, VERSION, PLURAL = "test.example.com", "v1", "gadgets"


@pytest.fixture
async def aio(kubeconfig: str) -> AsyncIterator[k8s.ApiClient]:
    async with await k8s_config.new_client_from_config(kubeconfig) as api:
        yield api


@pytest.fixture
def core(aio: k8s.ApiClient) -> k8s.CoreV1Api:
    return k8s.CoreV1Api(aio)


def config_map(name: str, **data: str) -> k8s.V1ConfigMap:
    return k8s.V1ConfigMap(metadata=k8s.V1ObjectMeta(name=name, labels={"suite": "clients"}), data=data)


def gadget(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": "Gadget", "metadata": {"name": name}, "spec": spec}


async def test_asyncio_client_logs_in(kubeconfig: str, certificate_kubeconfig: str) -> None:
    """With a token and with a client certificate."""
    for file in (kubeconfig, certificate_kubeconfig):
        async with await k8s_config.new_client_from_config(file) as api:
            review = await k8s.AuthenticationV1Api(api).create_self_subject_review(k8s.V1SelfSubjectReview())
            assert "system:masters" in review.status.user_info.groups


async def test_asyncio_client_finds_the_cluster_from_inside(mount: Mount, namespace: str) -> None:
    """By the token, the authority and the environment of a pod."""
    inside = k8s.Configuration()
    InClusterConfigLoader(mount.token, mount.authority, environ=mount.environment).load_and_set(inside)
    async with k8s.ApiClient(inside) as api:
        review = await k8s.AuthenticationV1Api(api).create_self_subject_review(k8s.V1SelfSubjectReview())
    assert review.status.user_info.username == f"system:serviceaccount:{namespace}:robot"


async def test_asyncio_client_goes_through_the_life_of_an_object(core: k8s.CoreV1Api, namespace: str) -> None:
    """Created, replaced, listed in pages, deleted, and gone."""
    made = await core.create_namespaced_config_map(namespace, config_map("a", colour="red"))
    made.data["colour"] = "blue"
    await core.replace_namespaced_config_map("a", namespace, made)
    for name in "bc":
        await core.create_namespaced_config_map(namespace, config_map(name))
    page = await core.list_namespaced_config_map(namespace, label_selector="suite=clients", limit=2)
    rest = await core.list_namespaced_config_map(
        namespace, label_selector="suite=clients", limit=2, _continue=page.metadata._continue
    )
    assert [each.metadata.name for each in page.items + rest.items] == ["a", "b", "c"]
    assert page.items[0].data == {"colour": "blue"}
    await core.delete_namespaced_config_map("a", namespace)
    await core.delete_collection_namespaced_config_map(namespace, label_selector="suite=clients")
    with pytest.raises(ApiException) as caught:
        await core.read_namespaced_config_map("a", namespace)
    assert (caught.value.status, json.loads(caught.value.body or b"{}")["reason"]) == (404, "NotFound")


@pytest.mark.parametrize(
    ("content_type", "patch"),
    [
        ("application/json-patch+json", [{"op": "add", "path": "/data", "value": {"k": "v"}}]),
        ("application/merge-patch+json", {"data": {"k": "v"}}),
        ("application/strategic-merge-patch+json", {"data": {"k": "v"}}),
        (None, {"data": {"k": "v"}}),
    ],
)
async def test_asyncio_client_patches(
    core: k8s.CoreV1Api, namespace: str, content_type: str | None, patch: Any
) -> None:
    """In every form that it knows."""
    await core.create_namespaced_config_map(namespace, config_map("a"))
    options = {"_content_type": content_type} if content_type else {}
    assert (await core.patch_namespaced_config_map("a", namespace, patch, **options)).data == {"k": "v"}


async def test_asyncio_client_applies(core: k8s.CoreV1Api, namespace: str) -> None:
    """Refused where another manager is, unless forced."""

    async def apply(manager: str, value: str, **options: Any) -> k8s.V1ConfigMap:
        wanted = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": value}}
        return await core.patch_namespaced_config_map(
            "a", namespace, wanted, field_manager=manager, _content_type="application/apply-patch+yaml", **options
        )

    await apply("first", "1")
    with pytest.raises(ApiException) as caught:
        await apply("second", "2")
    assert caught.value.status == 409
    assert (await apply("second", "2", force=True)).data == {"k": "2"}


async def test_asyncio_client_watches_within_its_time(core: k8s.CoreV1Api, namespace: str) -> None:
    """What is there, then what changes, until the server ends it as it was asked to."""
    await core.create_namespaced_config_map(namespace, config_map("a"))

    def watched(seconds: float) -> watch.Watch:
        kinds = core.list_namespaced_config_map
        return watch.Watch().stream(kinds, namespace, label_selector="suite=clients", timeout_seconds=seconds)

    seen = []
    async with watched(LIMIT) as events:
        async for event in events:
            seen.append((event["type"], event["object"].metadata.name))
            if len(seen) == 2:
                break
            await core.delete_namespaced_config_map("a", namespace)
    assert seen == [("ADDED", "a"), ("DELETED", "a")]
    async with asyncio.timeout(LIMIT), watched(1) as events:
        assert [event async for event in events] == []


async def test_asyncio_client_goes_on_where_it_was(core: k8s.CoreV1Api, namespace: str) -> None:
    """From the version of a list."""
    version = (await core.list_namespaced_config_map(namespace)).metadata.resource_version
    await core.create_namespaced_config_map(namespace, config_map("b"))
    async with watch.Watch().stream(
        core.list_namespaced_config_map, namespace, resource_version=version, label_selector="suite=clients"
    ) as events:
        event = await asyncio.wait_for(anext(events), LIMIT)
    assert (event["type"], event["object"].metadata.name) == ("ADDED", "b")


async def test_asyncio_client_is_told_that_a_version_is_gone(
    core: k8s.CoreV1Api, namespace: str, compacting: Compacting
) -> None:
    """As the exception that its users look for."""
    about = k8s.V1ObjectReference(kind="Namespace", name=namespace, namespace=namespace)
    event = k8s.CoreV1Event(metadata=k8s.V1ObjectMeta(name="a"), involved_object=about)
    old = (await core.create_namespaced_event(namespace, event)).metadata.resource_version
    for message in ("b", "c"):
        patched = await core.patch_namespaced_event("a", namespace, {"message": message})
    await compacting(patched.metadata.resource_version)
    with pytest.raises(ApiException) as caught:
        async with watch.Watch().stream(
            core.list_namespaced_event, namespace, resource_version=old, timeout_seconds=LIMIT
        ) as events:
            await anext(events)
    assert caught.value.status == 410


async def test_asyncio_client_handles_custom_objects(aio: k8s.ApiClient, gadgets: None, namespace: str) -> None:
    """With their status and scale."""
    custom, place = k8s.CustomObjectsApi(aio), (GROUP, VERSION, namespace, PLURAL)
    await custom.create_namespaced_custom_object(*place, gadget("a", size=1))
    merge = {"_content_type": "application/merge-patch+json"}
    await custom.patch_namespaced_custom_object_status(*place, "a", {"status": {"phase": "Ready"}}, **merge)
    await custom.patch_namespaced_custom_object_scale(*place, "a", {"spec": {"replicas": 3}}, **merge)
    found = await custom.get_namespaced_custom_object(*place, "a")
    assert (found["spec"], found["status"]) == ({"size": 1, "replicas": 3}, {"phase": "Ready"})
    with pytest.raises(ApiException) as caught:
        await custom.patch_namespaced_custom_object(*place, "a", {"spec": {"size": "big"}}, **merge)
    assert caught.value.status == 422


async def test_asyncio_dynamic_client_learns_every_kind(aio: k8s.ApiClient, gadgets: None, namespace: str) -> None:
    """And handles those it never heard of."""
    learned = await DynamicClient(aio)
    kind = await learned.resources.get(api_version=f"{GROUP}/{VERSION}", kind="Gadget")
    assert (kind.name, kind.namespaced) == ("gadgets", True)
    made = await kind.create(body=gadget("a", size=1), namespace=namespace)
    assert made.spec.size == 1
    await kind.server_side_apply(
        body=gadget("a", colour="red"), namespace=namespace, field_manager="me", force_conflicts=True
    )
    found = await kind.get(name="a", namespace=namespace)
    assert found.spec.to_dict() == {"size": 1, "colour": "red"}
    await kind.delete(name="a", namespace=namespace)
    assert (await kind.get(namespace=namespace)).items == []


async def test_asyncio_client_creates_what_stands_in_documents(
    aio: k8s.ApiClient, core: k8s.CoreV1Api, namespace: str
) -> None:
    """By its helper."""
    document = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "stringData": {"k": "v"}}
    await utils.create_from_dict(aio, document, namespace=namespace)
    assert (await core.read_namespaced_secret("a", namespace)).data == {"k": "dg=="}
