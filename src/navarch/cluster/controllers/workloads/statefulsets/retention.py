"""Whose a claim is: whoever owns it takes it along when it goes."""

from __future__ import annotations

from navarch.api import Object, OwnerReference, is_owned_by, owner_reference
from navarch.cluster.controllers.workloads.statefulsets.identity import ordinal_of, ordinals_of
from navarch.k8s.apps.v1 import StatefulSet
from navarch.k8s.core.v1 import PersistentVolumeClaim, Pod


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
    """Whether somebody else controls the claim."""
    return any(
        each.controller and not _names(each, stateful_set) and not _names(each, pod)
        for each in claim.metadata.owner_references
    )


def belongs_to_former(claim: PersistentVolumeClaim, owner: Object) -> bool:
    """Whether it belongs to another object of the owner's name."""
    named = any(_names(each, owner) for each in claim.metadata.owner_references)
    return named and not is_owned_by(claim, owner)


def _names(reference: OwnerReference, owner: Object) -> bool:
    kind = type(owner).__kind__
    return (reference.api_version, reference.kind, reference.name) == (kind.api_version, kind.kind, owner.name)
