"""What a node says of its pods, in their status and in events: processes of the embedded cluster, containers of a real one."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

import rig
from conformance.pod_sites import probe_image
from namespaces import in_new_namespace
from navarch.api import Dynamic, Kind
from navarch.client import Client, WatchOptions, connect, load
from navarch.cluster.embedded import EmbeddedCluster
from navarch.cluster.embedded.components import ComponentOptions

PODS = Kind("", "v1", "Pod", plural="pods")
EVENTS = Kind("", "v1", "Event", plural="events")
ACCOUNTS = Kind("", "v1", "ServiceAccount", plural="serviceaccounts")
SECONDS = 60
OWN_WORDS = re.compile(r"failed to create containerd task.*process: |failed to start container '\w+': |: unknown$")
"""What container runtimes put around a fault; ours says less."""

Json = dict[str, Any]


@pytest.fixture
async def pods(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Client]:
    """A client of a cluster with one node, whose default namespace is new."""
    if engine == "real":
        cluster: rig.Cluster = request.getfixturevalue("rig_cluster_with_node")
        async with connect(load(cluster.kubeconfig)) as connected, in_new_namespace(connected) as client:
            yield client
        return
    components = ComponentOptions(nodes=1, images=probe_image(tmp_path))
    async with EmbeddedCluster(components=components) as embedded, in_new_namespace(embedded.client()) as client:
        yield client


def container(*arguments: str, **fields: Any) -> Json:
    return {"name": "main", "image": rig.PROBE_IMAGE, "imagePullPolicy": "Never", "args": list(arguments), **fields}


async def until(client: Client, kind: Kind, what: str, met: Callable[[Json], Any], **fields: str) -> Json:
    """The first version of an object that is as it should be."""
    last: Json = {}
    try:
        async with (
            asyncio.timeout(SECONDS),
            client.watch(kind, fields=fields, options=WatchOptions(initial=True)) as changes,
        ):
            async for change in changes:
                last = dict(change.object)
                if met(last):
                    return last
    except TimeoutError:
        pytest.fail(f"expected {what} within {SECONDS} s, got at last {last.get('status')}")
    raise AssertionError("a watch does not end")


async def pod(client: Client, met: Callable[[Json], Any], *containers: Json, **spec: Any) -> Json:
    """The status of a new pod, once it is as it should be."""
    await until(client, ACCOUNTS, "an account", bool, **{"metadata.name": "default"})
    fields = {"terminationGracePeriodSeconds": 1, "automountServiceAccountToken": False, **spec}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web"},
        "spec": {"containers": containers, **fields},
    }
    await client.create(Dynamic(body))
    found = await until(client, PODS, "the pod", lambda known: met(known["status"]), **{"metadata.name": "web"})
    status: Json = found["status"]
    return status


async def told(client: Client, reason: str, message: str | None = None, *, beginning: str = "") -> None:
    """Returns when there is an event of that reason with that message, or one that begins so.

    Events are written apart from the status. On a slow machine others of that reason may come first, such as those of a
    kubelet that was not answered in time.
    """
    seen: list[str] = []

    def is_it(known: Json) -> bool:
        said = str(known.get("message"))
        seen.append(f"{known['reason']}: {said}")
        return known["reason"] == reason and (said == message or (message is None and said.startswith(beginning)))

    try:
        await until(client, EVENTS, f"an event {reason}: {message or beginning}", is_it)
    except pytest.fail.Exception as failure:
        raise AssertionError(f"{failure}; there were {seen}") from None


def waiting(status: Json) -> Json:
    """Why the first container waits; nothing if it does not."""
    statuses = status.get("containerStatuses") or [{}]
    found: Json = statuses[0].get("state", {}).get("waiting") or {}
    return found


def waits(reason: str, message: str = "") -> Callable[[Json], bool]:
    """Whether the first container waits for that reason, and says so."""
    return lambda status: (
        waiting(status).get("reason") == reason and message in OWN_WORDS.sub("", waiting(status).get("message", ""))
    )


def ended(status: Json) -> bool:
    return status.get("phase") in {"Succeeded", "Failed"}


def conditions(status: Json) -> dict[str, tuple[str, str | None, str | None]]:
    found = status["conditions"]
    return {known["type"]: (known["status"], known.get("reason"), known.get("message")) for known in found}


def shape(state: Json) -> Json:
    """A container's state without its times and ids."""
    varies = {"startedAt", "finishedAt", "containerID"}
    return {kind: {key: value for key, value in of.items() if key not in varies} for kind, of in state.items()}


