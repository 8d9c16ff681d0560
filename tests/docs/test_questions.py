"""docs/questions.md: its code does what it says."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from docs.pages import blocks, module_from
from navarch.api import Dynamic, Kind
from navarch.schema import crd
from navarch.testing import Cluster


@pytest.fixture
def page(tmp_path: Path) -> ModuleType:
    """Without the line that sets up logging for the whole process."""
    file = tmp_path / "page_questions.py"
    file.write_text("\n".join(block for block in blocks("questions.md", "python") if "setup(" not in block))
    return module_from(file)


async def test_kind_without_a_class_calls_the_reconciler(cluster: Cluster, page: ModuleType) -> None:
    """When one of its objects comes, and when it changes."""
    await cluster.client.install(_definition(page.CERTIFICATES))
    async with cluster.run(page.operator):
        await cluster.apply(page.Site(name="shop", spec=page.SiteSpec(host="shop.example.com")))
        await _has_secret(cluster, page, "first")
        await _has_secret(cluster, page, "second")


async def test_what_kopf_left_is_taken_off(cluster: Cluster, page: ModuleType) -> None:
    """And nothing else."""
    await cluster.client.install(crd(page.Site))
    site = page.Site(name="shop", spec=page.SiteSpec(host="shop.example.com"))
    site.metadata.annotations = {"kopf.zalando.org/last-handled-configuration": "{}", "team": "web"}
    site.metadata.finalizers = [page.FINALIZER, "example.com/other"]
    await cluster.create(site)
    await page.leave_kopf(cluster.client)
    found = await cluster.get(page.Site, "shop")
    assert (found.annotations, found.metadata.finalizers) == ({"team": "web"}, ["example.com/other"])


async def _has_secret(cluster: Cluster, page: ModuleType, secret: str) -> None:
    """Returns when the site has the secret that its certificate names by now."""
    await cluster.client.apply(_certificate("shop", secret), namespace="default")
    await cluster.until(page.Site, "shop", lambda it: it.status.secret == secret)


def _definition(kind: Kind) -> dict[str, Any]:
    """As somebody else brings it, with any fields."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": kind.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": kind.kind, "plural": kind.plural, "singular": kind.kind.lower(), "listKind": f"{kind.kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.resource},
        "spec": {"group": kind.group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def _certificate(name: str, secret: str) -> Dynamic:
    return Dynamic(
        apiVersion="cert-manager.io/v1", kind="Certificate", metadata={"name": name}, spec={"secretName": secret}
    )
