"""Revisions of a Deployment's pod template, and their annotations."""

from __future__ import annotations

from navarch.api import ObjectMeta
from navarch.cluster.controllers.workloads.deployments.revisions import (
    REVISION,
    annotations_of_new,
    new_among,
    new_replica_set,
)
from navarch.k8s.apps.v1 import Deployment, DeploymentSpec
from navarch.k8s.core.v1 import Container, PodSpec, PodTemplateSpec
from navarch.k8s.meta.v1 import LabelSelector


def deployment(image: str = "first", **metadata: str) -> Deployment:
    labels = {"app": "web"}
    return Deployment(
        name="web",
        annotations=metadata,
        spec=DeploymentSpec(
            selector=LabelSelector(match_labels=labels),
            template=PodTemplateSpec(
                metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[Container(name="main", image=image)])
            ),
        ),
    )


def test_version_is_found_by_its_template_whatever_its_hash() -> None:
    """Kubernetes computes another one: what it made is known all the same."""
    made = new_replica_set(deployment())
    assert made.spec.template is not None
    made.spec.template.metadata.labels["pod-template-hash"] = "somebody-elses"
    assert new_among(deployment(), [made]) is made
    assert new_among(deployment("second"), [made]) is None


def test_name_depends_on_template_and_collisions_alone() -> None:
    """So that one that was made and forgotten is found again."""
    again, other = new_replica_set(deployment()), new_replica_set(deployment("second"))
    assert again.name == new_replica_set(deployment()).name != other.name
    collided = deployment()
    collided.status.collision_count = 1
    assert new_replica_set(collided).name != again.name


def test_version_gets_a_new_number_only_if_another_is_newer() -> None:
    """The one it had goes into its history, of which the oldest part is forgotten when it gets too long."""
    notes = annotations_of_new(deployment(), {}, 1)
    assert notes == {REVISION: "1"}
    assert annotations_of_new(deployment(), notes, 1) == {}
    history = "deployment.kubernetes.io/revision-history"
    assert annotations_of_new(deployment(), notes, 3) == {REVISION: "3", history: "1"}
    long = ",".join(["100"] * 500)
    trimmed = annotations_of_new(deployment(), {REVISION: "7", history: long}, 8)[history]
    assert trimmed.endswith(",7")
    assert 1990 < len(trimmed) <= 2000


def test_notes_of_the_deployment_are_copied_if_they_differ() -> None:
    """What is about the Deployment itself is not."""
    noted = deployment(cause="b", **{REVISION: "9", "kubectl.kubernetes.io/last-applied-configuration": "{}"})
    assert annotations_of_new(noted, {REVISION: "9", "cause": "a"}, 9) == {"cause": "b"}
