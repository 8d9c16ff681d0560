"""Classes that are generated from what a server says of a CRD."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from conformance.test_described import document_of
from navarch.client import Client
from navarch.k8s.apiextensions.v1 import CustomResourceDefinition
from navarch.project.models import kinds_in, kinds_in_openapi, model_files, write_models
from project.models.sameness import differences, imported
from project.models.test_golden import GOLDEN, crds

GROUP = "store.example.com"


async def _published(client: Client) -> dict[str, Any]:
    """The OpenAPI document of the kind, which a server publishes some time after it serves the kind."""
    limit = client.clock.monotonic() + 60
    while client.clock.monotonic() < limit:
        found = await document_of(client, f"apis/{GROUP}/v1")
        if "components" in found:
            return found
        await client.clock.sleep(0.1)
    raise AssertionError(f"expected an OpenAPI document of {GROUP}/v1 within 60 s, got {found}")


async def test_a_server_describes_the_classes_of_its_crds(client: Client, tmp_path: Path) -> None:
    """As CRDs, which the server has completed, and as OpenAPI, which lacks short names and columns."""
    (manifest,) = crds(GOLDEN / "shop.yaml")
    await client.install(manifest)
    try:
        stored = await client.get(CustomResourceDefinition.__kind__, manifest.name)
        write_models(tmp_path / "crd", model_files(kinds_in([("a cluster", stored)])))
        with imported(tmp_path / "crd", "stored") as models:
            assert differences(manifest, models.classes_of(manifest)) == []
        described = await _published(client)
        write_models(tmp_path / "openapi", model_files(kinds_in_openapi("openapi", described)))
        first = {**manifest, "spec": {**manifest["spec"], "versions": manifest["spec"]["versions"][:1]}}
        with imported(tmp_path / "openapi", "described") as models:
            differing = differences(first, models.classes_of(first))
        assert [path for path in differing if ".schema" in path or ".scope" in path] == []
    finally:
        await client.delete(CustomResourceDefinition, manifest.name)
