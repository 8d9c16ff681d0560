"""`lightkube`: dataclasses and one client, with and without asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest
from lightkube import ApiError, AsyncClient, Client, KubeConfig, codecs, operators
from lightkube.generic_resource import create_namespaced_resource, load_in_cluster_generic_resources
from lightkube.models.apps_v1 import DeploymentSpec
from lightkube.models.authentication_v1 import TokenRequestSpec
from lightkube.models.authorization_v1 import ResourceAttributes, SelfSubjectAccessReviewSpec
from lightkube.models.autoscaling_v1 import ScaleSpec
from lightkube.models.core_v1 import Container, PodSpec, PodTemplateSpec
from lightkube.models.meta_v1 import LabelSelector, ObjectMeta
from lightkube.models.networking_v1 import (
    IngressBackend,
    IngressLoadBalancerIngress,
    IngressLoadBalancerStatus,
    IngressServiceBackend,
    IngressSpec,
    IngressStatus,
    ServiceBackendPort,
)
from lightkube.resources.apiextensions_v1 import CustomResourceDefinition
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.authentication_v1 import SelfSubjectReview
from lightkube.resources.authorization_v1 import SelfSubjectAccessReview
from lightkube.resources.core_v1 import ConfigMap, Event, Namespace, Service, ServiceAccount, ServiceAccountToken
from lightkube.resources.networking_v1 import Ingress
from lightkube.types import CascadeType, PatchType

from conformance.clients.mounting import Mount
from conformance.conftest import Compacting

LIMIT = 60.0
MINE = {"suite": "clients"}
BACKEND = IngressBackend(service=IngressServiceBackend(name="web", port=ServiceBackendPort(number=80)))
Gadget: Any = create_namespaced_resource(
    "test.example.com",
    "v1",
    "Gadget",
    "gadgets",
    verbs=["delete", "deletecollection", "get", "global_list", "global_watch", "list", "patch", "post", "put", "watch"],
)


@pytest.fixture
def light(kubeconfig: str, namespace: str) -> Iterator[Client]:
    with Client(KubeConfig.from_file(kubeconfig), namespace=namespace, field_manager="me") as light:
        yield light


def config_map(name: str, **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, labels=MINE), data=data)


def deployment(namespace: str) -> Deployment:
    template = PodTemplateSpec(
        metadata=ObjectMeta(labels={"app": "web"}), spec=PodSpec(containers=[Container(name="web", image="nginx:1")])
    )
    return Deployment(
        metadata=ObjectMeta(name="web", namespace=namespace),
        spec=DeploymentSpec(replicas=1, selector=LabelSelector(matchLabels={"app": "web"}), template=template),
    )


def test_lightkube_logs_in(kubeconfig: str, certificate_kubeconfig: str) -> None:
    """With a token and with a client certificate."""
    for file in (kubeconfig, certificate_kubeconfig):
        with Client(KubeConfig.from_file(file)) as light:
            assert "system:masters" in light.create(SelfSubjectReview()).status.userInfo.groups
            assert light.get(Namespace, "default").status.phase == "Active"


def test_lightkube_finds_the_cluster_from_inside(mount: Mount, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the folder and the environment of a pod."""
    for name, value in mount.environment.items():
        monkeypatch.setenv(name, value)
    with Client(KubeConfig.from_service_account(str(mount.folder))) as light:
        assert light.namespace == namespace
        user = light.create(SelfSubjectReview()).status.userInfo
    assert user.username == f"system:serviceaccount:{namespace}:robot"


