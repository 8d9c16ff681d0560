"""Who a pod of a StatefulSet is: its number, its name, its labels and its volumes."""

from __future__ import annotations

import re

from navarch.cluster.controllers.workloads.making import pod_of
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
    """Whether it is named after the set."""
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
    """Whether it has the label by which it is known."""
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
    """Whether its volumes are the ones that are its own."""
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
