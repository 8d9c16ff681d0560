"""ReplicationControllers: what ReplicaSets were before, and still served."""

from __future__ import annotations

from conformance.controllers.kubelet import Kubelet
from conformance.controllers.making import LABELS, template
from conformance.controllers.watching import active_pods, until, until_event
from navarch.api import Labels, controller_of
from navarch.client import Client
from navarch.k8s.core.v1 import Pod, ReplicationController, ReplicationControllerSpec


async def test_pods_of_a_replication_controller_come_go_and_are_counted(client: Client, kubelet: Kubelet) -> None:
    """They belong to it, are told of in its status and events, and are as many as its scale says."""
    spec = ReplicationControllerSpec(replicas=2, selector=LABELS, template=template())
    made = await client.create(ReplicationController(name="web", spec=spec))
    ready = await until(
        lambda: client.get(ReplicationController, "web"),
        lambda found: found.status.ready_replicas == found.status.available_replicas == 2,
        "two pods that serve",
    )
    assert (ready.status.replicas, ready.status.fully_labeled_replicas, ready.status.observed_generation) == (2, 2, 1)
    for pod in await active_pods(client):
        owner = controller_of(pod)
        assert owner is not None
        assert (owner.kind, owner.uid, pod.name[:4]) == ("ReplicationController", made.metadata.uid, "web-")
    await until_event(client, "web", "SuccessfulCreate", "Created pod: web-")
    await client.scale(ReplicationController, "web", 1)
    await until(lambda: active_pods(client), lambda pods: len(pods) == 1, "one pod")
    await client.delete(ReplicationController, "web", propagation=None)  # the pods are left behind by default
    await until(
        lambda: client.list(Pod, labels=Labels.of(LABELS)),
        lambda pods: [controller_of(pod) for pod in pods] == [None],
        "a pod that is nobody's",
    )
