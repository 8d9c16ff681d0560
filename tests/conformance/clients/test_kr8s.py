"""`kr8s`: objects that know their cluster."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import kr8s
import kr8s.asyncio
import pytest
from kr8s._async_utils import as_sync_func
from kr8s.asyncio.objects import ConfigMap, Deployment, Pod, Service, ServiceAccount, Table, new_class

from conformance.clients.mounting import Mount

pytestmark = pytest.mark.filterwarnings("ignore:Kubernetes version:UserWarning")  # it says how new it is

LIMIT = 60.0
MINE = {"suite": "clients"}
Gadget = new_class("Gadget", "test.example.com/v1", asyncio=True, namespaced=True, scalable=True)


@pytest.fixture(autouse=True)
def _files_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It leaves certificates in temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.fixture
async def api(kubeconfig: str, namespace: str) -> AsyncIterator[kr8s.asyncio.Api]:
    api = await kr8s.asyncio.api(kubeconfig=kubeconfig, namespace=namespace)
    yield api
    await closed(api)
    await watches_ended()


async def closed(api: kr8s.Api) -> None:
    """Ends its connections, which it would leave to the garbage collector."""
    assert api._session is not None
    await api._session.aclose()


async def watches_ended() -> None:
    """Waits for the watches that it leaves behind, each with a task that ends it."""
    if left := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(left, timeout=LIMIT)


def manifest(name: str, namespace: str, **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace, "labels": MINE}, **fields}


def deployment(namespace: str) -> dict[str, Any]:
    container = {"name": "web", "image": "nginx:1"}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return manifest("web", namespace, spec=spec)


def test_kr8s_logs_in(kubeconfig: str, certificate_kubeconfig: str) -> None:
    """With a token and with a client certificate, also without asyncio."""
    for file in (kubeconfig, certificate_kubeconfig):
        api = kr8s.api(kubeconfig=file)
        assert api.version()["gitVersion"] == "v1.36.4"
        assert api.whoami() in {"rig-admin", "kubernetes-admin"}
        assert "default" in [each.name for each in api.get("namespaces")]
        as_sync_func(closed)(api)


async def test_kr8s_finds_the_cluster_from_inside(
    mount: Mount, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the folder and the environment of a pod."""
    for name, value in mount.environment.items():
        monkeypatch.setenv(name, value)
    api = await kr8s.asyncio.api(
        serviceaccount=str(mount.folder), kubeconfig=str(mount.folder / "none"), namespace=namespace
    )
    with pytest.raises(kr8s.ServerError, match=f"system:serviceaccount:{namespace}:robot.* cannot list"):
        [each async for each in api.get("secrets")]
    await closed(api)


async def test_kr8s_goes_through_the_life_of_an_object(api: kr8s.asyncio.Api, namespace: str) -> None:
    """Created, found, changed, labelled, refreshed, deleted."""
    made = await ConfigMap(manifest("a", namespace, data={"k": "1"}), api=api)
    await made.create()
    assert await made.exists()
    await made.patch({"data": {"k": "2"}})
    await made.patch([{"op": "add", "path": "/data/j", "value": "3"}], type="json")
    await made.label({"tier": "back"})
    await made.annotate(note="seen")
    found = await ConfigMap.get("a", namespace=namespace, api=api)
    assert (found.data, found.labels, found.annotations) == (
        {"k": "2", "j": "3"},
        {**MINE, "tier": "back"},
        {"note": "seen"},
    )
    await made.remove_label("tier")
    await found.refresh()
    assert found.labels == MINE
    await made.delete(propagation_policy="Background")
    await made.wait("delete", timeout=LIMIT)
    assert not await made.exists()
    with pytest.raises(kr8s.NotFoundError):
        await made.refresh()


async def test_kr8s_lists_in_pages_and_by_selectors(api: kr8s.asyncio.Api, namespace: str) -> None:
    """A hundred at a time; by name, label and field."""
    await api.create([await ConfigMap(manifest(f"many-{number:03}", namespace), api=api) for number in range(120)])
    names = [each.name async for each in api.get("configmaps", label_selector=MINE)]
    assert names == [f"many-{number:03}" for number in range(120)]
    assert [each.name async for each in api.get("cm", "many-007")] == ["many-007"]
    by_field = api.get("configmaps", field_selector={"metadata.name": "many-008"})
    assert [each.name async for each in by_field] == ["many-008"]
    everywhere = api.get("configmaps", namespace=kr8s.ALL, label_selector="suite=clients")
    assert len([each async for each in everywhere if each.namespace == namespace]) == 120
    with pytest.raises(ValueError, match="Expected exactly one"):
        await ConfigMap.get(label_selector=MINE, namespace=namespace, api=api)


async def test_kr8s_shows_tables(api: kr8s.asyncio.Api, namespace: str) -> None:
    """With the columns that kubectl prints."""
    await (await Deployment(deployment(namespace), api=api)).create()
    (table,) = [each async for each in api.get("deployments", as_object=Table)]
    assert [column["name"] for column in table.column_definitions][:4] == ["Name", "Ready", "Up-to-date", "Available"]
    assert [row["cells"][:2] for row in table.rows] == [["web", "0/1"]]


