"""What the server serves."""

import pytest

from conformance.controllers.watching import until
from gadgets import GADGET, installed
from navarch.api import Dynamic, Kind
from navarch.client import Client
from navarch.errors import NotFound


async def test_kind_is_found_by_its_name(client: Client) -> None:
    """With plural, scope and subresources as the server has them."""
    found = await client.discovery.kind("apps/v1", "Deployment")
    assert found == Kind("apps", "v1", "Deployment", plural="deployments")
    namespace = await client.discovery.kind("v1", "Namespace")
    assert (namespace.plural, namespace.namespaced) == ("namespaces", False)
    assert not (await client.discovery.kind("v1", "ConfigMap")).has_status


async def test_kind_that_is_not_served_is_an_error_with_what_is(client: Client) -> None:
    """A typo is seen at once."""
    with pytest.raises(NotFound, match=r"expected apps/v1 to serve Deploiment, got .*Deployment.*is its CRD installed"):
        await client.discovery.kind("apps/v1", "Deploiment")
    with pytest.raises(NotFound, match=r"nowhere\.example\.com/v1.*is the CRD installed"):
        await client.discovery.kind("nowhere.example.com/v1", "Thing")


async def test_object_of_a_kind_that_is_not_served_cannot_be_made(client: Client) -> None:
    """The same error, before anything is written."""
    with pytest.raises(NotFound, match="expected apps/v1 to serve Thing"):
        await client.create(Dynamic({"apiVersion": "apps/v1", "kind": "Thing", "metadata": {"name": "a"}}))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("deploy", "Deployment"),
        ("deployments", "Deployment"),
        ("deployment", "Deployment"),
        ("Deployment", "Deployment"),
        ("deployments.apps", "Deployment"),
        ("deployments.v1.apps", "Deployment"),
        ("po", "Pod"),
        ("svc", "Service"),
        ("crd", "CustomResourceDefinition"),
    ],
)
async def test_resource_is_found_by_any_of_its_names(client: Client, name: str, kind: str) -> None:
    """As kubectl would take them."""
    assert (await client.discovery.find(name)).kind.kind == kind


async def test_name_that_nothing_has_is_not_found(client: Client) -> None:
    """Nor with a group that is not its own."""
    for name in ("things", "deployments.batch", "deployments.apps.example.com"):
        with pytest.raises(NotFound, match="expected the name of a resource"):
            await client.discovery.find(name)


async def test_everything_that_is_served_is_listed(client: Client) -> None:
    """With verbs, short names and subresources; in agreement with what is looked up by name."""
    served = {resource.kind.resource: resource for resource in await client.discovery.all()}
    assert {"pods", "configmaps", "deployments.apps", "leases.coordination.k8s.io"} <= served.keys()
    pods = served["pods"]
    assert {"get", "list", "watch", "create"} <= set(pods.verbs)
    assert pods.short_names == ("po",)
    assert {"log", "exec", "status", "eviction"} <= set(pods.subresources)
    assert pods.kind == await client.discovery.kind("v1", "Pod")


async def test_new_kind_is_found_without_being_told(client: Client) -> None:
    """What is not known is asked for once more; the real server tells of a new kind a moment after it serves it."""
    with pytest.raises(NotFound):
        await client.discovery.kind("v1", "Gadget")
    await installed(client)
    found = await until(lambda: client.discovery.kind("test.example.com/v1", "Gadget"), bool, "the kind in its group")
    assert found == GADGET
    short = await until(lambda: client.discovery.find("gd"), bool, "the kind by its short name")
    assert short.subresources == ("status", "scale")


async def test_version_is_told(client: Client) -> None:
    """As kubectl shows it."""
    version = await client.discovery.version()
    assert version.git_version.startswith(f"v{version.major}.")