def test_lightkube_goes_through_the_life_of_an_object(light: Client, namespace: str) -> None:
    """Created, read, replaced, deleted, and gone."""
    made = light.create(config_map("a", colour="red"))
    assert made.metadata.creationTimestamp.tzinfo is not None
    made.data["colour"] = "blue"
    light.replace(made)
    assert light.get(ConfigMap, "a").data == {"colour": "blue"}
    light.delete(ConfigMap, "a", cascade=CascadeType.BACKGROUND)
    with pytest.raises(ApiError, match='configmaps "a" not found') as caught:
        light.get(ConfigMap, "a")
    assert (caught.value.status.code, caught.value.status.reason) == (404, "NotFound")
    assert (caught.value.status.details.name, caught.value.status.details.kind) == ("a", "configmaps")


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        (PatchType.JSON, [{"op": "add", "path": "/data/k", "value": "v"}]),
        (PatchType.MERGE, {"data": {"k": "v"}}),
        (PatchType.STRATEGIC, {"data": {"k": "v"}}),
        (PatchType.STRATEGIC, ConfigMap(data={"k": "v"})),
    ],
)
def test_lightkube_patches(light: Client, kind: PatchType, patch: Any) -> None:
    """In every form that it knows."""
    light.create(config_map("a", j="u"))
    assert light.patch(ConfigMap, "a", patch, patch_type=kind).data == {"j": "u", "k": "v"}


def test_lightkube_applies(light: Client, namespace: str) -> None:
    """Refused where another manager is, unless forced; a dry run changes nothing."""
    wanted = config_map("a", k="1")
    wanted.metadata.namespace = namespace
    light.apply(wanted, field_manager="first")
    wanted.data["k"] = "2"
    with pytest.raises(ApiError, match='conflict with "first"') as caught:
        light.apply(wanted, field_manager="second")
    assert caught.value.status.reason == "Conflict"
    assert light.apply(wanted, field_manager="second", force=True, dry_run=True).data == {"k": "2"}
    assert light.get(ConfigMap, "a").data == {"k": "1"}
    assert light.apply(wanted, field_manager="second", force=True).data == {"k": "2"}


def test_lightkube_lists_in_chunks_and_by_selectors(light: Client, namespace: str) -> None:
    """Every object once, and only those asked for."""
    for number in range(5):
        light.create(ConfigMap(metadata=ObjectMeta(name=f"m{number}", labels={**MINE, "odd": str(number % 2)})))
    assert [each.metadata.name for each in light.list(ConfigMap, labels=MINE, chunk_size=2)] == [
        f"m{number}" for number in range(5)
    ]
    odd = light.list(ConfigMap, labels={"odd": operators.in_(["1"]), "even": operators.not_exists()})
    assert [each.metadata.name for each in odd] == ["m1", "m3"]
    named = light.list(ConfigMap, fields={"metadata.name": "m2"})
    assert [each.metadata.name for each in named] == ["m2"]
    others = light.list(ConfigMap, labels=MINE, fields={"metadata.name": operators.not_equal("m2")}, namespace="*")
    assert {each.metadata.name for each in others if each.metadata.namespace == namespace} == {"m0", "m1", "m3", "m4"}
    light.deletecollection(ConfigMap)
    assert list(light.list(ConfigMap, labels=MINE)) == []


def test_lightkube_watches(light: Client) -> None:
    """What is there, then what changes; from a version on, and until the server ends it."""
    made = light.create(config_map("a"))
    events = light.watch(ConfigMap, labels=MINE)
    assert next(events)[0] == "ADDED"
    light.patch(ConfigMap, "a", {"data": {"k": "v"}})
    light.delete(ConfigMap, "a")
    assert [kind for kind, _ in islice(events, 2)] == ["MODIFIED", "DELETED"]
    events.close()
    later = light.watch(ConfigMap, labels=MINE, resource_version=made.metadata.resourceVersion, server_timeout=60)
    assert [kind for kind, _ in islice(later, 2)] == ["MODIFIED", "DELETED"]
    later.close()


async def test_lightkube_is_told_that_a_version_is_gone(light: Client, namespace: str, compacting: Compacting) -> None:
    """As an error with the code that its own recovery looks for."""
    about = {"kind": "Namespace", "name": namespace, "namespace": namespace}
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "a"}, "involvedObject": about}
    old = light.create(Event.from_dict(event)).metadata.resourceVersion
    for message in ("b", "c"):
        patched = light.patch(Event, "a", {"message": message})
    await compacting(patched.metadata.resourceVersion)
    with pytest.raises(ApiError) as caught:
        next(light.watch(Event, resource_version=old))
    assert caught.value.status.code == 410


