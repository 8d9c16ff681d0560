"""What the API server takes and refuses, and what old manifests become."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from etcd_operator.kinds import EtcdCluster
from etcd_operator.operator import etcd_operator
from navarch.api import Dynamic
from navarch.errors import Invalid
from navarch.testing import Cluster

STORAGE = {"size": "1Gi"}


def manifest(spec: Mapping[str, Any]) -> Dynamic:
    return Dynamic(
        {
            "apiVersion": "etcd.database.coreos.com/v1beta2",
            "kind": "EtcdCluster",
            "metadata": {"name": "example", "namespace": "default"},
            "spec": dict(spec),
        }
    )


@pytest.mark.cluster(controllers=False)
async def test_a_manifest_of_coreos_is_taken_as_it_is(cluster: Cluster) -> None:
    """Size and version alone, and every field that there was."""
    async with cluster.run(etcd_operator()):
        await cluster.create(manifest({"size": 3, "version": "3.2.13", "paused": True}))
        found = await cluster.get(EtcdCluster, "example")
        assert (found.spec.size, found.spec.version, found.spec.repository) == (3, "3.2.13", "quay.io/coreos/etcd")
        await cluster.delete(EtcdCluster, "example")
        pod = {
            "labels": {"a": "b"},
            "nodeSelector": {"disk": "ssd"},
            "antiAffinity": True,
            "tolerations": [{"key": "k", "operator": "Exists"}],
            "etcdEnv": [{"name": "ETCD_DEBUG", "value": "1"}],
            "busyboxImage": "busybox:1.28.0-glibc",
            "DNSTimeoutInSecond": 5,
            "ClusterDomain": ".cluster.local",
            "persistentVolumeClaimSpec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
        tls = {"static": {"member": {"peerSecret": "p", "serverSecret": "s"}, "operatorSecret": "o"}}
        await cluster.create(manifest({"size": 5, "pod": pod, "TLS": tls, "paused": True}))
        kept = await cluster.get(EtcdCluster, "example")
        assert kept.spec.pod is not None
        assert kept.spec.pod.cluster_domain == ".cluster.local"


@pytest.mark.cluster(controllers=False)
@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"size": -1}, "spec.size"),
        ({"size": 1000}, "spec.size"),
        ({"size": 0}, "there are none: set storage"),
        ({"version": "newest"}, "spec.version"),
        ({"size": 3, "storage": {}}, "spec.storage.size"),
    ],
)
async def test_nonsense_is_refused_at_the_door(cluster: Cluster, spec: Mapping[str, Any], words: str) -> None:
    """With the field, or the remedy."""
    async with cluster.run(etcd_operator()):
        with pytest.raises(Invalid, match=words):
            await cluster.create(manifest(spec))


@pytest.mark.cluster(controllers=False)
async def test_a_name_that_is_too_long_for_pods_is_refused_at_the_door(cluster: Cluster) -> None:
    """Instead of being left alone without a word."""
    async with cluster.run(etcd_operator()):
        long = manifest({"size": 1})
        long.metadata["name"] = "x" * 53
        with pytest.raises(Invalid, match="at most 52"):
            await cluster.create(long)


@pytest.mark.cluster(controllers=False)
async def test_a_version_that_goes_down_or_leaps_is_refused_at_the_door(cluster: Cluster) -> None:
    """Against the version that runs."""
    async with cluster.run(etcd_operator()):
        await cluster.create(manifest({"size": 0, "version": "3.5.21", "storage": STORAGE, "paused": True}))
        running = await cluster.eventually(
            lambda: cluster.get(EtcdCluster, "example"), lambda found: found.status.phase
        )
        running.status.current_version = "3.5.21"
        await cluster.client.replace_status(running)
        for version in ("3.4.30", "3.7.0", "4.5.0"):
            with pytest.raises(Invalid, match="one minor version at a time"):
                await cluster.apply(manifest({"version": version, "storage": STORAGE, "size": 0}), force=True)
        await cluster.apply(manifest({"version": "v3.6.8", "storage": STORAGE, "size": 0}), force=True)
