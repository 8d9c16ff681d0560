"""`rollback` deploys an earlier revision again, and never loses a version in which objects are stored."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from navarch.client import Client
from navarch.errors import DeployError
from navarch.project.deploy.release import Release
from navarch.project.deploy.revisions import RevisionHistory
from navarch.project.deploy.rollback import choose_revision, release_to_restore
from project.deploy.deployments import (
    CRD_NAME,
    CRDS,
    DEPLOYMENT,
    DEPLOYMENTS,
    NAMESPACE,
    PROJECT,
    deployed,
    with_object,
)


def with_field(release: Release, name: str) -> Release:
    """The release of a later project, whose kind has one more field."""

    def change(crd: dict[str, Any]) -> None:
        for version in crd["spec"]["versions"]:
            version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"][name] = {"type": "string"}

    return with_object(release, change, "CustomResourceDefinition")


def with_version(release: Release, name: str, *, is_stored: bool) -> Release:
    """The release of a later project, whose kind has one more version."""

    def change(crd: dict[str, Any]) -> None:
        versions = crd["spec"]["versions"]
        newer = msgspec.json.decode(msgspec.json.encode(versions[0]))
        versions[0]["storage"] = not is_stored
        versions.append({**newer, "name": name, "storage": is_stored})

    return with_object(release, change, "CustomResourceDefinition")


async def test_rollback_restores_the_last_revision_that_worked_as_a_new_one(client: Client, release: Release) -> None:
    """One that failed is passed over."""
    history = RevisionHistory(client, PROJECT, NAMESPACE)
    await deployed(client, release)
    await deployed(client, release.with_image("controller:v2"))
    bad, _ = await deployed(client, release.with_image("controller:bad"))
    await history.set_state(bad, "failed")
    known = await history.read()
    restored, kept = await release_to_restore(client, known, choose_revision(known, None))
    assert (restored.image, kept) == ("controller:v2", [])
    revision, _ = await deployed(client, restored)
    assert revision.number == 4
    found = await client.get(DEPLOYMENTS, DEPLOYMENT, namespace=NAMESPACE)
    assert found["spec"]["template"]["spec"]["containers"][0]["image"] == "controller:v2"
    assert choose_revision(await history.read(), 1).release.image == "controller:latest"


async def test_revision_that_does_not_exist_is_answered_with_those_that_do(client: Client, release: Release) -> None:
    """The current one is none to return to, and neither is any if there is only one."""
    await deployed(client, release)
    known = await RevisionHistory(client, PROJECT, NAMESPACE).read()
    with pytest.raises(DeployError, match=r"expected an earlier revision that was deployed, got 1 \(deployed\)"):
        choose_revision(known, None)
    for number in (1, 9):
        with pytest.raises(DeployError, match=rf"got {number}; there are 1 \(deployed\)"):
            choose_revision(known, number)


async def test_rollback_that_would_lose_a_stored_version_is_refused(client: Client, release: Release) -> None:
    """With the version, the CRD and the remedy, and before anything is written."""
    await deployed(client, release)
    await deployed(client, with_version(release, "v1", is_stored=True))
    known = await RevisionHistory(client, PROJECT, NAMESPACE).read()
    with pytest.raises(DeployError, match=rf"has v1alpha1 and not v1; .* navarch migrate {CRD_NAME}"):
        await release_to_restore(client, known, choose_revision(known, None), force=True)


async def test_crd_stays_where_the_older_one_lacks_a_field(client: Client, release: Release) -> None:
    """Objects keep the field, and the older operator works with the newer CRD; force restores the older one."""
    await deployed(client, release)
    await deployed(client, with_field(release.with_image("controller:v2"), "note"))
    known = await RevisionHistory(client, PROJECT, NAMESPACE).read()
    restored, kept = await release_to_restore(client, known, choose_revision(known, None))
    assert (restored.image, kept) == ("controller:latest", [CRD_NAME])
    await deployed(client, restored)
    schema = (await client.get(CRDS, CRD_NAME))["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert "note" in schema["properties"]["spec"]["properties"]
    forced, kept = await release_to_restore(client, known, choose_revision(known, 1), force=True)
    assert kept == []
    await deployed(client, forced, force=True)
    schema = (await client.get(CRDS, CRD_NAME))["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert "note" not in schema["properties"]["spec"]["properties"]
