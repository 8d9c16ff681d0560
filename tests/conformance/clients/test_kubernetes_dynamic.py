"""`kubernetes`, the official client: kinds that it learns from the server."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client as k8s
from kubernetes import dynamic, watch
from kubernetes.dynamic import exceptions

from gadgets import DEFINITION
from rig.waiting import wait_for

LIMIT = 60
GROUP, VERSION, PLURAL = "test.example.com", "v1", "gadgets"


@pytest.fixture
def custom(api: k8s.ApiClient, gadgets: None) -> k8s.CustomObjectsApi:
    return k8s.CustomObjectsApi(api)


@pytest.fixture
def learned(api: k8s.ApiClient, gadgets: None, tmp_path: Path) -> dynamic.DynamicClient:
    """A client that asks the server which kinds there are, and keeps the answer in a file of this test."""
    return dynamic.DynamicClient(api, cache_file=str(tmp_path / "discovery.json"))


def gadget(name: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "labels": {"suite": "clients"}}
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": "Gadget", "metadata": metadata, "spec": spec}


def test_official_client_goes_through_the_life_of_a_custom_object(custom: k8s.CustomObjectsApi, namespace: str) -> None:
    """Created, read, listed, replaced, patched, deleted; as plain dicts."""
    place = (GROUP, VERSION, namespace, PLURAL)
    made = custom.create_namespaced_custom_object(*place, gadget("a", size=1))
    assert made["metadata"]["generation"] == 1
    made["spec"]["size"] = 2
    assert custom.replace_namespaced_custom_object(*place, "a", made)["metadata"]["generation"] == 2
    patched = custom.patch_namespaced_custom_object(
        *place, "a", {"spec": {"colour": "red"}}, _content_type="application/merge-patch+json"
    )
    assert patched["spec"] == {"size": 2, "colour": "red"}
    patched = custom.patch_namespaced_custom_object(
        *place, "a", [{"op": "remove", "path": "/spec/size"}], _content_type="application/json-patch+json"
    )
    assert patched["spec"] == {"colour": "red"}
    found = custom.list_namespaced_custom_object(*place, field_selector="spec.colour=red")
    assert [each["metadata"]["name"] for each in found["items"]] == ["a"]
    assert custom.delete_namespaced_custom_object(*place, "a")["status"] == "Success"
    assert custom.list_namespaced_custom_object(*place)["items"] == []


def test_official_client_applies_custom_objects(custom: k8s.CustomObjectsApi, namespace: str) -> None:
    """Lists with keys are merged by them."""
    place = (GROUP, VERSION, namespace, PLURAL)
    for manager, part in (("first", "wheel"), ("second", "door")):
        applied = custom.patch_namespaced_custom_object(
            *place,
            "a",
            gadget("a", parts=[{"name": part}]),
            field_manager=manager,
            _content_type="application/apply-patch+yaml",
        )
    assert [part["name"] for part in applied["spec"]["parts"]] == ["wheel", "door"]


def test_official_client_refuses_no_more_than_the_schema(custom: k8s.CustomObjectsApi, namespace: str) -> None:
    """A value that does not fit is refused with its place; a strategic patch is for built-in kinds only."""
    place = (GROUP, VERSION, namespace, PLURAL)
    with pytest.raises(k8s.ApiException, match=r"spec\.size: Invalid value") as caught:
        custom.create_namespaced_custom_object(*place, gadget("a", size=-1))
    assert caught.value.status == 422
    custom.create_namespaced_custom_object(*place, gadget("a"))
    with pytest.raises(k8s.ApiException) as caught:
        custom.patch_namespaced_custom_object(
            *place, "a", {"spec": {"size": 1}}, _content_type="application/strategic-merge-patch+json"
        )
    assert caught.value.status == 415


def test_official_client_writes_status_and_scale_of_custom_objects(
    custom: k8s.CustomObjectsApi, namespace: str
) -> None:
    """Each is a resource of its own."""
    place = (GROUP, VERSION, namespace, PLURAL)
    made = custom.create_namespaced_custom_object(*place, {**gadget("a", replicas=1), "status": {"phase": "ignored"}})
    assert "status" not in made
    made["status"] = {"phase": "Ready", "replicas": 1}
    assert custom.replace_namespaced_custom_object_status(*place, "a", made)["status"]["phase"] == "Ready"
    scaled = custom.patch_namespaced_custom_object_scale(
        *place, "a", {"spec": {"replicas": 3}}, _content_type="application/merge-patch+json"
    )
    assert (scaled["kind"], scaled["spec"], scaled["status"]) == ("Scale", {"replicas": 3}, {"replicas": 1})
    found = custom.get_namespaced_custom_object(*place, "a")
    assert (found["spec"], found["metadata"]["generation"]) == ({"replicas": 3}, 2)


def test_official_client_scales_what_has_no_replicas_yet(custom: k8s.CustomObjectsApi, namespace: str) -> None:
    """There is nothing to read before."""
    place = (GROUP, VERSION, namespace, PLURAL)
    custom.create_namespaced_custom_object(*place, gadget("a"))
    with pytest.raises(k8s.ApiException, match=r"the spec replicas field .* does not exist") as caught:
        custom.get_namespaced_custom_object_scale(*place, "a")
    assert caught.value.status == 500
    custom.patch_namespaced_custom_object_scale(
        *place, "a", {"spec": {"replicas": 3}}, _content_type="application/merge-patch+json"
    )
    assert custom.get_namespaced_custom_object_scale(*place, "a")["spec"] == {"replicas": 3}


def test_official_client_installs_a_definition(api: k8s.ApiClient, namespace: str) -> None:
    """Typed, until it is established; its objects are served then, and go with it."""
    definition = copy.deepcopy(DEFINITION)
    names = {"kind": "Gizmo", "plural": "gizmos", "singular": "gizmo", "listKind": "GizmoList"}
    definition["metadata"]["name"], definition["spec"]["names"] = f"gizmos.{GROUP}", names
    definitions, custom = k8s.ApiextensionsV1Api(api), k8s.CustomObjectsApi(api)
    made = definitions.create_custom_resource_definition(definition)

    def events(version: str) -> Iterator[dict[str, Any]]:
        only = f"metadata.name=gizmos.{GROUP}"
        kinds = definitions.list_custom_resource_definition
        yield from watch.Watch().stream(kinds, field_selector=only, resource_version=version, timeout_seconds=LIMIT)

    def established(event: dict[str, Any]) -> bool:
        return any(
            each.type == "Established" and each.status == "True" for each in event["object"].status.conditions or []
        )

    assert any(map(established, events(made.metadata.resource_version))), "expected the definition to be established"
    body = {**gadget("a"), "kind": "Gizmo"}

    def served() -> dict[str, Any] | None:
        """The real server says that it is established a moment before it is."""
        try:
            made: dict[str, Any] = custom.create_namespaced_custom_object(GROUP, VERSION, namespace, "gizmos", body)
        except k8s.ApiException as error:
            if error.status != 404:
                raise
            return None
        return made

    assert wait_for("gizmos to be served", served, seconds=LIMIT)["kind"] == "Gizmo"
    deleted = definitions.read_custom_resource_definition(f"gizmos.{GROUP}").metadata.resource_version
    definitions.delete_custom_resource_definition(f"gizmos.{GROUP}")
    assert any(event["type"] == "DELETED" for event in events(deleted)), "expected it to go, with its objects"


def test_dynamic_client_learns_every_kind(learned: dynamic.DynamicClient) -> None:
    """By group, kind, plural and short name; with its subresources."""
    resources = learned.resources
    found = resources.get(api_version="apps/v1", kind="Deployment")
    assert (found.name, found.namespaced, found.short_names) == ("deployments", True, ["deploy"])
    assert {"scale", "status"} <= set(found.subresources)
    assert resources.get(api_version="v1", kind="Namespace").namespaced is False
    assert resources.get(short_names=["gd"]).kind == "Gadget"
    assert {each.group_version for each in resources.search(kind="HorizontalPodAutoscaler")} == {
        "autoscaling/v1",
        "autoscaling/v2",
    }
    assert resources.version["kubernetes"]["gitVersion"] == "v1.36.4"
    with pytest.raises(exceptions.ResourceNotFoundError):
        resources.get(kind="Nonsense")


def test_dynamic_client_goes_through_the_life_of_objects(learned: dynamic.DynamicClient, namespace: str) -> None:
    """Built-in and custom ones alike."""
    gadgets = learned.resources.get(api_version=f"{GROUP}/{VERSION}", kind="Gadget")
    made = gadgets.create(body=gadget("a", size=1), namespace=namespace)
    made.spec.size = 2
    assert gadgets.replace(body=made, namespace=namespace).spec.size == 2
    patched = gadgets.patch(
        body={"metadata": {"name": "a"}, "spec": {"colour": "red"}},
        namespace=namespace,
        content_type="application/merge-patch+json",
    )
    assert patched.spec.to_dict() == {"size": 2, "colour": "red"}
    gadgets.status.patch(
        body={"metadata": {"name": "a"}, "status": {"phase": "Ready"}},
        namespace=namespace,
        content_type="application/merge-patch+json",
    )
    assert gadgets.get(name="a", namespace=namespace).status.phase == "Ready"
    assert [each.metadata.name for each in gadgets.get(namespace=namespace, label_selector="suite").items] == ["a"]
    gadgets.delete(name="a", namespace=namespace)
    with pytest.raises(exceptions.NotFoundError) as caught:
        gadgets.get(name="a", namespace=namespace)
    assert caught.value.summary() == f'gadgets.{GROUP} "a" not found'


def test_dynamic_client_applies(learned: dynamic.DynamicClient, namespace: str) -> None:
    """Refused where another manager is, unless forced."""
    maps = learned.resources.get(api_version="v1", kind="ConfigMap")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "1"}}
    maps.server_side_apply(body=body, namespace=namespace, field_manager="first")
    body["data"] = {"k": "2"}
    with pytest.raises(exceptions.ConflictError, match="conflict with"):
        maps.server_side_apply(body=body, namespace=namespace, field_manager="second")
    applied = maps.server_side_apply(body=body, namespace=namespace, field_manager="second", force_conflicts=True)
    assert applied.data.k == "2"


def test_dynamic_client_watches(learned: dynamic.DynamicClient, namespace: str) -> None:
    """From the first event on, and with the initial ones as a stream that ends in a bookmark."""
    maps = learned.resources.get(api_version="v1", kind="ConfigMap")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"suite": "clients"}}}
    maps.create(body=body, namespace=namespace)
    events = maps.watch(
        namespace=namespace,
        label_selector="suite=clients",
        timeout=LIMIT,
        allow_watch_bookmarks=True,
        send_initial_events=True,
        resource_version_match="NotOlderThan",
    )
    assert next(events)["type"] == "ADDED"
    bookmark = next(events)
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["raw_object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    maps.delete(name="a", namespace=namespace)
    gone = next(events)
    assert (gone["type"], gone["object"].metadata.name) == ("DELETED", "a")
    events.close()


def test_dynamic_client_deletes_many(learned: dynamic.DynamicClient, namespace: str) -> None:
    """Those that match a selector."""
    gadgets = learned.resources.get(api_version=f"{GROUP}/{VERSION}", kind="Gadget")
    for name in ("a", "b"):
        gadgets.create(body=gadget(name), namespace=namespace)
    gadgets.create(body={**gadget("c"), "metadata": {"name": "c"}}, namespace=namespace)
    gadgets.delete(namespace=namespace, label_selector="suite=clients")
    assert [each.metadata.name for each in gadgets.get(namespace=namespace).items] == ["c"]
