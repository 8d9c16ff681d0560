"""The pods of one StatefulSet, and what is done to them."""

from __future__ import annotations

from collections import Counter

from navarch.api import to_builtins
from navarch.cluster.controllers.workloads.making import is_ending, reason_of, tell_some
from navarch.cluster.controllers.workloads.pods import is_deleting
from navarch.cluster.controllers.workloads.statefulsets.identity import (
    claim_names,
    claims_of,
    has_identity,
    has_storage,
    identity_labels,
    ordinal_of,
)
from navarch.cluster.controllers.workloads.statefulsets.retention import (
    belongs_to_former,
    changed_owners,
    has_other_controller,
)
from navarch.controller import Context, Retry
from navarch.errors import NavarchError
from navarch.k8s.apps.v1 import StatefulSet
from navarch.k8s.core.v1 import PersistentVolumeClaim, Pod


class Members:
    """Makes, mends and deletes pods with their claims, and tells of it."""

    def __init__(self, stateful_set: StatefulSet, ctx: Context) -> None:
        self._set = stateful_set
        self._ctx = ctx
        self._told: Counter[str] = Counter()
        self.acted = False
        """Whether any pod came or went: what follows from that can be done at once."""

    async def create(self, pod: Pod) -> None:
        """Makes the pod and the claims that it lacks; not while claims of a former one are about to go."""
        if await self._has_claims_of_former(pod):
            raise Retry(f"claims of a former pod {pod.name} are about to go", after=1.0)
        try:
            await self.claim(pod)
            made = await self._ctx.create(pod)
        except NavarchError as error:
            self._tell_failure("Create", pod, error)
            raise
        await self.own_claims(made)
        self._tell("Create", pod)

    async def _has_claims_of_former(self, pod: Pod) -> bool:
        policy = self._set.spec.persistent_volume_claim_retention_policy
        if policy is None or policy.when_scaled != "Delete":
            return False
        claims = await self._claims(pod)
        return any(belongs_to_former(claim, pod) for claim in claims)

    async def _claims(self, pod: Pod) -> list[PersistentVolumeClaim]:
        names = claim_names(self._set, ordinal_of(pod)).values()
        found = [await self._ctx.get(PersistentVolumeClaim, name) for name in names]
        return [claim for claim in found if claim is not None]

    async def claim(self, pod: Pod) -> None:
        """Makes the claims of a pod that are not there; one that is on its way out has to be gone first."""
        for volume, name in claim_names(self._set, ordinal_of(pod)).items():
            found = await self._ctx.get(PersistentVolumeClaim, name)
            if found is None:
                claim = claims_of(self._set, ordinal_of(pod))[volume]
                await self._ctx.create(claim, owned=False)
                note = f"Create Claim {claim.name} Pod {pod.name} in StatefulSet {self._set.name} success"
                self._tell_some("SuccessfulCreate", note)
            elif is_deleting(found):
                raise Retry(f"pvc {name} is being deleted", after=1.0)

    async def own_claims(self, pod: Pod) -> None:
        """Gives the claims of a pod the owners that the set's policy asks for."""
        for claim in await self._claims(pod):
            owners = changed_owners(claim, self._set, pod)
            if owners is None:
                continue
            if has_other_controller(claim, self._set, pod):
                note = f"PersistentVolumeClaim {claim.name} has a conflicting OwnerReference that acts as a managing controller"
                self._ctx.event("ConflictingController", note, type="Warning")
            await self._ctx.patch(claim, {"metadata": {"ownerReferences": to_builtins(owners) or None}})

    async def mend(self, pod: Pod) -> None:
        """Gives a pod back the labels by which it is known, and its claims."""
        if not has_storage(self._set, pod):
            await self.claim(pod)
        if not has_identity(pod):
            await self._ctx.patch(pod, {"metadata": {"labels": identity_labels(self._set, ordinal_of(pod))}})
            self._tell("Update", pod)
        await self.own_claims(pod)

    async def delete(self, pod: Pod) -> None:
        """Lets the pod go; its claims stay."""
        try:
            await self._ctx.delete(pod)
        except NavarchError as error:
            self._tell_failure("Delete", pod, error)
            raise
        self._tell("Delete", pod)

    def _tell(self, verb: str, pod: Pod) -> None:
        self.acted = True
        self._tell_some(f"Successful{verb}", f"{verb} Pod {pod.name} in StatefulSet {self._set.name} successful")

    def _tell_some(self, reason: str, note: str) -> None:
        tell_some(self._ctx, reason, note, self._told[reason])
        self._told[reason] += 1

    def _tell_failure(self, verb: str, pod: Pod, error: Exception) -> None:
        if not is_ending(error):
            note = f"{verb} Pod {pod.name} in StatefulSet {self._set.name} failed error: {reason_of(error)}"
            self._ctx.event(f"Failed{verb}", note, type="Warning")
