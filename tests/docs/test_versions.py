"""docs/versions.md, executed on the embedded cluster: a kind grows through three releases, and its objects with it.

`tests/conformance/test_conversion.py` converts and migrates on a real API server, too.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from docs.pages import blocks, module_from
from navarch.api import Kind
from navarch.client import MergePatch
from navarch.operator.migration import migrate
from navarch.testing import Cluster

CRDS = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", plural="customresourcedefinitions", namespaced=False
)
NAME = "servers.shop.example.com"


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> list[ModuleType]:
    """The page up to each of its operators, as a module."""
    found, source, folder = [], "", tmp_path_factory.mktemp("versions")
    for number, block in enumerate(blocks("versions.md", "python")):
        source += block
        if "Operator(" in block:
            file = folder / f"page_versions_{number}.py"
            file.write_text(source)
            found.append(module_from(file))
    return found


async def _stored_versions(cluster: Cluster) -> Any:
    return (await cluster.client.get(CRDS, NAME))["status"]["storedVersions"]


async def test_kind_grows_from_v1alpha1_to_v1(cluster: Cluster, releases: list[ModuleType]) -> None:
    """Objects of every release are carried over, no client loses a field, and `storedVersions` is clean at the end."""
    first, second, third = releases
    client = cluster.client
    async with cluster.run(first.operator):
        await client.create(first.Server(name="old", spec=first.ServerSpec(size_gb=20, public=True)))
    async with cluster.run(second.operator):
        old = await client.get(second.BetaServer, "old")
        assert (str(old.spec.disk), old.spec.exposure) == ("20G", "Public")
        spec = second.DiskServerSpec(disk=second.Quantity("1500M"), exposure="Partner")
        await client.create(second.BetaServer(name="new", spec=spec))
        seen = await client.get(second.OldServer, "new")
        assert (seen.spec.size_gb, seen.spec.public) == (1, False)
        await client.replace(seen)
        assert (await client.get(second.BetaServer, "new")).spec == spec
        await client.patch(second.OldServer, "new", MergePatch({"spec": {"public": True}}))
        changed = await client.get(second.BetaServer, "new")
        assert (str(changed.spec.disk), changed.spec.exposure, changed.annotations) == ("1500M", "Public", {})
    async with cluster.run(third.operator):
        encrypted = MergePatch({"spec": {"disk": {"encrypted": True}}})
        await client.patch(third.LastServer, "new", encrypted)
        await client.patch(third.OldServer, "new", MergePatch({"metadata": {"labels": {"touched": "yes"}}}))
        assert await _stored_versions(cluster) == ["v1alpha1", "v1beta1", "v1"]
        state = await migrate(client, NAME)
        assert (state.completed, state.rewritten, state.unchanged) == (True, 1, 1)
        assert await _stored_versions(cluster) == ["v1"]
        found = {server.name: server async for server in client.list(third.LastServer)}
        assert (str(found["old"].spec.disk.size), found["old"].spec.exposure) == ("20G", "Public")
        assert (str(found["new"].spec.disk.size), found["new"].spec.disk.encrypted) == ("1500M", True)
        assert found["new"].labels == {"touched": "yes"}


def test_conversions_survive_the_test_of_the_page(releases: list[ModuleType]) -> None:
    """The line of the page gives a test for each pair of versions."""
    test = releases[2].test_conversions
    (mark,) = test.pytestmark
    assert list(map(str, mark.args[1])) == ["Server v1alpha1 to v1beta1", "Server v1beta1 to v1alpha1"]
    for case in mark.args[1]:
        test(case)
