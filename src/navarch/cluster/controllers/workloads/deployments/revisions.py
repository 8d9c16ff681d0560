"""Maps revisions of a Deployment's pod template to ReplicaSets, and writes their annotations."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence

from navarch.api import ObjectMeta
from navarch.api.integers import parse_int64
from navarch.cluster.controllers.workloads.revision_history import hash_of
from navarch.k8s.apps.v1 import Deployment, ReplicaSet, ReplicaSetSpec
from navarch.k8s.core.v1 import PodTemplateSpec
from navarch.k8s.meta.v1 import LabelSelector

REVISION = "deployment.kubernetes.io/revision"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MOST = "deployment.kubernetes.io/max-replicas"

_HISTORY = "deployment.kubernetes.io/revision-history"
_HASH = "pod-template-hash"
_NOT_COPIED = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        "deprecated.deployment.rollback.to",
        REVISION,
        DESIRED,
        MOST,
        _HISTORY,
    }
)
_LONGEST_HISTORY = 2000
_LONGEST_NAME = 253


def number_on(replica_set: ReplicaSet, annotation: str) -> int | None:
    """A number that is noted on it; None if there is none."""
    text = replica_set.annotations.get(annotation, "")
    return parse_int64(text) if text.isdecimal() else None


def by_age(replica_sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """The oldest first."""
    return sorted(replica_sets, key=_age)


def by_revision(replica_sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """The first version first."""
    return sorted(replica_sets, key=lambda each: (number_on(each, REVISION) or 0, _age(each)))


def _age(replica_set: ReplicaSet) -> tuple[float, str]:
    created = replica_set.metadata.creation_timestamp
    return (created.timestamp() if created else 0.0), replica_set.name


def newest_revision(replica_sets: Iterable[ReplicaSet]) -> int:
    """The highest number of a version so far."""
    return max((number_on(each, REVISION) or 0 for each in replica_sets), default=0)


def new_among(deployment: Deployment, replica_sets: Sequence[ReplicaSet]) -> ReplicaSet | None:
    """The oldest ReplicaSet whose template is the Deployment's."""
    return next((each for each in by_age(replica_sets) if _stands_for(each, deployment.spec.template)), None)


def _stands_for(replica_set: ReplicaSet, template: PodTemplateSpec) -> bool:
    found = replica_set.spec.template
    return found is not None and found.spec == template.spec and _unhashed(found) == _unhashed(template)


def _unhashed(template: PodTemplateSpec) -> ObjectMeta:
    labels = {key: value for key, value in template.metadata.labels.items() if key != _HASH}
    return _labelled(template, labels)


def _labelled(template: PodTemplateSpec, labels: dict[str, str]) -> ObjectMeta:
    metadata = copy.copy(template.metadata)
    metadata.labels = labels
    return metadata


def new_replica_set(deployment: Deployment) -> ReplicaSet:
    """A ReplicaSet for the Deployment's template, without pods; its name is the same each time."""
    template_hash = hash_of(deployment.spec.template, deployment.status.collision_count)
    labels = {**deployment.spec.template.metadata.labels, _HASH: template_hash}
    metadata = _labelled(deployment.spec.template, labels)
    return ReplicaSet(
        name=f"{deployment.name[: _LONGEST_NAME - len(template_hash) - 1]}-{template_hash}",
        labels=dict(labels),
        spec=ReplicaSetSpec(
            replicas=0,
            min_ready_seconds=deployment.spec.min_ready_seconds,
            selector=_narrowed(deployment.spec.selector, template_hash),
            template=PodTemplateSpec(metadata=metadata, spec=deployment.spec.template.spec),
        ),
    )


def _narrowed(selector: LabelSelector, template_hash: str) -> LabelSelector:
    return LabelSelector(
        match_labels={**(selector.match_labels or {}), _HASH: template_hash},
        match_expressions=selector.match_expressions,
    )


def annotations_of_new(deployment: Deployment, found: Mapping[str, str], revision: int) -> dict[str, str]:
    """What has to be noted on the ReplicaSet of the newest version and is not yet: its number and the Deployment's notes.

    A version that comes back gets a new number; the ones it had are kept.
    """
    notes = {
        key: value
        for key, value in deployment.annotations.items()
        if key not in _NOT_COPIED and found.get(key) != value
    }
    before = found.get(REVISION, "")
    if before and not before.isdecimal():
        return {}
    if int(before or 0) < revision:
        notes[REVISION] = str(revision)
        if before:
            notes[_HISTORY] = _history(found.get(_HISTORY, ""), before)
    return notes


def _history(known: str, number: str) -> str:
    """The numbers so far with one more, the oldest left out where there are too many."""
    numbers = [*filter(None, known.split(",")), number]
    while len(",".join(numbers)) > _LONGEST_HISTORY:
        numbers.pop(0)
    return ",".join(numbers)
