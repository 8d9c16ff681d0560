"""Installs the CRDs of a project into a cluster, and removes them with all of their objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from navarch.api import Dynamic, Kind
from navarch.client import ALL, Client, MetadataOnly
from navarch.errors import CrdError, NotFound
from navarch.operator.crds import install_crd, managers_of_spec
from navarch.operator.foreign_kinds import ForeignKind, foreign_kinds, missing_kinds
from navarch.project.generate import Deployment

__all__ = [
    "CrdObjects",
    "InstalledCrd",
    "crds_of",
    "install",
    "missing_foreign_kinds",
    "refuse_foreign_crds",
    "served_kinds",
    "stored_objects",
    "uninstall",
]

_CRDS: Final = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", plural="customresourcedefinitions", namespaced=False
)
_PAUSE_SECONDS: Final = 0.2
_SHOWN: Final = 5
_KUBECTL: Final = frozenset({"kubectl", "kubectl-client-side-apply", "before-first-apply"})


class InstalledCrd(msgspec.Struct, frozen=True):
    """What `install` did with one CRD."""

    crd: str
    result: Literal["installed", "unchanged", "missing"]
    """`missing`: a CRD of another project that the operator needs, and that the cluster does not have."""


class CrdObjects(msgspec.Struct, frozen=True, rename="camel"):
    """A CRD of the project that the cluster has, and what would be deleted with it."""

    crd: str
    objects: int
    with_finalizers: int
    """Objects that stay until a controller removes their finalizers."""
    applied_by: list[str]


def crds_of(deployment: Deployment) -> list[dict[str, Any]]:
    """Returns the CRDs of the deployment, after the user's patches."""
    return [each.object for each in deployment.manifests if each.object["kind"] == "CustomResourceDefinition"]


async def install(client: Client, deployment: Deployment, *, force: bool = False) -> list[InstalledCrd]:
    """Applies the CRDs of the deployment, as the operator itself would; writes only what differs.

    Raises `CrdError` for a change that takes something away, or for a CRD that another manager applied, unless `force` is set.
    """
    client = client.using(manager=deployment.model.operator.name)
    converted = {pair.old.__kind__.resource for pair in deployment.model.operator.conversions}
    done = []
    for wanted in crds_of(deployment):
        name = wanted["metadata"]["name"]
        written = await install_crd(
            client, wanted, force=force, is_converted=name in converted, remedy="navarch install --force"
        )
        done.append(InstalledCrd(name, "installed" if written else "unchanged"))
    return done


async def missing_foreign_kinds(client: Client, deployment: Deployment) -> list[ForeignKind]:
    """Returns the kinds of other projects that the operator needs and the cluster does not serve."""
    own = {each["metadata"]["name"] for each in crds_of(deployment)}
    return await missing_kinds(client, foreign_kinds(deployment.model.operator, own))


async def stored_objects(client: Client, crds: Iterable[Mapping[str, Any]]) -> list[CrdObjects]:
    """Returns those CRDs of these that the cluster has, each with the number of its objects."""
    found = []
    for wanted in crds:
        try:
            definition = await client.get(_CRDS, wanted["metadata"]["name"])
        except NotFound:
            continue
        count = finalizers = 0
        for kind in served_kinds(definition):
            async for each in client.list(MetadataOnly(kind), namespace=ALL):
                count += 1
                finalizers += bool(each.metadata.finalizers)
        found.append(CrdObjects(definition.name, count, finalizers, sorted(managers_of_spec(definition))))
    return found


def served_kinds(definition: Mapping[str, Any]) -> list[Kind]:
    """Returns one served version of the kind: each of them has all objects."""
    spec = definition["spec"]
    names = [each["name"] for each in spec["versions"] if each["served"]]
    namespaced = spec["scope"] == "Namespaced"
    return [
        Kind(spec["group"], name, spec["names"]["kind"], plural=spec["names"]["plural"], namespaced=namespaced)
        for name in names[:1]
    ]


async def uninstall(
    client: Client,
    operator: str,
    stored: Sequence[CrdObjects],
    *,
    force: bool = False,
    seconds: float = 60.0,
) -> None:
    """Deletes these CRDs with all of their objects, and returns when they are gone.

    Raises `CrdError` for a CRD that somebody else than this operator or kubectl applied, unless `force` is set, and for objects
    whose finalizers nobody removes in time.
    """
    if not force:
        refuse_foreign_crds(operator, stored)
    for each in stored:
        try:
            await client.delete(_CRDS, each.crd)
        except NotFound:
            continue
    await _gone(client, [each.crd for each in stored], seconds)


def refuse_foreign_crds(operator: str, stored: Sequence[CrdObjects]) -> None:
    """Raises `CrdError` for CRDs that neither this operator nor kubectl applied."""
    own = _KUBECTL | {operator}
    foreign = [each for each in stored if each.applied_by and not own & set(each.applied_by)]
    if foreign:
        told = "; ".join(f"{each.crd} was applied by {', '.join(each.applied_by)}" for each in foreign)
        raise CrdError(
            f"expected CRDs that navarch or kubectl applied, but {told}; remove them with that tool, or: navarch uninstall --force"
        )


async def _gone(client: Client, names: Iterable[str], seconds: float) -> None:
    limit = client.clock.monotonic() + seconds
    for name in names:
        while (definition := await _found(client, name)) is not None:
            if client.clock.monotonic() > limit:
                raise CrdError(await _held(client, definition, seconds))
            await client.clock.sleep(_PAUSE_SECONDS)


async def _found(client: Client, name: str) -> Dynamic | None:
    try:
        return await client.get(_CRDS, name)
    except NotFound:
        return None


async def _held(client: Client, definition: Dynamic, seconds: float) -> str:
    """Returns which objects keep the CRD, and what to do about it."""
    left = [
        f"{each.metadata.namespace}/{each.metadata.name}".lstrip("/")
        for kind in served_kinds(definition)
        async for each in client.list(MetadataOnly(kind), namespace=ALL)
    ]
    shown = ", ".join(left[:_SHOWN]) + (", ..." if len(left) > _SHOWN else "")
    return (
        f"CRD {definition.name}: expected it to be gone within {seconds:g} s, but it waits for the finalizers of {len(left)} "
        f"objects ({shown}); let the operator run until they are gone, or remove their finalizers by hand"
    )
