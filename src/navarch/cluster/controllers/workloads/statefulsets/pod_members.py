"""The pods of one StatefulSet: their ordinals, names, labels and claims."""

from __future__ import annotations

import re
from collections import Counter

from navarch.api import Object, OwnerReference, is_owned_by, owner_reference, to_builtins
from navarch.cluster.controllers.workloads.pod_creation import is_ending, pod_of, reason_of, tell_some
from navarch.cluster.controllers.workloads.pods import is_deleting
from navarch.controller import Context, Retry
from navarch.errors import NavarchError
from navarch.k8s.apps.v1 import StatefulSet
from navarch.k8s.core.v1 import (
    PersistentVolumeClaim,
    PersistentVolumeClaimVolumeSource,
    Pod,
    PodTemplateSpec,
    Volume,
)

_NAME = re.compile(r"(.*)-([0-9]+)")
_POD_NAME = "statefulset.kubernetes.io/pod-name"
_INDEX = "apps.kubernetes.io/pod-index"
_REVISION = "controller-revision-hash"
_LARGEST = 2**31 - 1


def ordinal_of(pod: Pod) -> int:
    """The number in its name; -1 if there is none.

    >>> from navarch.k8s.core.v1 import PodSpec
    >>> ordinal_of(Pod(name="web-12", spec=PodSpec(containers=[]))), ordinal_of(Pod(name="web", spec=PodSpec(containers=[])))
    (12, -1)
    """
    found = _NAME.fullmatch(pod.name)
    ordinal = int(found[2]) if found else -1
    return ordinal if ordinal <= _LARGEST else -1


def is_member(stateful_set: StatefulSet, pod: Pod) -> bool:
    """Returns True if it is named after the set."""
    found = _NAME.fullmatch(pod.name)
    return found is not None and found[1] == stateful_set.name


def ordinals_of(stateful_set: StatefulSet) -> range:
    """The numbers of the pods that are wanted."""
    numbers = stateful_set.spec.ordinals
    start = (numbers.start if numbers else 0) or 0
    return range(start, start + (stateful_set.spec.replicas or 0))


def revision_of(pod: Pod) -> str:
    """The version of the template that it was made from."""
    return pod.labels.get(_REVISION, "")


def identity_labels(stateful_set: StatefulSet, ordinal: int) -> dict[str, str]:
    """The labels by which one pod is known."""
    return {_POD_NAME: f"{stateful_set.name}-{ordinal}", _INDEX: str(ordinal)}


def has_identity(pod: Pod) -> bool:
    """Returns True if it has the label by which it is known."""
    return pod.labels.get(_POD_NAME) == pod.name


def claim_names(stateful_set: StatefulSet, ordinal: int) -> dict[str, str]:
    """The names of one pod's claims, by the names of its volumes."""
    templates = stateful_set.spec.volume_claim_templates or ()
    return {template.name: f"{template.name}-{stateful_set.name}-{ordinal}" for template in templates}


def claims_of(stateful_set: StatefulSet, ordinal: int) -> dict[str, PersistentVolumeClaim]:
    """The claims of one pod, by the names of its volumes."""
    claims, names = {}, claim_names(stateful_set, ordinal)
    for template in stateful_set.spec.volume_claim_templates or ():
        claim = template.copy()
        claim.name = names[template.name]
        claim.namespace = stateful_set.namespace
        claim.labels = {**template.labels, **(stateful_set.spec.selector.match_labels or {})}
        claims[template.name] = claim
    return claims


def has_storage(stateful_set: StatefulSet, pod: Pod) -> bool:
    """Returns True if its volumes are the ones that are its own."""
    sources = {volume.name: volume.persistent_volume_claim for volume in pod.spec.volumes or ()}
    return all(
        (source := sources.get(volume)) is not None and source.claim_name == claim
        for volume, claim in claim_names(stateful_set, ordinal_of(pod)).items()
    )


def new_pod(stateful_set: StatefulSet, template: PodTemplateSpec, revision: str, ordinal: int) -> Pod:
    """The pod of that number as the template says."""
    pod = pod_of(template, name=f"{stateful_set.name}-{ordinal}")
    pod.labels = {**pod.labels, **identity_labels(stateful_set, ordinal), _REVISION: revision}
    pod.spec.hostname, pod.spec.subdomain = pod.name, stateful_set.spec.service_name or None
    claims = claim_names(stateful_set, ordinal)
    kept = [volume for volume in pod.spec.volumes or () if volume.name not in claims]
    pod.spec.volumes = [_volume(name, claim) for name, claim in claims.items()] + kept or None
    return pod


def _volume(name: str, claim: str) -> Volume:
    return Volume(name=name, persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=claim))


def changed_owners(claim: PersistentVolumeClaim, stateful_set: StatefulSet, pod: Pod) -> list[OwnerReference] | None:
    """The owners that the claim should have; None if it has them.

    A claim that belongs to a former set or pod of the same name is left alone: it is about to go. So is one that somebody
    else controls.
    """
    if belongs_to_former(claim, stateful_set) or belongs_to_former(claim, pod):
        return None
    others = [
        each for each in claim.metadata.owner_references if not _names(each, stateful_set) and not _names(each, pod)
    ]
    owner = None if has_other_controller(claim, stateful_set, pod) else _owner(stateful_set, pod)
    if owner is None:
        return others if len(others) < len(claim.metadata.owner_references) else None
    wanted = owner_reference(owner)
    known = [each for each in claim.metadata.owner_references if each not in others]
    if [(each.uid, each.controller) for each in known] == [(wanted.uid, True)]:
        return None
    return [*others, wanted]


def _owner(stateful_set: StatefulSet, pod: Pod) -> StatefulSet | Pod | None:
    """Whoever takes the claim along: a pod that is scaled away, the set, or nobody."""
    policy = stateful_set.spec.persistent_volume_claim_retention_policy
    scaled_away = ordinal_of(pod) not in ordinals_of(stateful_set)
    if policy is None:
        return None
    if scaled_away and policy.when_scaled == "Delete":
        return pod if pod.metadata.uid else None
    return stateful_set if policy.when_deleted == "Delete" else None


def has_other_controller(claim: PersistentVolumeClaim, stateful_set: StatefulSet, pod: Pod) -> bool:
    """Returns True if somebody else controls the claim."""
    return any(
        each.controller and not _names(each, stateful_set) and not _names(each, pod)
        for each in claim.metadata.owner_references
    )


def belongs_to_former(claim: PersistentVolumeClaim, owner: Object) -> bool:
    """Returns True if it belongs to another object of the owner's name."""
    named = any(_names(each, owner) for each in claim.metadata.owner_references)
    return named and not is_owned_by(claim, owner)


def _names(reference: OwnerReference, owner: Object) -> bool:
    kind = type(owner).__kind__
    return (reference.api_version, reference.kind, reference.name) == (kind.api_version, kind.kind, owner.name)


class StatefulPods:
    """Creates, repairs and deletes pods and their claims, with events."""

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
