"""Applies the objects of a release one by one, and says what changed; as a dry run, what would change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from navarch.api import Dynamic, Kind
from navarch.api.merge_patch import differing_paths
from navarch.client import Client, Preconditions
from navarch.errors import Conflict, DeployError, NotFound
from navarch.operator.crds import install_crd
from navarch.project.deploy.ownership import foreign_mark, foreign_owner
from navarch.project.deploy.release import CRD, ObjectId, Release
from navarch.project.manifests.model import Json

__all__ = ["MANAGER", "AppliedObject", "Applier"]

MANAGER: Final = "navarch-deploy"
"""The field manager of everything but CRDs."""
_SERVERS_OWN: Final = frozenset({"creationTimestamp", "generation", "managedFields", "resourceVersion", "uid"})
_FIELDS_SHOWN: Final = 10
_BINDINGS: Final = frozenset({"RoleBinding", "ClusterRoleBinding"})


class AppliedObject(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one object, or would become of it."""

    kind: str
    namespace: str
    name: str
    result: Literal["created", "changed", "unchanged", "pruned", "used"]
    """`used`: a namespace of others, which is not written."""
    fields: list[str] = []
    """The fields that changed, at most ten."""

    @staticmethod
    def of(found: ObjectId, result: Any, fields: list[str] | None = None) -> AppliedObject:
        """Returns the change of that object."""
        return AppliedObject(
            kind=found.kind,
            namespace=found.namespace,
            name=found.name,
            result=result,
            fields=(fields or [])[:_FIELDS_SHOWN],
        )


class Applier:
    """Applies and prunes objects of one release. With `dry_run` the server checks everything and stores nothing."""

    def __init__(self, client: Client, release: Release, *, force: bool = False, dry_run: bool = False) -> None:
        self._client = client.using(manager=MANAGER, dry_run=dry_run)
        self._crds = client.using(manager=release.operator, dry_run=dry_run)
        self._release = release
        self._force = force
        self._dry_run = dry_run

    async def read(self, manifest: Json) -> Dynamic | None:
        """Returns the object that the cluster has under this name. Raises `DeployError` if it does not know the kind."""
        try:
            return await self._client.get(
                await self._kind(manifest),
                manifest["metadata"]["name"],
                namespace=manifest["metadata"].get("namespace"),
            )
        except NotFound:
            return None

    async def _kind(self, manifest: Json) -> Kind:
        try:
            return await self._client.discovery.kind(manifest["apiVersion"], manifest["kind"])
        except NotFound:
            raise DeployError(
                f"{ObjectId.of(manifest)}: expected the cluster to serve {manifest['apiVersion']}, got no such kind; install "
                f"what defines it, or leave it out: see [tool.navarch] in pyproject.toml"
            ) from None

    def refusal(self, manifest: Json, found: Dynamic | None) -> str:
        """Returns why the object must not be taken over; empty if it may. A CRD is judged when it is applied."""
        if found is None or self._force or manifest["kind"] == CRD:
            return ""
        owner = foreign_owner(found, self._release)
        return f"{ObjectId.of(manifest)} belongs to {owner}" if owner else ""

    async def apply(self, manifest: Json) -> AppliedObject:
        """Applies the object. Raises `DeployError` for fields of other managers, and for one that is being deleted."""
        identity = ObjectId.of(manifest)
        before = await self.read(manifest)
        if before is not None and before.metadata.get("deletionTimestamp") and manifest["kind"] != CRD:
            raise DeployError(
                f"{identity}: expected one that stays, got one that is being deleted; run the command again"
            )
        if manifest["kind"] == CRD:
            written = await self._install(manifest)
            return AppliedObject.of(identity, "created" if before is None else "changed" if written else "unchanged")
        after = await self._applied(manifest, identity)
        if before is None:
            return AppliedObject.of(identity, "created")
        fields = sorted(differing_paths(_comparable(before), _comparable(after)))
        return AppliedObject.of(identity, "changed" if fields else "unchanged", fields)

    async def _install(self, manifest: Json) -> bool:
        is_converted = manifest["metadata"]["name"] in self._release.converted
        return await install_crd(
            self._crds, manifest, force=self._force, is_converted=is_converted, remedy="navarch deploy --force"
        )

    async def _applied(self, manifest: Json, identity: ObjectId) -> Mapping[str, Any]:
        try:
            return await self._client.apply(Dynamic(manifest), force=self._force)
        except Conflict as error:
            raise DeployError(_conflict(identity, error)) from error
        except NotFound:
            if self._dry_run and manifest["kind"] in _BINDINGS:  # its role is not there yet
                return manifest
            raise

    async def prune(self, manifest: Json) -> AppliedObject | None:
        """Deletes an object that the release no longer has. Returns None if it is gone already, or belongs to others."""
        found = await self.read(manifest)
        if found is None or foreign_owner(found, self._release) or not await self._delete(manifest, found):
            return None
        return AppliedObject.of(ObjectId.of(manifest), "pruned")

    async def delete_written(self, manifest: Json) -> None:
        """Deletes what an operator has written for itself, unless it has the marks of others."""
        found = await self.read(manifest)
        if found is not None and not foreign_mark(found, self._release):
            await self._delete(manifest, found)

    async def _delete(self, manifest: Json, found: Dynamic) -> bool:
        """Returns False if somebody has deleted or replaced the object meanwhile."""
        is_same = Preconditions(uid=found.metadata["uid"])
        try:
            await self._client.delete(
                await self._kind(manifest), found.name, namespace=found.namespace or None, preconditions=is_same
            )
        except (NotFound, Conflict):
            return False
        return True


def _comparable(found: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the object without what the server and controllers write."""
    metadata = {name: value for name, value in found["metadata"].items() if name not in _SERVERS_OWN}
    annotations = metadata.get("annotations") or {}
    metadata["annotations"] = {
        name: value for name, value in annotations.items() if not name.startswith("deployment.kubernetes.io/")
    }
    return {name: value for name, value in {**found, "metadata": metadata}.items() if name != "status"}


def _conflict(identity: ObjectId, error: Conflict) -> str:
    owned = "; ".join(f"{each.message.removeprefix('conflict with ')}: {each.field}" for each in error.causes)
    return (
        f"{identity}: expected to own all fields that the project sets, but others have changed some ({owned or error.message}); "
        f"let the project say the same (config/patches, [tool.navarch]), let them take their change back, or take the fields "
        f"over: navarch deploy --force"
    )