async def test_a_pod_that_succeeds(pods: Client) -> None:
    """Completed, and said so in every condition."""
    status = await pod(pods, ended, container("exit", "0"), restartPolicy="Never")
    assert status["phase"] == "Succeeded"
    assert shape(status["containerStatuses"][0]["state"]) == {"terminated": {"exitCode": 0, "reason": "Completed"}}
    found = conditions(status)
    assert found["Initialized"] == ("True", "PodCompleted", None)
    assert found["Ready"] == found["ContainersReady"] == ("False", "PodCompleted", None)
    assert found["PodScheduled"] == ("True", None, None)


async def test_a_pod_that_fails(pods: Client) -> None:
    """Its exit code is told."""
    status = await pod(pods, ended, container("exit", "3"), restartPolicy="Never")
    assert status["phase"] == "Failed"
    assert shape(status["containerStatuses"][0]["state"]) == {"terminated": {"exitCode": 3, "reason": "Error"}}
    assert conditions(status)["Ready"] == ("False", "PodFailed", None)
    for reason in ("Pulled", "Created", "Started"):
        await told(pods, reason)


async def test_a_pod_that_runs(pods: Client) -> None:
    """Ready, with addresses; its deletion is told and ends it."""
    status = await pod(pods, lambda status: status.get("phase") == "Running", container("pause"))
    first = status["containerStatuses"][0]
    assert (first["ready"], first["started"], first["restartCount"], first["lastState"]) == (True, True, 0, {})
    assert set(first["state"]) == {"running"}
    assert status["podIPs"] == [{"ip": status["podIP"]}]
    assert status["hostIPs"] == [{"ip": status["hostIP"]}]
    assert status["qosClass"] == "BestEffort"
    await pods.delete(PODS, "web")
    await told(pods, "Killing", "Stopping container main")


async def test_a_container_that_crashes(pods: Client) -> None:
    """Restarted at once, then later and later."""
    status = await pod(pods, waits("CrashLoopBackOff"), container("exit", "3"))
    assert status["phase"] == "Running"
    assert status["containerStatuses"][0]["restartCount"] == 1
    assert shape(status["containerStatuses"][0]["lastState"]) == {"terminated": {"exitCode": 3, "reason": "Error"}}
    message = waiting(status)["message"]
    assert re.fullmatch(r"back-off 10s restarting failed container=main pod=web_test-\d+\([-0-9a-f]+\)", message)
    assert conditions(status)["Ready"] == (
        "False",
        "ContainersNotReady",
        "containers with unready status: [main]",
    )
    await told(pods, "BackOff", beginning="Back-off restarting failed container main in pod web_test-")


async def test_an_image_that_is_never_pulled(pods: Client) -> None:
    """It is told, and waited for."""
    status = await pod(pods, waits("ErrImageNeverPull"), container("pause", image="example.com/none:1"))
    text = 'Container image "example.com/none:1" is not present with pull policy of Never'
    assert waiting(status)["message"] == text
    assert status["phase"] == "Pending"
    await told(pods, "ErrImageNeverPull", text)


