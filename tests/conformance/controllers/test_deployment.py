"""Deployments: from one version of a template to the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import pytest

from conformance.controllers.kubelet import Kubelet
from conformance.controllers.making import LABELS, SELECTOR, template
from conformance.controllers.watching import active_pods, for_a_while, pods_of, until, until_event, until_gone
from navarch.api import controller_of
from navarch.client import Client, MergePatch
from navarch.k8s.apps.v1 import (
    Deployment,
    DeploymentCondition,
    DeploymentSpec,
    DeploymentStrategy,
    ReplicaSet,
    ReplicaSetSpec,
    RollingUpdateDeployment,
)
from navarch.k8s.core.v1 import Pod

REVISION = "deployment.kubernetes.io/revision"


def rolling(surge: int | str, unavailable: int | str) -> DeploymentStrategy:
    return DeploymentStrategy(
        type="RollingUpdate", rolling_update=RollingUpdateDeployment(max_surge=surge, max_unavailable=unavailable)
    )


def deployment(replicas: int, **spec: Any) -> Deployment:
    return Deployment(
        name="web", spec=DeploymentSpec(**{"replicas": replicas, "selector": SELECTOR, "template": template(), **spec})
    )


async def replica_sets(client: Client) -> list[ReplicaSet]:
    """The oldest version first."""
    found = [each async for each in client.list(ReplicaSet)]
    return sorted(found, key=lambda each: int(each.annotations.get(REVISION, 0)))


def sizes(found: list[ReplicaSet]) -> list[int]:
    return [each.spec.replicas or 0 for each in found]


def is_ready(pod: Pod) -> bool:
    return any((each.type, each.status) == ("Ready", "True") for each in pod.status.conditions or ())


def image_of(found: ReplicaSet) -> str | None:
    assert found.spec.template is not None
    return found.spec.template.spec.containers[0].image


def condition(found: Deployment, kind: str) -> DeploymentCondition:
    return next(each for each in found.status.conditions or () if each.type == kind)


def is_through(found: Deployment) -> bool:
    """Whether `kubectl rollout status` would say so."""
    status, wanted = found.status, found.spec.replicas
    return status.observed_generation == found.metadata.generation and {
        status.replicas,
        status.updated_replicas,
        status.available_replicas,
        status.ready_replicas,
    } == {wanted or None}


async def until_through(client: Client) -> Deployment:
    return await until(lambda: client.get(Deployment, "web"), is_through, "the rollout to be through")


async def change_image(client: Client, image: str) -> None:
    containers = [{"name": "main", "image": image}]
    await client.patch(Deployment, "web", MergePatch({"spec": {"template": {"spec": {"containers": containers}}}}))


def of_image(image: str) -> Callable[[Pod], bool]:
    return lambda pod: pod.spec.containers[0].image == image


async def test_first_version_is_a_replica_set_of_its_own(client: Client, kubelet: Kubelet) -> None:
    """Named, labelled and selected by the template's hash, numbered, and told of in the status."""
    made = await client.create(deployment(3))
    through = await until_through(client)
    (first,) = await replica_sets(client)
    owner, template_hash = controller_of(first), first.labels["pod-template-hash"]
    assert owner is not None
    assert (owner.uid, first.name) == (made.metadata.uid, f"web-{template_hash}")
    assert first.labels == {**LABELS, "pod-template-hash": template_hash}
    assert first.spec.selector.match_labels == first.labels
    assert first.spec.template is not None
    assert first.spec.template.metadata.labels == first.labels
    assert first.annotations[REVISION] == through.annotations[REVISION] == "1"
    assert first.annotations["deployment.kubernetes.io/desired-replicas"] == "3"
    assert first.annotations["deployment.kubernetes.io/max-replicas"] == "4"
    assert (condition(through, "Available").status, condition(through, "Available").reason) == (
        "True",
        "MinimumReplicasAvailable",
    )
    await until(
        lambda: client.get(Deployment, "web"),
        lambda found: condition(found, "Progressing").reason == "NewReplicaSetAvailable",
        "the rollout to be told as through",
    )
    await until_event(client, "web", "ScalingReplicaSet", f"Scaled up replica set {first.name} from 0 to 3")


async def test_new_template_rolls_out_within_its_bounds(client: Client, kubelet: Kubelet) -> None:
    """Never more pods are asked for than the surge allows, never fewer serve than have to, and in the end all are new.

    How many there are is another matter: who has to delete an old one may be later than who makes a new one.
    """
    await client.create(deployment(4, strategy=rolling(surge=1, unavailable=1)))
    await until_through(client)
    await change_image(client, "second")
    asked: list[int] = []
    serving: list[int] = []

    async def through() -> Deployment:
        asked.append(sum(sizes(await replica_sets(client))))
        serving.append(sum(map(is_ready, await active_pods(client))))
        return await client.get(Deployment, "web")

    await until(through, is_through, "the rollout to be through")
    assert max(asked) <= 5
    assert min(serving) >= 3
    assert {pod.spec.containers[0].image for pod in await active_pods(client)} == {"second"}
    first, second = await replica_sets(client)
    assert (sizes([first, second]), image_of(second), second.annotations[REVISION]) == ([0, 4], "second", "2")


