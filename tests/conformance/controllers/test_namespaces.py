"""Namespaces that are deleted, and what is in them."""

from __future__ import annotations

import pytest

from conformance.controllers.watching import until, until_gone
from gadgets import Gadget, installed
from navarch.api import ObjectMeta
from navarch.client import Client, JsonPatch
from navarch.errors import Forbidden
from navarch.k8s.core.v1 import (
    ConfigMap,
    Container,
    Namespace,
    Pod,
    PodSpec,
    Secret,
    ServiceAccount,
)

FINALIZER = "example.com/hold"
UNHOLD = JsonPatch([{"op": "remove", "path": "/metadata/finalizers"}])


async def new_namespace(client: Client) -> Client:
    """A client of a namespace that the test deletes itself."""
    made = await client.create(Namespace(metadata=ObjectMeta(generate_name="leaving-")))
    within = client.using(namespace=made.name)
    await until(lambda: within.get(ServiceAccount, "default"), lambda _: True, "an account for pods")
    return within


def name_of(client: Client) -> str:
    return client.options.namespace


async def conditions_of(client: Client) -> dict[str, tuple[str, str | None, str | None]]:
    found = await client.get(Namespace, name_of(client))
    return {each.type: (each.status, each.reason, each.message) for each in found.status.conditions or ()}


async def test_namespace_goes_with_everything_in_it(client: Client) -> None:
    """Objects of all kinds go, custom ones included, and then the namespace."""
    await installed(client)
    within = await new_namespace(client)
    await within.create(ConfigMap(name="one"))
    await within.create(Secret(name="two"))
    await within.create(Gadget(name="three"))
    await client.delete(Namespace, name_of(within))
    await until_gone(client, Namespace, name_of(within))
    for kind in (ConfigMap, Secret, Gadget, ServiceAccount):
        assert not await within.list(kind), f"expected no {kind.__name__} to be left"


async def test_namespace_waits_for_finalizers_and_says_for_which(client: Client) -> None:
    """The conditions say what is left, in how many objects, and for what it waits."""
    within = await new_namespace(client)
    for name in ("one", "two"):
        await within.create(ConfigMap(metadata=ObjectMeta(name=name, finalizers=[FINALIZER])))
    await client.delete(Namespace, name_of(within))
    expected = {
        "NamespaceDeletionDiscoveryFailure": ("False", "ResourcesDiscovered", "All resources successfully discovered"),
        "NamespaceDeletionGroupVersionParsingFailure": (
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        "NamespaceDeletionContentFailure": (
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        "NamespaceContentRemaining": (
            "True",
            "SomeResourcesRemain",
            "Some resources are remaining: configmaps. has 2 resource instances",
        ),
        "NamespaceFinalizersRemaining": (
            "True",
            "SomeFinalizersRemain",
            f"Some content in the namespace has finalizers remaining: {FINALIZER} in 2 resource instances",
        ),
    }
    # The first time, discovery may stumble over kinds of tests before that are just going.
    await until(lambda: conditions_of(within), lambda found: found == expected, f"conditions that say {expected}")
    assert (await client.get(Namespace, name_of(within))).status.phase == "Terminating"
    for name in ("one", "two"):
        await within.patch(ConfigMap, name, UNHOLD)
    await until_gone(client, Namespace, name_of(within))


async def test_pods_go_before_all_else(client: Client) -> None:
    """While a pod is still there, nothing is taken from under it."""
    within = await new_namespace(client)
    await within.create(ConfigMap(name="settings"))
    await within.create(Pod(name="pod", spec=PodSpec(containers=[Container(name="main", image="none")])))
    await within.bind("pod", "nowhere")
    await within.patch(Pod, "pod", JsonPatch([{"op": "add", "path": "/metadata/finalizers", "value": [FINALIZER]}]))
    await client.delete(Namespace, name_of(within))
    await until(
        lambda: within.get(Pod, "pod"), lambda found: found.metadata.deletion_timestamp is not None, "the pod to go"
    )
    await until(lambda: conditions_of(within), lambda found: found, "the namespace to say how far it is")
    assert (await within.get(ConfigMap, "settings")).metadata.deletion_timestamp is None
    await within.patch(Pod, "pod", UNHOLD)
    await within.delete(Pod, "pod", grace_seconds=0)
    await until_gone(client, Namespace, name_of(within))


async def test_namespace_that_is_leaving_takes_nothing_new(client: Client) -> None:
    """What would have to be deleted again is refused."""
    within = await new_namespace(client)
    await within.create(ConfigMap(metadata=ObjectMeta(name="held", finalizers=[FINALIZER])))
    await client.delete(Namespace, name_of(within))
    with pytest.raises(Forbidden) as refused:
        await within.create(ConfigMap(name="late"))
    assert any(cause.reason == "NamespaceTerminating" for cause in refused.value.causes)
    await within.patch(ConfigMap, "held", UNHOLD)
    await until_gone(client, Namespace, name_of(within))
