"""An operator with webhooks works once these are registered, trusted, have endpoints, and answer."""

from __future__ import annotations

import msgspec
import pytest

from navarch.api import Dynamic, Kind
from navarch.client import Client
from navarch.project.deploy.release import Release, release_of
from navarch.project.deploy.webhook_probe import webhook_obstacle
from navarch.project.generate import load_deployment
from navarch.webhook.configurations import VALIDATING
from project.deploy.deployments import NAMESPACE, PROJECT, deployed, exists, removal, undeployed, without
from project.small_project import forgotten_code, write_project

SERVICE = "cache-operator-webhook-service"
BUNDLE = "Y2E="
SLICES = Kind("discovery.k8s.io", "v1", "EndpointSlice", plural="endpointslices")


@pytest.fixture(scope="module")
def packed_with_webhook(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The release of the small project with its webhook, rendered once."""
    with forgotten_code():
        project = write_project(tmp_path_factory.mktemp("project"), webhook=True)
        return msgspec.json.encode(release_of(load_deployment(project)))


@pytest.fixture
def served(packed_with_webhook: bytes) -> Release:
    return msgspec.json.decode(packed_with_webhook, type=Release)


def registration(bundle: str) -> Dynamic:
    """What the operator would register."""
    service = {"namespace": NAMESPACE, "name": SERVICE, "path": "/validate", "port": 443}
    rule = {
        "apiGroups": ["cache.example.com"],
        "apiVersions": ["v1alpha1"],
        "operations": ["CREATE"],
        "resources": ["memcacheds"],
    }
    webhook = {
        "name": "memcached.example.com",
        "clientConfig": {"service": service, **({"caBundle": bundle} if bundle else {})},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 1,
    }
    metadata = {"name": PROJECT}
    return Dynamic(
        {"apiVersion": VALIDATING.api_version, "kind": VALIDATING.kind, "metadata": metadata, "webhooks": [webhook]}
    )


def endpoints(address: str) -> Dynamic:
    """A ready endpoint of the webhooks, at which nothing listens."""
    labels = {"kubernetes.io/service-name": SERVICE}
    return Dynamic(
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"name": "probe", "namespace": NAMESPACE, "labels": labels},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
            "ports": [{"name": "webhook", "port": 9443, "protocol": "TCP"}],
        }
    )


async def test_each_step_until_the_webhooks_answer_is_named(client: Client, served: Release) -> None:
    """What is missing is the obstacle: the registration, the CA bundle, an endpoint, an answer."""
    assert served.registered == [VALIDATING.kind]
    await deployed(client, served)
    assert "has not registered its ValidatingWebhookConfiguration cache-operator yet" in await webhook_obstacle(
        client, served
    )
    await client.create(registration(""))
    assert await webhook_obstacle(client, served) == "webhook memcached.example.com has no CA bundle yet"
    await client.delete(VALIDATING, PROJECT)
    await client.create(registration(BUNDLE))
    assert f"Service {NAMESPACE}/{SERVICE} has no ready endpoint" in await webhook_obstacle(client, served)
    await client.create(endpoints("10.99.0.1"))
    for _ in range(100):  # a real server learns of a registration a moment later
        if obstacle := await webhook_obstacle(client, served):
            break
        await client.clock.sleep(0.1)
    assert "webhook memcached.example.com: it does not answer: " in obstacle
    assert "failed calling webhook" in obstacle
    await client.delete(SLICES, "probe", namespace=NAMESPACE)


async def test_registration_of_an_operator_goes_with_its_webhooks(client: Client, served: Release) -> None:
    """A release without webhooks leaves none behind that nobody answers, and neither does undeploy."""
    await deployed(client, served)
    await client.create(registration(BUNDLE))
    assert (await removal(client)).counts()["ValidatingWebhookConfiguration"] == 1
    await deployed(client, msgspec.structs.replace(without(served, "Service"), registered=[], certificates=""))
    assert not await exists(client, VALIDATING, PROJECT)
    await client.create(registration(BUNDLE))
    await undeployed(client, delete_crds=True)
    assert not await exists(client, VALIDATING, PROJECT)


async def test_release_without_webhooks_has_no_obstacle(client: Client, release: Release) -> None:
    """Nothing is asked for."""
    assert await webhook_obstacle(client, release) == ""
