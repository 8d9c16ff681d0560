"""The rendered objects on an embedded cluster: all are accepted, and the Deployment runs with exactly its roles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from navarch.api import Dynamic
from navarch.errors import ApiError
from navarch.k8s.core.v1 import ConfigMap
from navarch.testing import Cluster
from project.deployments import ACCOUNT, MEMCACHED, SECONDS, deployed, memcached, objects, ready
from project.small_project import write_project


@pytest.mark.parametrize("certificates", ["self", "cert-manager"])
async def test_every_object_is_accepted(certificates: str, cluster: Cluster, tmp_path: Path) -> None:
    """Also by the namespace itself, which demands restricted pods; a second apply changes nothing."""
    settings = f'certificates = "{certificates}"\nprometheus = true\nnetwork-policy = true'
    wanted = objects(write_project(tmp_path, settings=settings, webhook=True))
    for each in wanted:
        await cluster.apply(each)
    kinds = {each.kind for each in wanted}
    assert {"NetworkPolicy", "Deployment", "CustomResourceDefinition", "Service"} <= kinds
    assert ("ValidatingWebhookConfiguration" in kinds) == (certificates == "cert-manager")
    before = [await _version(cluster, each) for each in wanted]
    for each in wanted:
        await cluster.apply(each)
    assert [await _version(cluster, each) for each in wanted] == before


async def _version(cluster: Cluster, wanted: Dynamic) -> Any:
    kind = await cluster.client.discovery.kind_of(wanted)
    found = await cluster.client.get(kind, wanted.name, namespace=wanted.namespace or None)
    return found.metadata["generation"] if wanted.kind == "Deployment" else found.metadata["resourceVersion"]


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_deployment_runs_unchanged_with_exactly_its_roles(tmp_path: Path) -> None:
    """As its own ServiceAccount: two replicas are ready, one reconciles, webhooks answer, and nothing is refused."""
    project = write_project(tmp_path / "project", webhook=True)
    async with deployed(project, tmp_path) as cluster:
        await ready(cluster)
        await cluster.create(memcached("sample", 2))
        await cluster.eventually(
            lambda: cluster.client.get(MEMCACHED, "sample"),
            lambda found: found.get("status", {}).get("nodes") == ["sample-0", "sample-1"],
            timeout=SECONDS,
            what="a reconciled Memcached",
        )
        assert (await cluster.get(ConfigMap, "sample")).data == {"size": "2"}
        with pytest.raises(ApiError, match="expected a size of at most 9"):
            await cluster.create(memcached("large", 10))
        assert not {record.uri for record in cluster.audit.records(user=ACCOUNT, code=403)}