async def test_an_image_that_cannot_be_pulled(pods: Client) -> None:
    """ErrImagePull, then ImagePullBackOff."""
    image = "example.com/none:1"
    status = await pod(pods, waits("ImagePullBackOff"), container("pause", image=image, imagePullPolicy="IfNotPresent"))
    assert waiting(status)["message"].startswith(f'Back-off pulling image "{image}": ErrImagePull: ')
    await told(pods, "Pulling", f'Pulling image "{image}"')
    await told(pods, "Failed", "Error: ErrImagePull")


async def test_a_program_that_is_not_there(pods: Client) -> None:
    """RunContainerError, and the end of a container that never ran."""
    status = await pod(pods, waits("RunContainerError"), container(command=["no-such-program"]))
    text = 'exec: "no-such-program": executable file not found in $PATH'
    assert OWN_WORDS.sub("", waiting(status)["message"]) == text
    last = status["containerStatuses"][0]["lastState"]["terminated"]
    assert (last["exitCode"], last["reason"]) == (128, "StartError")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"envFrom": [{"configMapRef": {"name": "late"}}]}, 'configmap "late" not found'),
        (
            {"env": [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "late", "key": "x"}}}]},
            'secret "late" not found',
        ),
    ],
    ids=["ConfigMap", "Secret"],
)
async def test_a_reference_that_leads_nowhere(pods: Client, fields: Json, message: str) -> None:
    """CreateContainerConfigError."""
    status = await pod(pods, waits("CreateContainerConfigError", message), container("pause", **fields))
    assert waiting(status)["message"] == message
    await told(pods, "Failed", f"Error: {message}")


@pytest.mark.parametrize(
    ("volume", "message"),
    [
        ({"configMap": {"name": "late"}}, 'configmap "late" not found'),
        ({"secret": {"secretName": "late"}}, 'secret "late" not found'),
        (
            {"hostPath": {"path": "/nothing", "type": "Directory"}},
            "hostPath type check failed: /nothing is not a directory",
        ),
    ],
    ids=["ConfigMap", "Secret", "hostPath"],
)
async def test_a_volume_that_cannot_be_made(pods: Client, volume: Json, message: str) -> None:
    """FailedMount, while the container is still being created."""
    mounts = [{"name": "v", "mountPath": "/v"}]
    status = await pod(
        pods,
        waits("ContainerCreating"),
        container("pause", volumeMounts=mounts),
        volumes=[{"name": "v", **volume}],
    )
    assert "podIP" not in status
    assert status["containerStatuses"][0]["volumeMounts"] == mounts
    await told(pods, "FailedMount", f'MountVolume.SetUp failed for volume "v" : {message}')


async def test_an_init_container_that_fails(pods: Client) -> None:
    """With restart policy Never it fails the pod."""
    first = {**container("exit", "4"), "name": "first"}
    status = await pod(pods, ended, container("pause"), initContainers=[first], restartPolicy="Never")
    assert status["phase"] == "Failed"
    assert conditions(status)["Initialized"] == (
        "False",
        "ContainersNotInitialized",
        "containers with incomplete status: [first]",
    )
    assert waiting(status) == {"reason": "PodInitializing"}


async def test_init_containers_and_sidecars(pods: Client) -> None:
    """One that is done is ready; a sidecar runs, and is ended after the others."""
    first = {**container("exit", "0"), "name": "first"}
    listens = {"tcpSocket": {"port": 7000}, "periodSeconds": 1, "failureThreshold": SECONDS}
    side = {**container("http", "7000", startupProbe=listens), "name": "side", "restartPolicy": "Always"}
    spec = {"initContainers": [first, side], "restartPolicy": "Never", "terminationGracePeriodSeconds": SECONDS}
    status = await pod(pods, ended, container("exit", "0"), **spec)
    assert status["phase"] == "Succeeded"
    done, sidecar = status["initContainerStatuses"]
    assert (done["ready"], shape(done["state"])) == (True, {"terminated": {"exitCode": 0, "reason": "Completed"}})
    assert shape(sidecar["state"]) == {"terminated": {"exitCode": 0, "reason": "Completed"}}