def test_lightkube_writes_status_and_scale(light: Client, namespace: str) -> None:
    """As classes of their own."""
    light.create(deployment(namespace))
    scaled = light.replace(
        Deployment.Scale(metadata=ObjectMeta(name="web", namespace=namespace), spec=ScaleSpec(replicas=3)), "web"
    )
    assert scaled.spec.replicas == 3
    made = light.create(Ingress(metadata=ObjectMeta(name="web"), spec=IngressSpec(defaultBackend=BACKEND)))
    made.status = IngressStatus(
        loadBalancer=IngressLoadBalancerStatus(ingress=[IngressLoadBalancerIngress(ip="1.2.3.4")])
    )
    written = light.replace(Ingress.Status(metadata=made.metadata, spec=made.spec, status=made.status), "web")
    assert written.status.loadBalancer.ingress[0].ip == "1.2.3.4"
    patched = light.patch(Ingress.Status, "web", {"status": {"loadBalancer": {"ingress": [{"ip": "5.6.7.8"}]}}})
    assert [each.ip for each in patched.status.loadBalancer.ingress] == ["5.6.7.8"]


def test_lightkube_asks_about_access(light: Client, namespace: str) -> None:
    """Tokens of ServiceAccounts, and what one may do."""
    light.create(ServiceAccount(metadata=ObjectMeta(name="robot")))
    request = ServiceAccountToken(metadata=ObjectMeta(), spec=TokenRequestSpec(audiences=[], expirationSeconds=600))
    assert light.create(request, "robot").status.token.count(".") == 2
    may = ResourceAttributes(namespace=namespace, verb="delete", resource="pods")
    review = SelfSubjectAccessReview(spec=SelfSubjectAccessReviewSpec(resourceAttributes=may))
    assert light.create(review).status.allowed


def test_lightkube_handles_custom_objects(light: Client, gadgets: None) -> None:
    """With status, scale and the classes that it makes from the cluster's definitions."""
    load_in_cluster_generic_resources(light)
    assert "gadgets.test.example.com" in [each.metadata.name for each in light.list(CustomResourceDefinition)]
    made = light.create(Gadget(metadata={"name": "a", "labels": MINE}, spec={"size": 1}))
    made["spec"]["size"] = 2
    assert light.replace(made)["metadata"]["generation"] == 2
    light.patch(Gadget.Status, "a", {"status": {"phase": "Ready"}}, patch_type=PatchType.MERGE)
    light.patch(Gadget.Scale, "a", {"spec": {"replicas": 3}}, patch_type=PatchType.MERGE)
    found = light.get(Gadget, "a")
    assert (found.spec, found.status) == ({"size": 2, "replicas": 3}, {"phase": "Ready"})
    with pytest.raises(ApiError) as caught:
        light.create(Gadget(metadata={"name": "b"}, spec={"size": -1}))
    assert [cause.field for cause in caught.value.status.details.causes] == ["spec.size"]
    light.delete(Gadget, "a")
    assert list(light.list(Gadget)) == []


def test_lightkube_creates_what_stands_in_a_file(light: Client, namespace: str) -> None:
    """Several documents of several kinds."""
    text = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n"
        "apiVersion: v1\nkind: Service\nmetadata: {name: b}\nspec: {ports: [{port: 80}]}\n"
    )
    for each in codecs.load_all_yaml(text):
        light.create(each, namespace=namespace)
    assert light.get(Service, "b").spec.ports[0].targetPort == 80


async def test_lightkube_waits_for_conditions(kubeconfig: str, namespace: str, gadgets: None) -> None:
    """By a watch of one object, with asyncio."""
    condition = {"type": "Available", "status": "True"}
    config = KubeConfig.from_file(kubeconfig)
    async with asyncio.timeout(LIMIT), AsyncClient(config, namespace=namespace) as light, asyncio.TaskGroup() as group:
        await light.create(Gadget(metadata={"name": "a"}))
        waiting = group.create_task(light.wait(Gadget, "a", for_conditions=["Available"]))
        await light.patch(Gadget.Status, "a", {"status": {"conditions": [condition]}}, patch_type=PatchType.MERGE)
        assert (await waiting).metadata.name == "a"
        assert [each.metadata.name async for each in light.list(Gadget, chunk_size=1)] == ["a"]
