"""`kubernetes`, the official client: what it watches, and what it builds on watches and leases."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from queue import Queue
from typing import Any

import pytest
from kubernetes import client as k8s
from kubernetes import informer, watch
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.configmaplock import ConfigMapLock
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

from conformance.conftest import Compacting
from navarch.client import Client

LIMIT = 60
MINE = "suite=clients"


@pytest.fixture
def core(api: k8s.ApiClient) -> k8s.CoreV1Api:
    return k8s.CoreV1Api(api)


def config_map(name: str, **data: str) -> k8s.V1ConfigMap:
    return k8s.V1ConfigMap(metadata=k8s.V1ObjectMeta(name=name, labels={"suite": "clients"}), data=data)


def taken(events: Iterator[dict[str, Any]], count: int) -> list[tuple[str, str]]:
    """The next events as type and name."""
    return [(event["type"], event["object"].metadata.name) for event in islice(events, count)]


def test_official_client_watches_within_its_time(core: k8s.CoreV1Api, namespace: str) -> None:
    """What is there, then what changes; the server ends it when it was asked to."""
    core.create_namespaced_config_map(namespace, config_map("a"))

    def watched(seconds: int) -> Iterator[dict[str, Any]]:
        kinds = core.list_namespaced_config_map
        return iter(watch.Watch().stream(kinds, namespace, label_selector=MINE, timeout_seconds=seconds))

    events = watched(LIMIT)
    seen = taken(events, 1)
    core.patch_namespaced_config_map("a", namespace, {"data": {"k": "v"}})
    core.delete_namespaced_config_map("a", namespace)
    seen += taken(events, 2)
    assert seen == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
    assert list(watched(1)) == [], "expected the watch to end after the seconds it was given"


def test_official_client_goes_on_where_it_was(core: k8s.CoreV1Api, namespace: str) -> None:
    """From the version of a list, and after its stream was cut."""
    core.create_namespaced_config_map(namespace, config_map("a"))
    version = core.list_namespaced_config_map(namespace).metadata.resource_version
    core.create_namespaced_config_map(namespace, config_map("b"))
    watching, own = watch.Watch(), "metadata.name!=kube-root-ca.crt"  # which a controller makes, sooner or later
    events = watching.stream(core.list_namespaced_config_map, namespace, resource_version=version, field_selector=own)
    assert taken(events, 1) == [("ADDED", "b")]
    watching.stop()
    core.create_namespaced_config_map(namespace, config_map("c"))
    again = watching.stream(
        core.list_namespaced_config_map, namespace, resource_version=watching.resource_version, field_selector=own
    )
    assert taken(again, 1) == [("ADDED", "c")]
    again.close()
    events.close()


async def test_official_client_is_told_that_a_version_is_gone(
    core: k8s.CoreV1Api, client: Client, namespace: str, compacting: Compacting
) -> None:
    """As the exception that its users look for."""
    event = k8s.CoreV1Event(
        metadata=k8s.V1ObjectMeta(name="a"),
        involved_object=k8s.V1ObjectReference(kind="Namespace", name=namespace, namespace=namespace),
    )
    old = core.create_namespaced_event(namespace, event).metadata.resource_version
    for message in ("b", "c"):
        patched = core.patch_namespaced_event("a", namespace, {"message": message})
    await compacting(patched.metadata.resource_version)
    with pytest.raises(k8s.ApiException) as caught:
        list(watch.Watch().stream(core.list_namespaced_event, namespace, resource_version=old, timeout_seconds=LIMIT))
    assert caught.value.status == 410


def test_official_informer_keeps_a_copy(core: k8s.CoreV1Api, namespace: str) -> None:
    """Told of every change, with a cache that has what the server has."""
    core.create_namespaced_config_map(namespace, config_map("a"))
    told: Queue[tuple[str, str]] = Queue()
    copy = informer.SharedInformer(core.list_namespaced_config_map, namespace=namespace, label_selector=MINE)
    for kind in ("ADDED", "MODIFIED", "DELETED"):
        copy.add_event_handler(kind, lambda found, kind=kind: told.put((kind, found.metadata.name)))
    copy.start()
    try:
        assert told.get(timeout=LIMIT) == ("ADDED", "a")
        core.create_namespaced_config_map(namespace, config_map("b"))
        core.patch_namespaced_config_map("b", namespace, {"data": {"k": "v"}})
        core.delete_namespaced_config_map("a", namespace)
        seen = [told.get(timeout=LIMIT) for _ in range(3)]
        assert seen == [("ADDED", "b"), ("MODIFIED", "b"), ("DELETED", "a")]
        assert [(found.metadata.name, found.data) for found in copy.cache.list()] == [("b", {"k": "v"})]
    finally:
        copy.stop()


@pytest.mark.parametrize("kind", [LeaseLock, ConfigMapLock])
def test_official_election_has_one_leader(api: k8s.ApiClient, namespace: str, kind: type[Any]) -> None:
    """Who comes first holds the lock; who comes second stays a follower."""
    first, second = (leaderelection.LeaderElection(_candidate(kind, namespace, name)) for name in ("first", "second"))
    assert first.try_acquire_or_renew()
    assert not second.try_acquire_or_renew()
    assert first.try_acquire_or_renew(), "expected the leader to renew what it holds"
    _, record = kind("lock", namespace, "reader").get("lock", namespace)
    assert record.holder_identity == "first"


def _candidate(kind: type[Any], namespace: str, name: str) -> electionconfig.Config:
    return electionconfig.Config(
        kind("lock", namespace, name),
        lease_duration=30,
        renew_deadline=20,
        retry_period=1,
        onstarted_leading=lambda: None,
        onstopped_leading=None,
    )
