"""docs/versions.md, executed on both engines: a kind grows through three releases, and its objects with it."""

from __future__ import annotations

from contextlib import suppress
from types import ModuleType
from typing import Any

import pytest

from conformance.controllers.watching import until_gone
from conformance.test_webhooks import running
from docs.pages import blocks, module_from
from navarch.api import Kind
from navarch.client import Client, Config, MergePatch
from navarch.errors import NotFound
from navarch.operator.migration import migrate

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


async def _stored_versions(client: Client) -> Any:
    return (await client.get(CRDS, NAME))["status"]["storedVersions"]


async def test_kind_grows_from_v1alpha1_to_v1(client: Client, config: Config, releases: list[ModuleType]) -> None:
    """Objects of every release are carried over, no client loses a field, and `storedVersions` is clean at the end."""
    try:
        await _grown(client, *releases)
    finally:
        with suppress(NotFound):
            await client.delete(CRDS, NAME)
        await until_gone(client, CRDS, NAME)


async def _grown(client: Client, first: ModuleType, second: ModuleType, third: ModuleType) -> None:
    async with running(client, first.operator):
        await client.create(first.Server(name="old", spec=first.ServerSpec(size_gb=20, public=True)))
    async with running(client, second.operator):
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
    async with running(client, third.operator):
        encrypted = MergePatch({"spec": {"disk": {"encrypted": True}}})
        await client.patch(third.LastServer, "new", encrypted)
        await client.patch(third.OldServer, "new", MergePatch({"metadata": {"labels": {"touched": "yes"}}}))
        assert await _stored_versions(client) == ["v1alpha1", "v1beta1", "v1"]
        state = await migrate(client, NAME)
        assert (state.completed, state.rewritten, state.unchanged) == (True, 1, 1)
        assert await _stored_versions(client) == ["v1"]
        found = {server.name: server async for server in client.list(third.LastServer)}
        assert (str(found["old"].spec.disk.size), found["old"].spec.exposure) == ("20G", "Public")
        assert (str(found["new"].spec.disk.size), found["new"].spec.disk.encrypted) == ("1500M", True)
        assert found["new"].labels == {"touched": "yes"}
