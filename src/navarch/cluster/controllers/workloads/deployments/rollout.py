"""`Rollout`: the ReplicaSets of one Deployment, read and written within one reconcile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from navarch.api import controller_of
from navarch.cluster.controllers.workloads.deployments.replica_counts import (
    ReplicaSetSize,
    bounds_of,
    grown,
    has_deadline,
    is_rolling,
    progressing,
    set_condition,
)
from navarch.cluster.controllers.workloads.deployments.revisions import (
    DESIRED,
    MOST,
    REVISION,
    annotations_of_new,
    by_age,
    by_revision,
    new_among,
    new_replica_set,
    newest_revision,
    number_on,
)
from navarch.cluster.controllers.workloads.pod_creation import is_ending, reason_of
from navarch.cluster.controllers.workloads.pods import is_deleting
from navarch.controller import Context
from navarch.errors import AlreadyExists, NavarchError
from navarch.k8s.apps.v1 import Deployment, ReplicaSet

_NO_LIMIT = 2**31 - 1


def size_of(replica_set: ReplicaSet) -> ReplicaSetSize:
    """How large it is, and what it was sized for."""
    return ReplicaSetSize(
        asked=replica_set.spec.replicas or 0,
        available=replica_set.status.available_replicas or 0,
        most=number_on(replica_set, MOST),
    )


class Rollout:
    """The new ReplicaSet, which may not be there yet, and the old ones, the oldest first."""

    def __init__(self, deployment: Deployment, replica_sets: Sequence[ReplicaSet], ctx: Context) -> None:
        self.deployment = deployment
        self.bounds = bounds_of(deployment)
        self.new = new_among(deployment, replica_sets)
        self.old = by_age(each for each in replica_sets if each is not self.new)
        self._ctx = ctx

    @property
    def all(self) -> list[ReplicaSet]:
        """Old and new."""
        return [*self.old, self.new] if self.new else self.old

    @property
    def active(self) -> list[ReplicaSet]:
        """Those that ask for pods."""
        return [each for each in self.all if each.spec.replicas]

    async def number(self) -> None:
        """Notes on the new ReplicaSet and on the Deployment which version it is."""
        new = self.new
        if new is None:
            return
        notes = annotations_of_new(self.deployment, new.annotations, newest_revision(self.old) + 1)
        waits = self.deployment.spec.min_ready_seconds or 0
        if notes or (new.spec.min_ready_seconds or 0) != waits:
            changes = {"metadata": {"annotations": notes}, "spec": {"minReadySeconds": waits}}
            new = await self._changed(new, changes)
        await self._note_revision(new.annotations.get(REVISION, ""))
        if has_deadline(self.deployment) and not self._says_progress:
            self._tell_progress("True", "FoundNewReplicaSet", f'Found new replica set "{new.name}"')

    @property
    def _says_progress(self) -> bool:
        return any(each.type == "Progressing" for each in self.deployment.status.conditions or ())

    def _tell_progress(self, status: str, reason: str, message: str) -> None:
        set_condition(self.deployment.status, progressing(status, reason, message), self._ctx.now())

    async def _note_revision(self, revision: str) -> None:
        if revision and self.deployment.annotations.get(REVISION) != revision:
            written = await self._ctx.patch(self.deployment, {"metadata": {"annotations": {REVISION: revision}}})
            self.deployment.metadata = written.metadata

    async def create(self) -> None:
        """Makes the ReplicaSet of the new template, as large as is allowed at once."""
        wanted = new_replica_set(self.deployment)
        total = sum(each.spec.replicas or 0 for each in self.old)
        size = grown(self.bounds, 0, total) if is_rolling(self.deployment) else self.bounds.replicas
        wanted.spec.replicas = size
        notes = annotations_of_new(self.deployment, {}, newest_revision(self.old) + 1)
        wanted.annotations = {**notes, **self._sized_for}
        try:
            self.new = await self._ctx.create(wanted)
        except AlreadyExists:
            await self._found(wanted.name)
            return
        except NavarchError as error:
            self._tell_failure(wanted.name, error)
            raise
        self._tell_created(self.new, size)
        await self._note_revision(self.new.annotations[REVISION])

    async def _found(self, name: str) -> None:
        """Another template may have the same hash: then the next name is tried."""
        found = await self._ctx.client.get(ReplicaSet, name, namespace=self.deployment.namespace)
        owner = controller_of(found)
        if owner is not None and owner.uid == self.deployment.metadata.uid and new_among(self.deployment, [found]):
            self.new = found
            return
        status = self.deployment.status
        status.collision_count = (status.collision_count or 0) + 1
        raise AlreadyExists(f"replicasets {name!r} stands for another template", code=409, reason="AlreadyExists")

    def _tell_created(self, new: ReplicaSet, size: int) -> None:
        if size:
            self._ctx.event("ScalingReplicaSet", f"Scaled up replica set {new.name} from 0 to {size}")
        if has_deadline(self.deployment):
            self._tell_progress("True", "NewReplicaSetCreated", f'Created new replica set "{new.name}"')

    def _tell_failure(self, name: str, error: NavarchError) -> None:
        if is_ending(error):
            return
        message = f'Failed to create new replica set "{name}": {reason_of(error)}'
        if has_deadline(self.deployment):
            self._tell_progress("False", "ReplicaSetCreateError", message)
        self._ctx.event("ReplicaSetCreateError", message, type="Warning")

    @property
    def _sized_for(self) -> dict[str, str]:
        return {DESIRED: str(self.bounds.replicas), MOST: str(self.bounds.most)}

    async def scale(self, replica_set: ReplicaSet, size: int, *, note: bool = False) -> bool:
        """Returns True if its size had to be changed; with `note`, what it is sized for is noted even if not."""
        before = replica_set.spec.replicas or 0
        noted = all(replica_set.annotations.get(key) == value for key, value in self._sized_for.items())
        if before == size and (noted or not note):
            return False
        await self._changed(replica_set, {"metadata": {"annotations": self._sized_for}, "spec": {"replicas": size}})
        if before == size:
            return False
        way = "up" if before < size else "down"
        self._ctx.event("ScalingReplicaSet", f"Scaled {way} replica set {replica_set.name} from {before} to {size}")
        return True

    async def _changed(self, replica_set: ReplicaSet, changes: dict[str, Any]) -> ReplicaSet:
        written = await self._ctx.patch(replica_set, changes)
        if self.new is not None and self.new.name == written.name:
            self.new = written
        else:
            self.old = [written if each.name == written.name else each for each in self.old]
        return written

    async def forget_history(self) -> None:
        """Deletes the oldest versions, as far as there are more than are to be kept."""
        limit = self.deployment.spec.revision_history_limit
        if limit is None or limit == _NO_LIMIT:
            return
        idle = [each for each in by_revision(self.old) if not is_deleting(each)]
        for each in idle[: max(len(idle) - limit, 0)]:
            seen = (each.status.observed_generation or 0) >= each.metadata.generation
            if seen and not each.spec.replicas and not each.status.replicas:
                await self._ctx.delete(each)
                self.old.remove(each)
