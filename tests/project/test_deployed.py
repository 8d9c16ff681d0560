"""The rendered objects on an embedded cluster: all are accepted, and the Deployment runs with exactly its roles."""

from __future__ import annotations

from base64 import b64encode
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from navarch._base.clock import SystemClock
from navarch.api import Dynamic
from navarch.certificates import CertificateAuthority, CertificateSubject
from navarch.errors import ApiError
from navarch.k8s.core.v1 import ConfigMap
from navarch.testing import Cluster
from project.deployments import ACCOUNT, MEMCACHED, NAMESPACE, SECONDS, deployed, memcached, objects, ready
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
    before = [await _content(cluster, each) for each in wanted]
    for each in wanted:
        await cluster.apply(each)
    assert [await _content(cluster, each) for each in wanted] == before


async def _content(cluster: Cluster, wanted: Dynamic) -> Any:
    """The object without what controllers write meanwhile."""
    kind = await cluster.client.discovery.kind_of(wanted)
    found = await cluster.client.get(kind, wanted.name, namespace=wanted.namespace or None)
    for name in ("annotations", "generation", "managedFields", "resourceVersion"):
        found.metadata.pop(name, None)
    return {name: value for name, value in found.items() if name != "status"}


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


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_webhooks_of_manifests_work_with_a_certificate_of_others(tmp_path: Path) -> None:
    """The operator finds its registration as its code declares it, and serves the certificate that cert-manager would bring."""
    settings = 'certificates = "cert-manager"'
    project = write_project(tmp_path / "project", settings=settings, webhook=True)
    async with deployed(project, tmp_path, prepare=issue) as cluster:
        await ready(cluster)
        await cluster.create(memcached("small", 2))
        with pytest.raises(ApiError, match="expected a size of at most 9"):
            await cluster.create(memcached("large", 10))
        assert not {record.uri for record in cluster.audit.records(user=ACCOUNT, code=403)}


def issue(wanted: list[Dynamic]) -> list[Dynamic]:
    """Does what cert-manager would do: a Secret with the certificate, and its CA in the webhook configuration."""
    now, month = SystemClock().now(), timedelta(days=30)
    authority = CertificateAuthority.create("tests", now, month)
    host = f"cache-operator-webhook-service.{NAMESPACE}.svc"
    pair = authority.issue(CertificateSubject(hosts=(host,)), now, month)
    data = {"tls.crt": b64encode(pair.certificate).decode(), "tls.key": b64encode(pair.key).decode()}
    metadata = {"name": "cache-operator-webhook-server-cert", "namespace": NAMESPACE}
    secret = Dynamic(
        {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "kubernetes.io/tls", "data": data}
    )
    for each in wanted:
        if each.kind == "ValidatingWebhookConfiguration":
            for webhook in each["webhooks"]:
                webhook["clientConfig"]["caBundle"] = b64encode(authority.pair.certificate).decode()
    namespace, *others = wanted
    return [namespace, secret, *others]
