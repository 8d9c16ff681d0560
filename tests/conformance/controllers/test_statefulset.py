"""StatefulSets: pods with names, one after the other, and volumes that stay."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from conformance.controllers.kubelet import Kubelet
from conformance.controllers.making import LABELS, SELECTOR, template
from conformance.controllers.watching import active_pods, for_a_while, pods_of, ready_since, until, until_event
from navarch._base.clock import SystemClock
from navarch.api import ObjectMeta, Quantity, controller_of
from navarch.client import Client, MergePatch
from navarch.k8s.apps.v1 import (
    ControllerRevision,
    RollingUpdateStatefulSetStrategy,
    StatefulSet,
    StatefulSetOrdinals,
    StatefulSetPersistentVolumeClaimRetentionPolicy,
    StatefulSetSpec,
    StatefulSetUpdateStrategy,
)
from navarch.k8s.core.v1 import (
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    Pod,
    VolumeResourceRequirements,
)


def stateful_set(replicas: int, **spec: Any) -> StatefulSet:
    wanted = {"replicas": replicas, "selector": SELECTOR, "template": template(), "service_name": "peers", **spec}
    return StatefulSet(name="web", spec=StatefulSetSpec(**wanted))


def claim_template() -> PersistentVolumeClaim:
    resources = VolumeResourceRequirements(requests={"storage": Quantity("1Gi")})
    return PersistentVolumeClaim(
        name="data", spec=PersistentVolumeClaimSpec(access_modes=["ReadWriteOnce"], resources=resources)
    )


def retention(*, deleted: str, scaled: str) -> StatefulSetPersistentVolumeClaimRetentionPolicy:
    return StatefulSetPersistentVolumeClaimRetentionPolicy(when_deleted=deleted, when_scaled=scaled)


def rolling(partition: int) -> StatefulSetUpdateStrategy:
    return StatefulSetUpdateStrategy(
        type="RollingUpdate", rolling_update=RollingUpdateStatefulSetStrategy(partition=partition)
    )


async def until_names(client: Client, *names: str) -> list[Pod]:
    return await until(
        lambda: active_pods(client), lambda pods: [pod.name for pod in pods] == list(names), f"the pods {names}"
    )


async def until_status(client: Client, what: str, **counts: Any) -> StatefulSet:
    return await until(
        lambda: client.get(StatefulSet, "web"),
        lambda found: all(getattr(found.status, name) == value for name, value in counts.items()),
        f"{what}: {counts}",
    )


async def change_image(client: Client, image: str) -> None:
    containers = [{"name": "main", "image": image}]
    await client.patch(StatefulSet, "web", MergePatch({"spec": {"template": {"spec": {"containers": containers}}}}))


async def images(client: Client) -> dict[str, str | None]:
    return {pod.name: pod.spec.containers[0].image for pod in await active_pods(client)}


async def test_pods_have_names_labels_and_host_names(client: Client, kubelet: Kubelet) -> None:
    """By which others know them; and the status says how many there are, and of which version."""
    made = await client.create(stateful_set(2))
    found = await until_status(client, "two serve", replicas=2, ready_replicas=2, available_replicas=2)
    pods = await until_names(client, "web-0", "web-1")
    for number, pod in enumerate(pods):
        owner = controller_of(pod)
        assert owner is not None
        assert owner.uid == made.metadata.uid
        assert (pod.spec.hostname, pod.spec.subdomain) == (pod.name, "peers")
        assert pod.labels == {
            **LABELS,
            "apps.kubernetes.io/pod-index": str(number),
            "statefulset.kubernetes.io/pod-name": pod.name,
            "controller-revision-hash": found.status.update_revision,
        }
    assert found.status.current_revision == found.status.update_revision
    assert (found.status.current_replicas, found.status.updated_replicas, found.status.collision_count) == (2, 2, 0)
    assert found.status.observed_generation == found.metadata.generation
    await until_event(client, "web", "SuccessfulCreate", "Create Pod web-0 in StatefulSet web successful")


async def test_pods_come_one_after_the_other_and_go_the_other_way(client: Client, kubelet: Kubelet) -> None:
    """Each waits until the one before it serves."""
    kubelet.holds = lambda pod: pod.name == "web-1"
    await client.create(stateful_set(3))
    await until_names(client, "web-0", "web-1")
    await for_a_while(lambda: active_pods(client), lambda pods: len(pods) == 2, "no third pod", seconds=0.3)
    kubelet.holds = lambda pod: False
    await until_names(client, "web-0", "web-1", "web-2")
    await until_status(client, "all serve", ready_replicas=3)
    kubelet.node, kubelet.keeps = "node-1", lambda pod: True
    await client.scale(StatefulSet, "web", 1)
    await until_names(client, "web-0")
    await until_status(client, "one left", replicas=1, ready_replicas=1)
    await until_event(client, "web", "SuccessfulDelete", "Delete Pod web-2 in StatefulSet web successful")


async def test_pod_goes_only_when_the_one_after_it_is_gone(client: Client, kubelet: Kubelet) -> None:
    """A pod that takes its time keeps the others."""
    kubelet.node, kubelet.keeps = "node-1", lambda pod: True
    await client.create(stateful_set(3, template=template(termination_grace_period_seconds=30)))
    await until_status(client, "all serve", ready_replicas=3)
    await client.scale(StatefulSet, "web", 0)
    await until_names(client, "web-0", "web-1")
    await for_a_while(lambda: active_pods(client), lambda pods: len(pods) == 2, "two pods to stay", seconds=0.3)
    kubelet.keeps = lambda pod: False
    await until_status(client, "none", replicas=0)


async def test_parallel_pods_do_not_wait_for_each_other(client: Client, kubelet: Kubelet) -> None:
    """Neither to come nor to go."""
    kubelet.holds = lambda pod: True
    await client.create(stateful_set(3, pod_management_policy="Parallel"))
    await until_names(client, "web-0", "web-1", "web-2")
    await client.scale(StatefulSet, "web", 1)
    await until_names(client, "web-0")


async def test_numbers_begin_where_they_are_told(client: Client, kubelet: Kubelet) -> None:
    """And pods outside the range go when it moves."""
    await client.create(stateful_set(2, ordinals=StatefulSetOrdinals(start=5)))
    await until_names(client, "web-5", "web-6")
    await until_status(client, "both serve", ready_replicas=2)
    await client.patch(StatefulSet, "web", MergePatch({"spec": {"ordinals": {"start": 6}}}))
    await until_names(client, "web-6", "web-7")


async def test_lost_or_failed_pod_comes_back_under_its_name(client: Client, kubelet: Kubelet) -> None:
    """As another pod."""
    await client.create(stateful_set(1))
    await until_status(client, "one serves", ready_replicas=1)
    (first,) = await pods_of(client)
    await kubelet.finish(first, code=1)
    second = await until(
        lambda: client.get(Pod, "web-0"),
        lambda pod: pod.metadata.uid != first.metadata.uid and pod.status.phase == "Running",
        "another web-0",
    )
    await client.delete(Pod, "web-0")
    await until(lambda: client.get(Pod, "web-0"), lambda pod: pod.metadata.uid != second.metadata.uid, "a third web-0")


async def test_update_replaces_the_last_pod_first(client: Client, kubelet: Kubelet) -> None:
    """One at a time, and the next only when it serves; then the new version is the current one."""
    await client.create(stateful_set(3))
    before = await until_status(client, "all serve", ready_replicas=3, updated_replicas=3)
    kubelet.holds = lambda pod: pod.name == "web-1" and pod.spec.containers[0].image == "second"
    await change_image(client, "second")
    expected = {"web-0": "first", "web-1": "second", "web-2": "second"}
    await until(lambda: images(client), lambda found: found == expected, "two new pods")
    amid = await until_status(client, "two of three new", updated_replicas=2, current_replicas=1)
    assert amid.status.current_revision == before.status.current_revision != amid.status.update_revision
    await for_a_while(lambda: images(client), lambda found: found == expected, "web-0 to wait", seconds=0.3)
    kubelet.holds = lambda pod: False
    await until(lambda: images(client), lambda found: set(found.values()) == {"second"}, "all to be new")
    after = await until_status(client, "all new", updated_replicas=3, current_replicas=3, ready_replicas=3)
    assert after.status.current_revision == after.status.update_revision == amid.status.update_revision
    revisions = sorted([each async for each in client.list(ControllerRevision)], key=lambda each: each.revision)
    assert [each.revision for each in revisions] == [1, 2]
    assert revisions[-1].name == after.status.update_revision
    assert (revisions[-1].data or {})["spec"]["template"]["$patch"] == "replace"


async def test_partition_keeps_the_pods_below_it(client: Client, kubelet: Kubelet) -> None:
    """Also those that are made anew."""
    await client.create(stateful_set(3, update_strategy=rolling(2)))
    await until_status(client, "all serve", ready_replicas=3, updated_replicas=3)
    await change_image(client, "second")
    expected = {"web-0": "first", "web-1": "first", "web-2": "second"}
    await until(lambda: images(client), lambda found: found == expected, "one new pod")
    await until_status(client, "all serve", ready_replicas=3)
    old = await client.get(Pod, "web-0")
    await client.delete(Pod, "web-0")
    await until(lambda: client.get(Pod, "web-0"), lambda pod: pod.metadata.uid != old.metadata.uid, "web-0 anew")
    await until(lambda: images(client), lambda found: found == expected, "web-0 as it was")
    await client.patch(
        StatefulSet, "web", MergePatch({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})
    )
    await until(lambda: images(client), lambda found: set(found.values()) == {"second"}, "all to be new")


async def test_update_on_deletion_waits_for_the_user(client: Client, kubelet: Kubelet) -> None:
    """Whoever deletes a pod gets the new version."""
    await client.create(stateful_set(2, update_strategy=StatefulSetUpdateStrategy(type="OnDelete")))
    await until_status(client, "both serve", ready_replicas=2, updated_replicas=2)
    await change_image(client, "second")
    await until_status(client, "none is new", updated_replicas=None, observed_generation=2)
    await client.delete(Pod, "web-1")
    await until(lambda: images(client), lambda found: found == {"web-0": "first", "web-1": "second"}, "one new pod")


async def test_version_that_comes_back_is_the_newest_again(client: Client, kubelet: Kubelet) -> None:
    """No second one is kept of the same template; the oldest go, as far as history is limited."""
    await client.create(stateful_set(1, revision_history_limit=1))
    first = await until_status(client, "one serves", ready_replicas=1, updated_replicas=1)
    for image in ("second", "third", "first"):
        await change_image(client, image)
        await until(lambda: images(client), lambda found, image=image: found == {"web-0": image}, image)  # type: ignore[misc]  # bound at once
        await until_status(client, f"{image} is through", ready_replicas=1, updated_replicas=1)
    last = await client.get(StatefulSet, "web")

    async def revisions() -> list[ControllerRevision]:
        return sorted([each async for each in client.list(ControllerRevision)], key=lambda each: each.revision)

    kept = await until(revisions, lambda found: len(found) == 2, "one old version to be kept")
    assert kept[-1].name == last.status.update_revision
    assert kept[-1].revision > 3
    assert first.status.update_revision is not None


async def test_pod_has_claims_of_its_own_that_stay(client: Client, kubelet: Kubelet) -> None:
    """They are made from the templates before the pod, and nobody owns them."""
    await client.create(stateful_set(2, volume_claim_templates=[claim_template()]))
    pods = await until_names(client, "web-0", "web-1")
    for pod in pods:
        claim = await client.get(PersistentVolumeClaim, f"data-{pod.name}")
        assert (claim.labels, claim.metadata.owner_references) == (LABELS, [])
        volume = next(each for each in pod.spec.volumes or () if each.name == "data")
        assert volume.persistent_volume_claim is not None
        assert volume.persistent_volume_claim.claim_name == claim.name
    await until_status(client, "both serve", ready_replicas=2)
    await client.scale(StatefulSet, "web", 1)
    await until_names(client, "web-0")
    assert (await client.get(PersistentVolumeClaim, "data-web-1")).metadata.deletion_timestamp is None


@pytest.mark.parametrize("deleted", ["Retain", "Delete"])
async def test_owner_of_a_claim_is_whoever_takes_it_along(client: Client, kubelet: Kubelet, deleted: str) -> None:
    """The set when it is deleted, or a pod that is scaled away; the garbage collector does the rest."""
    kubelet.node, kubelet.keeps = "node-1", lambda pod: True
    spec = {
        "volume_claim_templates": [claim_template()],
        "persistent_volume_claim_retention_policy": retention(deleted=deleted, scaled="Delete"),
        "template": template(termination_grace_period_seconds=30),
    }
    made = await client.create(stateful_set(2, **spec))
    await until_status(client, "both serve", ready_replicas=2)
    second = await client.get(Pod, "web-1")
    owners = [made.metadata.uid] if deleted == "Delete" else []
    for name in ("data-web-0", "data-web-1"):
        await until(lambda name=name: client.get(PersistentVolumeClaim, name), owned_by(owners), f"{name} of {owners}")  # type: ignore[misc]  # bound at once
    await client.scale(StatefulSet, "web", 1)
    owners = [second.metadata.uid]
    await until(lambda: client.get(PersistentVolumeClaim, "data-web-1"), owned_by(owners), "the claim to go with web-1")


def owned_by(owners: list[str]) -> Any:
    return lambda claim: [owner.uid for owner in claim.metadata.owner_references] == owners


async def test_pod_counts_when_it_was_ready_for_long_enough(client: Client, kubelet: Kubelet) -> None:
    """The next one waits for that too."""
    await client.create(stateful_set(2, min_ready_seconds=3600))
    await until_status(client, "one ready", ready_replicas=1, available_replicas=0)
    (first,) = await until_names(client, "web-0")
    enough = (SystemClock().now() - ready_since(first)) // timedelta(seconds=1) + 2
    await client.patch(StatefulSet, "web", MergePatch({"spec": {"minReadySeconds": enough}}))
    await until_status(client, "one available", available_replicas=1)
    _, second = await until_names(client, "web-0", "web-1")
    created = second.metadata.creation_timestamp
    assert created is not None
    assert created - ready_since(first) >= timedelta(seconds=enough)


async def test_orphan_of_the_right_name_is_adopted(client: Client, kubelet: Kubelet) -> None:
    """One whose name is not of the set is not."""
    for name in ("web-0", "stray"):
        metadata = ObjectMeta(name=name, labels=LABELS)
        await client.create(Pod(metadata=metadata, spec=template().spec))
    made = await client.create(stateful_set(1))
    adopted = await until(lambda: client.get(Pod, "web-0"), controller_of, "an owner of web-0")
    assert adopted.metadata.owner_references[0].uid == made.metadata.uid
    assert controller_of(await client.get(Pod, "stray")) is None
