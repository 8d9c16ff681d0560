"""What clients are warned of about pods, and about what runs them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from navarch.api.names import DNS_LABEL
from navarch.api.quantity import Quantity
from navarch.cluster.server.request import Json

__all__ = ["cron_job_warnings", "pod_warnings", "template_warnings", "workload_warnings"]

_SURPRISE: Final = "which can result in surprising behavior; a DNS label is recommended"
_OLD_VOLUMES: Final = {
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
}
_WHOLE: Final = 1000


def pod_warnings(pod: Json, old: Json | None) -> list[str]:
    """Warnings about a new pod."""
    return (
        []
        if old is not None
        else [*_name_warnings(pod, old, "the Pod's hostname"), *_spec_warnings(pod["spec"], "spec")]
    )


def workload_warnings(value: Json, old: Json | None) -> list[str]:
    """Warnings about what gives its pods names that begin with its own."""
    return [*_name_warnings(value, old, "Pod names and hostnames"), *template_warnings(value, old)]


def template_warnings(value: Json, old: Json | None) -> list[str]:
    """Warnings about the pods that it makes, if anything has changed."""
    if old is not None and value["metadata"].get("generation") == old["metadata"].get("generation"):
        return []
    return [*_spec_warnings(((value["spec"].get("template") or {}).get("spec")) or {}, "spec.template.spec")]


def cron_job_warnings(value: Json, old: Json | None) -> list[str]:
    """Warnings about a CronJob."""
    pod = value["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    return [
        *_name_warnings(value, old, "Pod names and hostnames"),
        *_spec_warnings(pod, "spec.jobTemplate.spec.template.spec"),
    ]


def _name_warnings(value: Json, old: Json | None, use: str) -> Iterator[str]:
    faults = DNS_LABEL.faults(value["metadata"].get("name", "")) if old is None else []
    if faults:
        yield f"metadata.name: this is used in {use}, {_SURPRISE}: [{' '.join(faults)}]"


def _spec_warnings(spec: Json, path: str) -> Iterator[str]:
    for index, each in enumerate(spec.get("topologySpreadConstraints") or ()):
        if each.get("labelSelector") is None:
            place = f"{path}.topologySpreadConstraints[{index}].labelSelector"
            yield f"{place}: a null labelSelector results in matching no pod"
    for index, volume in enumerate(spec.get("volumes") or ()):
        for name in _OLD_VOLUMES.keys() & volume.keys():
            yield f"{path}.volumes[{index}].{name}: {_OLD_VOLUMES[name]}"
    for index, secret in enumerate(spec.get("imagePullSecrets") or ()):
        if not secret.get("name"):
            yield f'{path}.imagePullSecrets[{index}].name: invalid empty name ""'
    for name in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(name) or ()):
            yield from _fractions(container.get("resources") or {}, f"{path}.{name}[{index}].resources")
            yield from _repeated_variables(container.get("env") or (), f"{path}.{name}[{index}]")
    yield from _repeated_ports(spec, path)
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        place = f"{path}.terminationGracePeriodSeconds"
        yield f"{place}: must be >= 0; negative values are invalid and will be treated as 1"


def _repeated_ports(spec: Json, path: str) -> Iterator[str]:
    """Ports of whatever containers that are the same, or may be."""
    known: list[tuple[str, Json]] = []
    for place, port in _ports(spec, path):
        for other, before in known:
            if (port["containerPort"], port.get("protocol")) == (before["containerPort"], before.get("protocol")):
                yield from _port_clash(place, port, other, before)
        known.append((place, port))
    names: dict[str, str] = {}
    for place, port in known:
        if (name := port.get("name", "")) in names:
            used = "services and probes that select ports by name will use"
            yield f'{place}: duplicate port name "{name}" with {names[name]}, {used} {names[name]}'
        elif name:
            names[name] = place


def _ports(spec: Json, path: str) -> Iterator[tuple[str, Json]]:
    for name in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(name) or ()):
            for number, port in enumerate(container.get("ports") or ()):
                yield f"{path}.{name}[{index}].ports[{number}]", port


def _port_clash(place: str, port: Json, other: str, before: Json) -> Iterator[str]:
    address, number = port.get("hostIP", ""), port.get("hostPort", 0)
    address_before, number_before = before.get("hostIP", ""), before.get("hostPort", 0)
    if (address, number) == (address_before, number_before):
        yield f"{place}: duplicate port definition with {other}"
    elif not number or not number_before:
        yield f"{place}: overlapping port definition with {other}"
    elif number == number_before and bool(address) != bool(address_before):
        yield f"{place}: dangerously ambiguous port definition with {other}"


def _fractions(resources: Json, path: str) -> Iterator[str]:
    for resource in ("memory", "ephemeral-storage"):
        for kind in ("limits", "requests"):
            amount = (resources.get(kind) or {}).get(resource)
            if amount is not None and Quantity(amount).milli_value % _WHOLE:
                yield f'{path}.{kind}[{resource}]: fractional byte value "{amount}" is invalid, must be an integer'


def _repeated_variables(variables: Any, path: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, variable in enumerate(variables):
        name = variable.get("name", "")
        if name in seen:
            yield f'{path}.env[{index}]: hides previous definition of "{name}", which may be dropped when using apply'
        seen.add(name)
