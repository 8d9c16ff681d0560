"""Nothing is made where there is no namespace, or in one that ends."""

from __future__ import annotations

import pytest

from navarch.api import Dynamic
from navarch.errors import Forbidden, NotFound
from navarch.k8s.core.v1 import ConfigMap, Namespace
from navarch.testing import Cluster


async def test_nothing_is_made_without_a_namespace(cluster: Cluster) -> None:
    """By create or apply; what is wrong with the object does not count then."""
    for made in (cluster.create, cluster.apply):
        with pytest.raises(NotFound, match='namespaces "nope" not found'):
            await made(ConfigMap(name="a"), namespace="nope")
    with pytest.raises(NotFound, match='namespaces "nope" not found'):
        await cluster.create(ConfigMap(name="NOT A NAME"), namespace="nope")


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
async def test_some_namespaces_cannot_be_deleted(cluster: Cluster, name: str) -> None:
    """Kubernetes cannot do without them."""
    with pytest.raises(Forbidden, match=f'namespaces "{name}" is forbidden: this namespace may not be deleted'):
        await cluster.delete(Namespace, name)


async def test_nothing_new_is_made_in_a_namespace_that_ends(cluster: Cluster) -> None:
    """What is there can still be changed and deleted."""
    await cluster.create(Namespace(name="ending"))
    kept = await cluster.create(ConfigMap(name="kept"), namespace="ending")
    await cluster.delete(Namespace, "ending")
    status = (await cluster.get(Namespace, "ending")).status
    assert status is not None
    assert status.phase == "Terminating"
    for metadata, said in (({"name": "a"}, "a"), ({"generateName": "a-"}, "a-")):
        with pytest.raises(Forbidden) as caught:
            await cluster.create(
                Dynamic({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}), namespace="ending"
            )
        expected = "unable to create new content in namespace ending because it is being terminated"
        assert f'configmaps "{said}" is forbidden: {expected}' in str(caught.value)
        assert [cause.reason for cause in caught.value.causes] == ["NamespaceTerminating"]
    kept.data = {"k": "v"}
    await cluster.client.replace(kept)
    await cluster.delete(ConfigMap, "kept", namespace="ending")