async def test_kr8s_waits_for_what_comes(api: kr8s.asyncio.Api, namespace: str, gadgets: None) -> None:
    """For conditions and for values, by a watch of one object."""
    first, second, third = [await Gadget(manifest("a", namespace, spec={"size": 1}), api=api) for _ in range(3)]
    await first.create()
    condition = {"type": "Available", "status": "True"}
    async with asyncio.TaskGroup() as group:
        group.create_task(first.wait(["condition=Available"], timeout=LIMIT))
        group.create_task(second.wait("jsonpath='{.spec.size}'=2", timeout=LIMIT))
        await third.patch({"status": {"conditions": [condition]}}, subresource="status")
        await third.patch({"spec": {"size": 2}})


async def test_kr8s_scales(api: kr8s.asyncio.Api, namespace: str, gadgets: None) -> None:
    """Built-in kinds and custom ones."""
    web = await Deployment(deployment(namespace), api=api)
    await web.create()
    await web.scale(3)
    assert (web.replicas, web.metadata.generation) == (3, 2)
    gadget = await Gadget(manifest("a", namespace, spec={"replicas": 1}), api=api)
    await gadget.create()
    await gadget.scale(2)
    assert gadget.replicas == 2


async def test_kr8s_watches(api: kr8s.asyncio.Api, namespace: str) -> None:
    """A kind by its selector: what is there, then what changes."""
    before = asyncio.all_tasks()
    made = await ConfigMap(manifest("a", namespace), api=api)
    await made.create()
    seen: list[tuple[str, str]] = []
    async with asyncio.timeout(LIMIT), aclosing(api.watch("configmaps", label_selector=MINE)) as events:
        async for kind, found in events:
            seen.append((kind, found.name))
            if kind == "DELETED":
                break
            await made.delete()
    assert seen == [("ADDED", "a"), ("DELETED", "a")]
    if left := asyncio.all_tasks() - before:  # the loop closes the generator beneath the watch, which kr8s does not
        await asyncio.wait(left, timeout=LIMIT)


async def test_kr8s_learns_kinds_from_the_server(api: kr8s.asyncio.Api, namespace: str, gadgets: None) -> None:
    """By every name they have; objects of kinds it does not know get a class."""
    assert await api.lookup_kind("deploy") == ("deployment.apps/v1", "deployments", True)
    assert await api.lookup_kind("ingress.networking.k8s.io") == ("ingress.networking.k8s.io/v1", "ingresses", True)
    await (await Gadget(manifest("a", namespace, spec={"size": 1}), api=api)).create()
    for name in ("gadgets", "gadget", "Gadget", "gd", "gadgets.test.example.com"):
        (found,) = [each async for each in api.get(name)]
        assert (found.kind, found.spec.size) == ("Gadget", 1), f"expected the gadget by the name {name!r}"
    assert {"v1", "apps/v1", "test.example.com/v1"} <= {each async for each in api.api_versions()}


async def test_kr8s_is_told_what_is_wrong(api: kr8s.asyncio.Api, namespace: str, gadgets: None) -> None:
    """With the server's own message and Status."""
    with pytest.raises(kr8s.ServerError, match=r"spec\.size: Invalid value") as caught:
        await (await Gadget(manifest("a", namespace, spec={"size": -1}), api=api)).create()
    assert caught.value.response.status_code == 422
    assert caught.value.status["details"]["causes"][0]["field"] == "spec.size"
    with pytest.raises(kr8s.NotFoundError):
        await (await ConfigMap(manifest("none", namespace), api=api)).delete()


async def test_kr8s_hands_children_to_their_owner(api: kr8s.asyncio.Api, namespace: str) -> None:
    """As a reference that names it."""
    owner, child = [await ConfigMap(manifest(name, namespace), api=api) for name in ("owner", "child")]
    await owner.create()
    await child.create()
    await owner.adopt(child)
    (reference,) = (await ConfigMap.get("child", namespace=namespace, api=api)).metadata.ownerReferences
    assert (reference.kind, reference.name, reference.uid) == ("ConfigMap", "owner", owner.metadata.uid)


async def test_kr8s_asks_what_is_ready(api: kr8s.asyncio.Api, namespace: str) -> None:
    """Pods and Services by their status and selectors."""
    pod = await Pod.gen(name="web", namespace=namespace, image="nginx:1", labels={"app": "web"})
    pod.api, pod.spec["serviceAccountName"] = api, "robot"
    await (await ServiceAccount(manifest("robot", namespace), api=api)).create()
    await pod.create()
    assert not await pod.ready()
    ready = [{"type": kind, "status": "True"} for kind in ("Ready", "ContainersReady")]
    await pod.patch({"status": {"phase": "Running", "conditions": ready}}, subresource="status")
    assert await pod.ready()
    spec = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
    service = await Service(manifest("web", namespace, spec=spec), api=api)
    await service.create()
    assert [each.name for each in await service.ready_pods()] == ["web"]
    await pod.delete(force=True)
    await pod.wait("delete", timeout=LIMIT)
