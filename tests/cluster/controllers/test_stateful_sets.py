"""What of a StatefulSet is plain arithmetic: whose a claim is, and which pods may be replaced."""

from __future__ import annotations

import pytest

from navarch.api import ObjectMeta, OwnerReference, owner_reference
from navarch.cluster.controllers.workloads.statefulsets.controller import replaceable
from navarch.cluster.controllers.workloads.statefulsets.pod_members import changed_owners
from navarch.k8s.apps.v1 import (
    StatefulSet,
    StatefulSetPersistentVolumeClaimRetentionPolicy,
    StatefulSetSpec,
)
from navarch.k8s.core.v1 import PersistentVolumeClaim, Pod, PodSpec, PodTemplateSpec
from navarch.k8s.meta.v1 import LabelSelector


def pod(ordinal: int, uid: str = "pod") -> Pod:
    return Pod(metadata=ObjectMeta(name=f"web-{ordinal}", namespace="n", uid=uid), spec=PodSpec(containers=[]))


def stateful_set(deleted: str = "Retain", scaled: str = "Retain", uid: str = "set") -> StatefulSet:
    return StatefulSet(
        metadata=ObjectMeta(name="web", namespace="n", uid=uid),
        spec=StatefulSetSpec(
            replicas=1,
            selector=LabelSelector(),
            template=PodTemplateSpec(spec=PodSpec(containers=[])),
            persistent_volume_claim_retention_policy=StatefulSetPersistentVolumeClaimRetentionPolicy(
                when_deleted=deleted, when_scaled=scaled
            ),
        ),
    )


def claim(*owners: OwnerReference) -> PersistentVolumeClaim:
    return PersistentVolumeClaim(metadata=ObjectMeta(name="data-web-0", owner_references=list(owners)))


@pytest.mark.parametrize(
    ("deleted", "scaled", "ordinal", "owner"),
    [
        ("Retain", "Retain", 0, None),
        ("Retain", "Retain", 1, None),
        ("Delete", "Retain", 0, "set"),
        ("Delete", "Retain", 1, "set"),
        ("Retain", "Delete", 0, None),
        ("Retain", "Delete", 1, "pod"),
        ("Delete", "Delete", 0, "set"),
        ("Delete", "Delete", 1, "pod"),
    ],
)
def test_claim_belongs_to_whoever_takes_it_along(deleted: str, scaled: str, ordinal: int, owner: str | None) -> None:
    """Of one pod, number 0 is wanted and number 1 is scaled away; once it is so, nothing changes."""
    owners = changed_owners(claim(), stateful_set(deleted, scaled), pod(ordinal))
    assert [each.uid for each in owners or ()] == ([owner] if owner else [])
    settled = claim(*owners or ())
    assert changed_owners(settled, stateful_set(deleted, scaled), pod(ordinal)) is None


def test_claim_is_given_back_when_it_is_to_stay() -> None:
    """Others that own it stay its owners."""
    other = OwnerReference(api_version="v1", kind="ConfigMap", name="other", uid="other")
    owned = claim(owner_reference(stateful_set()), other)
    assert changed_owners(owned, stateful_set(), pod(0)) == [other]


def test_claim_of_a_former_set_or_of_another_controller_is_left_alone() -> None:
    """The first is about to go; the second is somebody else's to delete."""
    former = claim(owner_reference(stateful_set(uid="former")))
    assert changed_owners(former, stateful_set("Delete"), pod(0)) is None
    controller = OwnerReference(api_version="v1", kind="Other", name="other", uid="other", controller=True)
    assert changed_owners(claim(controller), stateful_set("Delete"), pod(0)) is None


@pytest.mark.parametrize(
    ("outdated", "missing", "allowed", "expected"),
    [
        ({0, 1, 2}, set(), None, [2]),
        ({0, 1}, {2}, None, []),
        ({0, 1}, set(), None, [1]),
        ({0, 1, 2}, {0}, None, [2]),
        ({0, 1, 2}, set(), 2, [2, 1]),
        ({0, 1, 2}, {0}, 2, [2]),
        ({0, 1, 2}, {0, 1}, 2, []),
        (set(), set(), None, []),
    ],
    ids=["all", "last waits", "next", "lost one", "two at once", "one is missing", "two are missing", "none"],
)
def test_old_pods_are_replaced_from_the_last_on(
    outdated: set[int], missing: set[int], allowed: int | None, expected: list[int]
) -> None:
    """One at a time, or as many as may be missing."""
    pods = [pod(number) for number in range(3)]
    numbers = {each.name: number for number, each in enumerate(pods)}
    found = replaceable(pods, lambda p: numbers[p.name] in outdated, lambda p: numbers[p.name] in missing, allowed)
    assert [numbers[each.name] for each in found] == expected
