"""What few ask for, and the differential fuzzer found."""

from __future__ import annotations

from typing import Any

import pytest

from navarch.api import Dynamic
from navarch.client import Client, MergePatch
from navarch.errors import Conflict, Forbidden, Invalid
from navarch.k8s.apps.v1 import Deployment
from navarch.k8s.core.v1 import PersistentVolume, Service

_LONG_AGO = "2020-01-01T00:00:00Z"


def _deployment(name: str, *ports: dict[str, Any]) -> Dynamic:
    containers = [{"name": "c", "image": "i", "ports": [*ports]}]
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": containers}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    return Dynamic({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec})


def _fields(refused: pytest.ExceptionInfo[Invalid]) -> list[str]:
    return [cause.field for cause in refused.value.causes]


async def test_pod_has_a_port_of_the_machine_once(client: Client) -> None:
    """At one address and for one protocol."""
    port = {"containerPort": 80, "hostPort": 80}
    others = [{**port, "protocol": "UDP"}, {**port, "hostIP": "127.0.0.1"}]
    with pytest.raises(Invalid) as refused:
        await client.create(_deployment("twice", port, *others, {**port, "containerPort": 81}))
    assert _fields(refused) == ["spec.template.spec.containers[0].ports[3].hostPort"]


async def test_object_without_a_name_is_refused_as_unknown(client: Client) -> None:
    """By admission, which comes before its name is missed."""
    spec = {"containers": [{"name": "c", "image": "i"}], "priority": 1}
    with pytest.raises(Forbidden) as refused:
        await client.create(Dynamic({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": spec}))
    assert 'pods "Unknown" is forbidden' in str(refused.value)


async def test_service_of_no_known_type_is_refused_for_that_alone(client: Client) -> None:
    """What its type has no use for goes before it is checked."""
    spec = {"type": "LoadBalancer", "ports": [{"port": 80}]}
    await client.create(Dynamic({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "odd"}, "spec": spec}))
    with pytest.raises(Invalid) as refused:
        await client.patch(Service, "odd", MergePatch({"spec": {"type": "Other"}}))
    assert _fields(refused) == ["spec.type"]


async def test_address_of_a_load_balancer_says_how_it_is_used(client: Client) -> None:
    """An address does, a name does not."""
    spec = {"type": "LoadBalancer", "ports": [{"port": 80}]}
    await client.create(Dynamic({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "lb"}, "spec": spec}))
    for ingress, fields in (
        ({"ip": "1.2.3.4", "ipMode": "Else"}, ["ipMode"]),
        ({"hostname": "a.example.com", "ipMode": "VIP"}, ["ipMode"]),
        ({"hostname": "1.2.3.4"}, ["hostname"]),
    ):
        patch = MergePatch({"status": {"loadBalancer": {"ingress": [ingress]}}})
        with pytest.raises(Invalid) as refused:
            await client.patch(Service, "lb", patch, subresource="status")
        assert _fields(refused) == [f"status.loadBalancer.ingress[0].{field}" for field in fields]


async def test_scale_is_checked_before_its_version(client: Client) -> None:
    """What can never be is told first."""
    await client.create(_deployment("scaled"))
    for replicas, error in ((-1, Invalid), (1, Conflict)):
        asked = MergePatch({"metadata": {"resourceVersion": "1"}, "spec": {"replicas": replicas}})
        with pytest.raises(error):
            await client.patch(Deployment, "scaled", asked, subresource="scale")


async def test_write_of_a_status_does_not_begin_an_end(client: Client) -> None:
    """It says that it cannot."""
    await client.create(_deployment("ending"))
    patch = MergePatch({"metadata": {"deletionTimestamp": _LONG_AGO}})
    with pytest.raises(Invalid) as refused:
        await client.patch(Deployment, "ending", patch, subresource="status")
    assert {*_fields(refused)} == {"metadata.deletionTimestamp"}


async def test_volume_notes_when_its_phase_changed(client: Client) -> None:
    """Or believes whoever changes it."""
    name = f"phases-{client.options.namespace}"
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    await client.create(
        Dynamic({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec})
    )
    trying = client.using(dry_run=True)
    assert await _phase(trying, name, {"phase": "Failed", "lastPhaseTransitionTime": _LONG_AGO}) == _LONG_AGO
    assert await _phase(trying, name, {"lastPhaseTransitionTime": None}) is not None
    assert await _phase(trying, name, {"phase": "Failed", "lastPhaseTransitionTime": None}) is not None
    await client.delete(PersistentVolume, name)


async def _phase(client: Client, name: str, status: dict[str, Any]) -> str | None:
    found = await client.patch(PersistentVolume, name, MergePatch({"status": status}), subresource="status")
    since = found.status.last_phase_transition_time
    return None if since is None else since.strftime("%Y-%m-%dT%H:%M:%SZ")


async def test_who_gives_up_all_fields_manages_none(client: Client) -> None:
    """Neither a last one nor an empty one is left to him."""
    for name, given in (("one", {"data": {"a": "b"}}), ("none", {"data": {}})):
        empty = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        ours = client.using(manager="bob")
        assert (await ours.apply(Dynamic({**empty, **given})))["metadata"]["managedFields"]
        left = await ours.apply(Dynamic(empty))
        assert "managedFields" not in left["metadata"]
        assert "data" not in left