async def test_a_deadline(pods: Client) -> None:
    """The pod has failed, and says why."""
    status = await pod(pods, ended, container("pause"), activeDeadlineSeconds=3)
    text = "Pod was active on the node longer than the specified deadline"
    assert (status["phase"], status["reason"], status["message"]) == ("Failed", "DeadlineExceeded", text)
    await told(pods, "DeadlineExceeded", text)


async def test_probes_that_fail(pods: Client) -> None:
    """What was tried is told; a container that is not alive is restarted."""
    often = {"periodSeconds": 1, "failureThreshold": 1}
    status = await pod(
        pods,
        lambda status: status.get("containerStatuses", [{}])[0].get("restartCount"),
        container("pause", livenessProbe={"tcpSocket": {"port": 9}, **often}),
    )
    await told(pods, "Unhealthy", f"Liveness probe failed: dial tcp {status['podIP']}:9: connect: connection refused")
    await told(pods, "Killing", "Container main failed liveness probe, will be restarted")


async def test_a_pod_that_is_not_ready(pods: Client) -> None:
    """It runs, but its readiness probe fails."""
    probe = {"httpGet": {"port": 9, "path": "/x"}, "periodSeconds": 1, "failureThreshold": 1}
    status = await pod(pods, lambda status: status.get("phase") == "Running", container("pause", readinessProbe=probe))
    assert conditions(status)["Ready"][:2] == ("False", "ContainersNotReady")
    address = f"{status['podIP']}:9"
    refused = f'Get "http://{address}/x": dial tcp {address}: connect: connection refused'
    await told(pods, "Unhealthy", f"Readiness probe failed: {refused}")


async def test_hooks_that_fail(pods: Client) -> None:
    """A container whose postStart hook fails is ended and started again."""
    hook = {"postStart": {"httpGet": {"port": 9, "path": "/"}}}
    status = await pod(
        pods,
        lambda status: status.get("containerStatuses", [{}])[0].get("restartCount"),
        container("pause", lifecycle=hook),
    )
    assert status["phase"] in {"Running", "Pending"}
    await told(pods, "FailedPostStartHook", beginning="PostStartHook failed")
    await told(pods, "Killing", "FailedPostStartHook")


SOURCES = {
    ("ScalingReplicaSet", "Deployment", "deployment-controller", ""),
    ("SuccessfulCreate", "ReplicaSet", "replicaset-controller", ""),
    ("Scheduled", "Pod", "default-scheduler", ""),
    ("Pulled", "Pod", "kubelet", "spec.initContainers{first}"),
    ("Created", "Pod", "kubelet", "spec.initContainers{first}"),
    ("Started", "Pod", "kubelet", "spec.initContainers{first}"),
    ("Pulled", "Pod", "kubelet", "spec.containers{main}"),
    ("Created", "Pod", "kubelet", "spec.containers{main}"),
    ("Started", "Pod", "kubelet", "spec.containers{main}"),
}


async def test_events_say_who_tells_them_and_of_which_container(pods: Client) -> None:
    """From a Deployment to the start of its containers, as `kubectl get events -o wide` shows them."""
    await until(pods, ACCOUNTS, "an account", bool, **{"metadata.name": "default"})
    labels, missing = {"app": "web"}, {*SOURCES}
    spec = {"initContainers": [{**container("echo"), "name": "first"}], "containers": [container("pause")]}
    template = {"metadata": {"labels": labels}, "spec": {**spec, "terminationGracePeriodSeconds": 0}}
    body = {"selector": {"matchLabels": labels}, "template": template}
    head = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
    await pods.create(Dynamic({**head, "spec": body}))

    def is_last(told: Json) -> bool:
        about = told["involvedObject"]
        missing.discard((told["reason"], about["kind"], told["reportingComponent"], about.get("fieldPath", "")))
        return not missing

    await until(pods, EVENTS, "all events", is_last)
