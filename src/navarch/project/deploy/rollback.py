"""Returns to an earlier revision: its release, with the CRDs that the stored objects still need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from navarch.api import Dynamic, Kind
from navarch.client import Client
from navarch.errors import DeployError, NotFound
from navarch.project.deploy.release import Release
from navarch.project.deploy.revisions import Revision
from navarch.project.manifests.model import Json
from navarch.schema import compare_crds

__all__ = ["choose_revision", "release_to_restore"]

_CRDS: Final = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", plural="customresourcedefinitions", namespaced=False
)


def choose_revision(known: Sequence[Revision], number: int | None) -> Revision:
    """Returns that revision; without a number, the last one before the newest whose operator has worked.

    Raises `DeployError` if there is none, with those that there are.
    """
    newest = known[-1].number
    there = ", ".join(f"{each.number} ({each.state})" for each in known)
    if number is None:
        found = next((each for each in reversed(known) if each.number < newest and each.state == "deployed"), None)
        if found is None:
            raise DeployError(
                f"{known[-1].release.project}: expected an earlier revision that was deployed, got {there}; name one, or "
                f"deploy a release that works: navarch deploy"
            )
        return found
    found = next((each for each in known if each.number == number), None)
    if found is None or found.number == newest:
        raise DeployError(f"expected the number of an earlier revision, got {number}; there are {there}")
    return found


async def release_to_restore(
    client: Client, known: Sequence[Revision], chosen: Revision, *, force: bool = False
) -> tuple[Release, list[str]]:
    """Returns the release of the chosen revision, and the CRDs that stay as they are because the older ones lack something.

    Raises `DeployError` if a version in which objects may be stored would be lost; `force` does not change that.
    """
    newest = {each["metadata"]["name"]: each for each in known[-1].release.crds}
    kept: dict[str, Json] = {}
    for older in chosen.release.crds:
        name = older["metadata"]["name"]
        found = await _read(client, name)
        if found is None:
            continue
        _refuse_stored(found, older, chosen)
        if not force and name in newest and any(each.is_breaking for each in compare_crds(found, older)):
            kept[name] = newest[name]
    objects = [kept.get(each["metadata"]["name"], each) if _is_crd(each) else each for each in chosen.release.objects]
    return msgspec.structs.replace(chosen.release, objects=objects), sorted(kept)


def _is_crd(found: Json) -> bool:
    return bool(found["kind"] == _CRDS.kind)


async def _read(client: Client, name: str) -> Dynamic | None:
    try:
        return await client.get(_CRDS, name)
    except NotFound:
        return None


def _refuse_stored(found: Mapping[str, Any], older: Mapping[str, Any], chosen: Revision) -> None:
    versions = [each["name"] for each in older["spec"]["versions"]]
    stored = (found.get("status") or {}).get("storedVersions") or ()
    lost = [each for each in stored if each not in versions]
    if lost:
        name = older["metadata"]["name"]
        raise DeployError(
            f"CRD {name}: expected revision {chosen.number} to know every version in which objects may be stored, but it has "
            f"{', '.join(versions)} and not {', '.join(lost)}; deploy a release that has both versions and stores "
            f"{versions[-1]}, rewrite the objects: navarch migrate {name}, and roll back then"
        )
