"""The diagnosis names the cause why an operator does not work, and its remedy."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine
from typing import Any

import pytest

from navarch.api import Dynamic
from navarch.client import Client, MergePatch
from navarch.errors import DeployError
from navarch.project.deploy.deployer import deploy_release, plan
from navarch.project.deploy.diagnosis import PODS, Fault, current_pods, diagnose
from navarch.project.deploy.readiness import until_ready
from navarch.project.deploy.release import Release
from navarch.testing import Cluster
from project.deploy.deployments import NAMESPACE, deployed, with_object

PERMISSIONS = (
    "expected system:serviceaccount:cache-operator-system:cache-operator-controller-manager to be allowed all that it "
    "declares, but it may not:\\n\\n  in the whole cluster\\n    configmaps  create, patch\\n\\nTo grant it, save these lines"
)


async def pod_of(client: Client, release: Release) -> Dynamic:
    """Deploys, and returns the first pod, which no scheduler looks at: the test says what becomes of it."""

    def change(found: dict[str, Any]) -> None:
        found["spec"]["template"]["spec"]["schedulerName"] = "nobody"

    await deployed(client, with_object(release, change, "Deployment"))
    for _ in range(300):
        if pods := await current_pods(client, release):
            return pods[0]
        await client.clock.sleep(0.1)
    raise AssertionError("expected a pod")


async def with_status(client: Client, release: Release, **container: Any) -> list[Fault]:
    """What is found if the kubelet says this of the operator's container."""
    pod = await pod_of(client, release)
    found = {"name": "manager", "image": release.image, "imageID": "", "ready": False, "restartCount": 0, **container}
    conditions = [{"type": "PodScheduled", "status": "True"}]
    status = {"phase": "Running", "containerStatuses": [found], "conditions": conditions}
    await client.patch(PODS, pod.name, MergePatch({"status": status}), namespace=NAMESPACE, subresource="status")
    return [each for each in await diagnose(client, release) if each.subject == f"Pod {NAMESPACE}/{pod.name}"]


async def test_image_that_cannot_be_pulled(client: Client, release: Release) -> None:
    """With the registry's own message."""
    waiting = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "controller:latest": not found'}
    (fault,) = await with_status(client, release, state={"waiting": waiting})
    assert fault.cause == "image"
    assert fault.detail == 'controller:latest: Back-off pulling image "controller:latest": not found'
    assert "navarch deploy --image" in fault.remedy


async def test_crash_with_its_last_lines(client: Client, release: Release) -> None:
    """From the termination message where the log cannot be read."""
    ended = {"exitCode": 1, "reason": "Error", "message": "starting\nValueError: expected a port, got x"}
    waiting = {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting"}
    (fault,) = await with_status(
        client, release, state={"waiting": waiting}, lastState={"terminated": ended}, restartCount=3
    )
    assert fault.cause == "crash"
    assert fault.detail == "the container ended with exit code 1 (3 restarts)"
    assert fault.lines[-1] == "ValueError: expected a port, got x"
    assert "navarch rollback" in fault.remedy


async def test_missing_permissions_from_the_last_log_lines(client: Client, release: Release) -> None:
    """Which the operator writes as JSON in a pod."""
    line = f'{{"level":"error","event":"cannot start","why":"{PERMISSIONS}"}}'
    ended = {"exitCode": 1, "reason": "Error", "message": line}
    (fault,) = await with_status(client, release, state={"terminated": ended}, restartCount=1)
    assert fault.cause == "permissions"
    assert fault.lines == ["in the whole cluster", "configmaps  create, patch"]
    assert "navarch generate rbac" in fault.remedy


async def test_container_that_needs_more_memory_than_its_limit(client: Client, release: Release) -> None:
    """It is no other crash: the remedy is another one."""
    ended = {"exitCode": 137, "reason": "OOMKilled"}
    (fault,) = await with_status(client, release, state={"running": {}}, lastState={"terminated": ended})
    assert fault.cause == "memory"
    assert "resources.limits.memory" in fault.remedy


async def test_container_that_refers_to_something_missing(client: Client, release: Release) -> None:
    """With the kubelet's message."""
    waiting = {"reason": "CreateContainerConfigError", "message": 'secret "token" not found'}
    (fault,) = await with_status(client, release, state={"waiting": waiting})
    assert (fault.cause, fault.detail) == ("configuration", 'CreateContainerConfigError: secret "token" not found')


async def test_failing_probe(client: Client, release: Release) -> None:
    """From the event that the kubelet records."""
    pod = await pod_of(client, release)
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "unhealthy", "namespace": NAMESPACE},
        "involvedObject": {"kind": "Pod", "namespace": NAMESPACE, "name": pod.name, "apiVersion": "v1"},
        "type": "Warning",
        "reason": "Unhealthy",
        "message": "Readiness probe failed: HTTP probe failed with statuscode: 500",
        "lastTimestamp": "2099-01-01T00:00:00Z",
    }
    await client.create(Dynamic(event))
    faults = await with_status(client, release, state={"running": {}})
    assert [each.cause for each in faults] == ["probe"]
    assert faults[0].detail == "Readiness probe failed: HTTP probe failed with statuscode: 500"
    assert f"kubectl logs -n {NAMESPACE} {pod.name}" in faults[0].remedy


