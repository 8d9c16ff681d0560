"""What clients are warned of about pods, and about what runs them."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from typing import Any, Final

from navarch.api.names import DNS_LABEL
from navarch.api.quantity import Quantity
from navarch.cluster.server.wire.request import Json

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


def pod_warnings(pod: Json, old: Json | None) -> Iterator[str]:
    """Warnings about a new pod."""
    if old is None:
        yield from _name_warnings(pod, old, "the Pod's hostname")
        yield from _spec_warnings(pod["spec"], "spec")


def workload_warnings(value: Json, old: Json | None) -> Iterator[str]:
    """Warnings about what gives its pods names that begin with its own."""
    yield from _name_warnings(value, old, "Pod names and hostnames")
    yield from template_warnings(value, old)


def template_warnings(value: Json, old: Json | None) -> Iterator[str]:
    """Warnings about the pods that it makes, if anything has changed."""
    if old is None or value["metadata"].get("generation") != old["metadata"].get("generation"):
        yield from _spec_warnings(((value["spec"].get("template") or {}).get("spec")) or {}, "spec.template.spec")


def cron_job_warnings(value: Json, old: Json | None) -> Iterator[str]:
    """Warnings about a CronJob."""
    pod = value["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    yield from _name_warnings(value, old, "Pod names and hostnames")
    yield from _spec_warnings(pod, "spec.jobTemplate.spec.template.spec")


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
    known = _KnownPorts()
    for place, port in _ports(spec, path):
        for other, before in known.clashing(port):
            yield _port_clash(place, port, other, before)
        known.add(place, port)
    names: dict[str, str] = {}
    for place, port in _ports(spec, path):
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


class _KnownPorts:
    """The ports so far, found by what they clash with: a pod may have thousands."""

    def __init__(self) -> None:
        self._found: dict[tuple[Any, ...], list[tuple[int, str, Json]]] = {}
        self._count = 0

    def add(self, place: str, port: Json) -> None:
        container_port, number, address = _port_key(port)
        entry = (self._count, place, port)
        for key in ((container_port,), (container_port, number), (container_port, number, address)):
            self._found.setdefault(key, []).append(entry)
        self._count += 1

    def clashing(self, port: Json) -> Iterator[tuple[str, Json]]:
        """Those that the port clashes with, in order. One without a port of the node clashes with all of its number."""
        container_port, number, address = _port_key(port)
        keys: list[tuple[Any, ...]]
        if not number:
            keys = [(container_port,)]
        elif not address:
            keys = [(container_port, 0), (container_port, number)]
        else:
            keys = [(container_port, 0), (container_port, number, ""), (container_port, number, address)]
        for _, place, other in merge(*(self._found.get(key, ()) for key in keys)):
            yield place, other


def _port_key(port: Json) -> tuple[tuple[int, str | None], int, str]:
    return (port["containerPort"], port.get("protocol")), port.get("hostPort") or 0, port.get("hostIP") or ""


def _port_clash(place: str, port: Json, other: str, before: Json) -> str:
    (_, number, address), (_, number_before, address_before) = _port_key(port), _port_key(before)
    if (address, number) == (address_before, number_before):
        return f"{place}: duplicate port definition with {other}"
    if not number or not number_before:
        return f"{place}: overlapping port definition with {other}"
    return f"{place}: dangerously ambiguous port definition with {other}"


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
