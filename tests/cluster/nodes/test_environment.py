"""A container's environment and command come from all of their sources."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from cluster.nodes.machines import Machine, shell, waits_for
from navarch.cluster.nodes.pods.environment import expanded
from navarch.k8s.core.v1 import ConfigMap, Container, Secret, Service, ServicePort, ServiceSpec


async def test_variables_come_from_everywhere(machine: Machine) -> None:
    """Values, ConfigMaps, Secrets, fields and resources set variables; later sources override, and references are
    expanded.
    """
    await machine.cluster.create(ConfigMap(name="settings", data={"COLOUR": "red", "SIZE": "9", "not-a.name": "no"}))
    await machine.cluster.create(Secret(name="hidden", data={"PASSWORD": b"s3cret"}))
    variables = [
        {"name": "SIZE", "value": "10"},
        {"name": "BOTH", "value": "$(COLOUR)-$(SIZE)-$(NOBODY)-$$(SIZE)"},
        {"name": "WORD", "valueFrom": {"secretKeyRef": {"name": "hidden", "key": "PASSWORD"}}},
        {"name": "MAYBE", "valueFrom": {"configMapKeyRef": {"name": "absent", "key": "x", "optional": True}}},
        {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "APP", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
        {"name": "ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "requests.cpu"}}},
        {"name": "MEMORY", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}},
    ]
    pod = await machine.ended(
        shell(
            "env",
            env=variables,
            env_from=[{"configMapRef": {"name": "settings"}}, {"prefix": "X_", "secretRef": {"name": "hidden"}}],
            resources={"requests": {"cpu": "1500m"}, "limits": {"memory": "64Mi", "cpu": "2"}},
        )
    )
    found = dict(line.split("=", 1) for line in (await machine.log(pod)).splitlines())
    assert found["COLOUR"] == "red"
    assert found["BOTH"] == "red-10-$(NOBODY)-$(SIZE)"
    assert (found["WORD"], found["X_PASSWORD"]) == ("s3cret", "s3cret")
    assert "MAYBE" not in found
    assert (found["POD"], found["APP"], found["NODE"]) == ("pod", "pod", "machine")
    assert found["ADDRESS"] == pod.status.pod_ip
    assert (found["CPU"], found["MEMORY"]) == ("2", "64")
    assert found["HOSTNAME"] == "pod"


async def test_services_are_named_in_the_environment(machine: Machine) -> None:
    """Services of the namespace are there as variables, unless the pod does not want them."""
    spec = ServiceSpec(cluster_ip="10.0.0.77", ports=[ServicePort(port=80, name="http", protocol="TCP")])
    await machine.cluster.create(Service(name="my-web", spec=spec))
    await machine.cluster.eventually(_services(machine), lambda names: "my-web" in names)
    pod = await machine.ended(shell("env"))
    text = await machine.log(pod)
    assert "MY_WEB_SERVICE_HOST=10.0.0.77\n" in text
    assert "MY_WEB_PORT_80_TCP=tcp://10.0.0.77:80\n" in text
    plain = await machine.ended(shell("env"), name="plain", enable_service_links=False)
    without = await machine.log(plain)
    assert "MY_WEB" not in without
    assert "KUBERNETES_SERVICE_HOST=10.0.0.1\n" in without


def _services(machine: Machine) -> Callable[[], Awaitable[set[str]]]:
    async def names() -> set[str]:
        return {service.name for service in await machine.network.services()}

    return names


async def test_nothing_of_the_clusters_own_environment_leaks(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program finds what its pod says, not what the cluster was started with."""
    monkeypatch.setenv("NAVARCH_TEST_SECRET", "x")
    pod = await machine.ended(shell("env"))
    assert "NAVARCH_TEST_SECRET" not in await machine.log(pod)


async def test_a_missing_config_map_is_waited_for(machine: Machine) -> None:
    """The container waits with CreateContainerConfigError, and starts once the ConfigMap exists."""
    source = [{"configMapRef": {"name": "late"}}]
    await machine.create(shell("sleep 100", env_from=source))
    await machine.until(lambda pod: waits_for(pod) == "CreateContainerConfigError")
    assert await machine.noted("Failed") == 'Error: configmap "late" not found'
    await machine.cluster.create(ConfigMap(name="late", data={}))
    await machine.until(lambda pod: pod.status.phase == "Running")


async def test_command_and_arguments_have_references(machine: Machine) -> None:
    """`$(NAME)` in a command and its arguments is replaced; arguments alone go to the image's program."""
    container = Container(name="main", image="script", args=["echo $0 $1", "$(WHO)", "$$(WHO)"], env=[])
    container.env = [{"name": "WHO", "value": "me"}]  # type: ignore[list-item]  # as in a manifest
    pod = await machine.ended(container)
    assert await machine.log(pod) == "me $(WHO)\n"


@pytest.mark.parametrize(
    ("text", "result"),
    [("$(A)", "1"), ("$$(A)", "$(A)"), ("$$$(A)", "$1"), ("$(", "$("), ("$A $", "$A $"), ("$(B)", "$(B)"), ("", "")],
)
def test_expansion_is_kubernetes_own(text: str, result: str) -> None:
    """A text that is no reference, or refers to nothing, stays as it is."""
    assert expanded(text, {"A": "1"}) == result
