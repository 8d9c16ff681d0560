"""What an editor infers of the built-in kinds; mypy checks this file, nothing runs it."""

from __future__ import annotations

from datetime import datetime
from typing import assert_type

from navarch.api import Condition, IntOrString, ObjectMeta
from navarch.api.quantity import Quantity
from navarch.api.times import MicroTime
from navarch.k8s.apps.v1 import Deployment, DeploymentSpec, StatefulSet
from navarch.k8s.authorization.v1 import (
    ResourceAttributes,
    SelfSubjectAccessReview,
    SelfSubjectAccessReviewSpec,
)
from navarch.k8s.coordination.v1 import Lease
from navarch.k8s.core.v1 import Container, Pod, PodSpec, PodTemplateSpec, Secret, Service, ServicePort
from navarch.k8s.meta.v1 import LabelSelector
from navarch.k8s.policy.v1 import PodDisruptionBudget


def deployment() -> Deployment:
    """Keyword arguments are checked; what is required has to be given."""
    labels = {"app": "web"}
    template = PodTemplateSpec(
        metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[Container(name="web", image="nginx")])
    )
    return Deployment(
        name="web",
        namespace="default",
        spec=DeploymentSpec(replicas=3, selector=LabelSelector(match_labels=labels), template=template),
    )


def parts_are_never_none(deployment: Deployment, pod: Pod, service: Service, stateful: StatefulSet) -> None:
    """The metadata, spec and status of an object and of a template need no check."""
    assert_type(deployment.name, str)
    assert_type(deployment.metadata, ObjectMeta)
    assert_type(deployment.spec.replicas, int | None)
    assert_type(deployment.spec.template.spec.containers, list[Container])
    assert_type(deployment.spec.template.metadata.labels, dict[str, str])
    assert_type(deployment.status.ready_replicas, int | None)
    assert_type(stateful.status.replicas, int)
    assert_type(pod.status.phase, str | None)
    assert_type(pod.status.start_time, datetime | None)
    assert_type(service.spec.cluster_ip, str | None)


def scalars(secret: Secret, lease: Lease, container: Container, port: ServicePort, pdb: PodDisruptionBudget) -> None:
    """The types of `navarch.api` stand in for Kubernetes' own."""
    assert_type(secret.data, dict[str, bytes] | None)
    assert_type(lease.spec.renew_time, MicroTime | None)
    assert_type(port.target_port, int | str | None)
    assert_type(pdb.status.conditions, list[Condition] | None)
    if container.resources is not None:
        assert_type(container.resources.limits, dict[str, Quantity] | None)


def review() -> bool:
    """A review is made with its question and read with its answer."""
    asked = SelfSubjectAccessReview(
        spec=SelfSubjectAccessReviewSpec(resource_attributes=ResourceAttributes(verb="get", resource="pods"))
    )
    assert_type(asked.status.allowed, bool)
    return asked.status.allowed


def port(number: IntOrString) -> ServicePort:
    """A target port is a number or a name."""
    return ServicePort(port=80, target_port=number)


def mistakes() -> None:
    """What an editor underlines."""
    Deployment(name="web")  # type: ignore[call-arg]  # the spec of a Deployment is required
    Container(image="nginx")  # type: ignore[call-arg]  # and the name of a container
    Service(name="web", spec={})  # type: ignore[arg-type]  # a struct is not a dict