async def causes(client: Client, release: Release, wanted: str) -> Fault:
    """The fault of that cause, once the controllers have found it."""
    for _ in range(300):
        for each in await diagnose(client, release):
            if each.cause == wanted:
                return each
        await client.clock.sleep(0.1)
    raise AssertionError(f"expected the cause {wanted}, got {await diagnose(client, release)}")


async def test_exceeded_quota(client: Client, release: Release) -> None:
    """No pod is created: the Deployment's condition has the reason."""
    namespace = next(each for each in release.objects if each["kind"] == "Namespace")
    await client.create(Dynamic(namespace))
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none", "namespace": NAMESPACE}}
    await client.create(Dynamic({**quota, "spec": {"hard": {"pods": "0"}}}))
    for _ in range(100):  # a quota whose use is not known yet admits nothing, with another message
        found = await client.get(await client.discovery.kind("v1", "ResourceQuota"), "none", namespace=NAMESPACE)
        if (found.get("status") or {}).get("hard"):
            break
        await client.clock.sleep(0.1)
    await deployed(client, release)
    fault = await causes(client, release, "quota")
    assert "exceeded quota: none" in fault.detail
    assert "ResourceQuota" in fault.remedy


async def test_pod_that_pod_security_refuses(client: Client, release: Release) -> None:
    """A patch that demands more than the namespace allows."""

    def change(found: dict[str, Any]) -> None:
        found["spec"]["template"]["spec"]["hostNetwork"] = True

    await deployed(client, with_object(release, change, "Deployment"))
    fault = await causes(client, release, "pod security")
    assert 'violates PodSecurity "restricted:latest"' in fault.detail
    assert f"labels of namespace {NAMESPACE}" in fault.remedy


async def test_missing_service_account(client: Client, release: Release) -> None:
    """Pods are refused without it."""

    def change(found: dict[str, Any]) -> None:
        found["spec"]["template"]["spec"]["serviceAccountName"] = "nobody"

    await deployed(client, with_object(release, change, "Deployment"))
    fault = await causes(client, release, "service account")
    assert "nobody" in fault.detail


async def test_deployment_that_is_gone(client: Client, release: Release) -> None:
    """It is the only cause then."""
    (fault,) = await diagnose(client, release)
    assert (fault.cause, fault.detail) == ("rollout", "it does not exist")


async def test_pods_that_no_node_can_run_are_reported(cluster: Cluster, release: Release) -> None:
    """The report has the obstacle, the cause and the remedy. Only on the embedded cluster: the rig has no scheduler."""
    client = cluster.client
    await deployed(client, release)
    await causes(client, release, "scheduling")
    with pytest.raises(DeployError) as failed:
        await deploy_release(client, await plan(client, release), wait=0.5)
    assert "0 of 2 replicas are ready" in str(failed.value)
    assert "scheduling: Pod" in str(failed.value)
    assert "remedy: add nodes" in str(failed.value)


async def test_cause_that_lasts_ends_the_wait(cluster: Cluster, release: Release) -> None:
    """An image that cannot be pulled for half a minute is not waited for any longer."""
    client = cluster.client
    waiting = {"reason": "ErrImagePull", "message": "not found"}
    assert await with_status(client, release, state={"waiting": waiting})
    async with asyncio.TaskGroup() as group:
        ended = group.create_task(outcome(until_ready(client, release, 600.0)))
        while not ended.done():
            await cluster.pass_time(5.0)
    assert "image: Pod" in ended.result()
    seconds = re.search(r"within (\d+) s", ended.result())
    assert seconds is not None
    assert 30 <= int(seconds[1]) < 120


async def outcome(waited: Coroutine[Any, Any, None]) -> str:
    """The report of a wait that fails."""
    try:
        await waited
    except DeployError as error:
        return str(error)
    return ""