async def test_rollout_that_does_not_serve_stands_still(client: Client, kubelet: Kubelet) -> None:
    """As many new pods as the surge allows, and no old pod goes that is needed; then it is told as late."""
    spec = {"strategy": rolling(surge="50%", unavailable="25%"), "progress_deadline_seconds": 2, "min_ready_seconds": 1}
    await client.create(deployment(4, **spec))
    await until_through(client)
    kubelet.holds = of_image("broken")
    await change_image(client, "broken")
    await until(lambda: replica_sets(client), lambda found: sizes(found) == [3, 3], "3 old and 3 new pods")
    late = await until(
        lambda: client.get(Deployment, "web"),
        lambda found: (
            condition(found, "Progressing").status == "False"
            and (found.status.updated_replicas, found.status.unavailable_replicas) == (3, 3)
        ),
        "no progress, with three new pods that do not serve",
    )
    assert condition(late, "Progressing").reason == "ProgressDeadlineExceeded"
    assert condition(late, "Available").status == "True"
    assert sizes(await replica_sets(client)) == [3, 3]


async def test_pods_of_a_broken_version_go_first(client: Client, kubelet: Kubelet) -> None:
    """A third version is not kept waiting by the pods of the second, which never served."""
    await client.create(deployment(3, strategy=rolling(surge=1, unavailable=0)))
    await until_through(client)
    kubelet.holds = of_image("broken")
    await change_image(client, "broken")
    await until(lambda: replica_sets(client), lambda found: sizes(found) == [3, 1], "one new pod")
    await change_image(client, "third")
    await until_through(client)
    assert sizes(await replica_sets(client)) == [0, 0, 3]


async def test_recreate_has_no_new_pod_before_the_last_old_one_is_gone(client: Client, kubelet: Kubelet) -> None:
    """Also one that takes its time to go."""
    kubelet.node, kubelet.keeps = "node-1", lambda pod: True
    slow = template(termination_grace_period_seconds=30)
    await client.create(deployment(2, strategy=DeploymentStrategy(type="Recreate"), template=slow))
    await until_through(client)
    await change_image(client, "second")
    await until(lambda: active_pods(client), lambda pods: not pods, "the old pods to go")
    await for_a_while(lambda: active_pods(client), lambda pods: not pods, "no new pods", seconds=0.5)
    kubelet.keeps = lambda pod: False
    await until_through(client)
    assert {pod.spec.containers[0].image for pod in await active_pods(client)} == {"second"}


async def test_version_that_comes_back_is_the_same_replica_set(client: Client, kubelet: Kubelet) -> None:
    """With the next number, and its former one in its history: that is how `kubectl rollout undo` works."""
    await client.create(deployment(1))
    await until_through(client)
    await change_image(client, "second")
    await until_through(client)
    await change_image(client, "first")
    found = await until(
        lambda: replica_sets(client),
        lambda found: [image_of(each) for each in found] == ["second", "first"] and sizes(found) == [0, 1],
        "the first version to be the newest",
    )
    assert found[-1].annotations["deployment.kubernetes.io/revision-history"] == "1"
    assert found[-1].annotations[REVISION] == "3"
    await until(
        lambda: client.get(Deployment, "web"),
        lambda each: each.annotations[REVISION] == "3",
        "its number on the Deployment",
    )


async def test_history_is_kept_as_far_as_is_asked(client: Client, kubelet: Kubelet) -> None:
    """The oldest versions go."""
    await client.create(deployment(1, revision_history_limit=1))
    await until_through(client)
    for image in ("second", "third"):
        await change_image(client, image)
        await until_through(client)
    await until(
        lambda: replica_sets(client),
        lambda found: [image_of(each) for each in found] == ["second", "third"],
        "one old version to be kept",
    )


async def test_paused_deployment_changes_nothing_but_its_size(client: Client, kubelet: Kubelet) -> None:
    """What was changed meanwhile rolls out when it is resumed."""
    await client.create(deployment(2))
    await until_through(client)
    await client.patch(Deployment, "web", MergePatch({"spec": {"paused": True}}))
    await until(
        lambda: client.get(Deployment, "web"),
        lambda found: condition(found, "Progressing").reason == "DeploymentPaused",
        "the pause to be told",
    )
    await change_image(client, "second")
    await client.scale(Deployment, "web", 3)
    await until(lambda: replica_sets(client), lambda found: sizes(found) == [3], "three old pods")
    await for_a_while(lambda: replica_sets(client), lambda found: len(found) == 1, "no new version", seconds=0.3)
    await client.patch(Deployment, "web", MergePatch({"spec": {"paused": False}}))
    await until_through(client)
    assert [image_of(each) for each in await replica_sets(client)] == ["first", "second"]


async def test_scaling_amid_a_rollout_is_shared_in_proportion(client: Client, kubelet: Kubelet) -> None:
    """Old and new grow by their shares, so that a broken version does not take over."""
    await client.create(deployment(10, strategy=rolling(surge=3, unavailable=2)))
    await until_through(client)
    kubelet.holds = of_image("broken")
    await change_image(client, "broken")
    await until(lambda: replica_sets(client), lambda found: sizes(found) == [8, 5], "8 old and 5 new pods")
    await client.scale(Deployment, "web", 15)
    await until(lambda: replica_sets(client), lambda found: sizes(found) == [11, 7], "11 old and 7 new pods")


async def test_replica_set_that_matches_is_adopted(client: Client, kubelet: Kubelet) -> None:
    """One whose template is the Deployment's becomes its newest version, another an old one."""
    early = ReplicaSet(
        name="early", labels=LABELS, spec=ReplicaSetSpec(replicas=1, selector=SELECTOR, template=template("old"))
    )
    await client.create(early)
    made = await client.create(deployment(2))
    adopted = await until(lambda: client.get(ReplicaSet, "early"), controller_of, "an owner of early")
    assert adopted.metadata.owner_references[0].uid == made.metadata.uid
    await until(lambda: client.get(ReplicaSet, "early"), lambda found: found.spec.replicas == 0, "early to be replaced")
    await until(lambda: active_pods(client, "pod-template-hash"), lambda pods: len(pods) == 2, "two new pods")


async def test_trouble_of_a_replica_set_is_told(client: Client, kubelet: Kubelet) -> None:
    """Whoever looks at the Deployment need not look further."""
    await client.create(deployment(1, template=template(service_account_name="nobody")))
    found = await until(
        lambda: client.get(Deployment, "web"),
        lambda found: any(each.type == "ReplicaFailure" for each in found.status.conditions or ()),
        "the failure to be told",
    )
    assert condition(found, "ReplicaFailure").reason == "FailedCreate"
    assert condition(found, "Available").status == "False"


async def test_annotations_are_copied_to_the_new_version(client: Client, kubelet: Kubelet) -> None:
    """All but those that are about the Deployment itself."""
    noted = deployment(1)
    noted.annotations = {
        "kubernetes.io/change-cause": "because",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
    }
    await client.create(noted)
    await until_through(client)
    (first,) = await replica_sets(client)
    assert first.annotations["kubernetes.io/change-cause"] == "because"
    assert "kubectl.kubernetes.io/last-applied-configuration" not in first.annotations


@pytest.mark.parametrize("replicas", [0, 5])
async def test_scaling_changes_no_version(client: Client, kubelet: Kubelet, replicas: int) -> None:
    """And a Deployment without pods is through."""
    await client.create(deployment(2))
    await until_through(client)
    await client.scale(Deployment, "web", replicas)
    await until_through(client)
    (only,) = await replica_sets(client)
    assert only.annotations["deployment.kubernetes.io/desired-replicas"] == str(replicas)
    await client.delete(Deployment, "web")
    await until_gone(client, Deployment, "web")


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
async def test_everything_goes_with_the_deployment(
    client: Client, kubelet: Kubelet, propagation: Literal["Background", "Foreground"]
) -> None:
    """Its ReplicaSets, and their pods."""
    await client.create(deployment(2))
    await until_through(client)
    await client.delete(Deployment, "web", propagation=propagation)
    await until_gone(client, Deployment, "web")
    await until(lambda: replica_sets(client), lambda found: not found, "no ReplicaSets")
    await until(lambda: pods_of(client), lambda found: not found, "no pods")


async def test_orphans_of_a_deployment_are_adopted_by_the_next(client: Client, kubelet: Kubelet) -> None:
    """Not a pod is restarted for it."""
    await client.create(deployment(2))
    await until_through(client)
    before = {pod.metadata.uid for pod in await active_pods(client)}
    await client.delete(Deployment, "web", propagation="Orphan")
    await until_gone(client, Deployment, "web")
    await client.create(deployment(2))
    await until_through(client)
    assert {pod.metadata.uid for pod in await active_pods(client)} == before
    (only,) = await replica_sets(client)
    owner = controller_of(only)
    assert owner is not None
    assert owner.uid == (await client.get(Deployment, "web")).metadata.uid
