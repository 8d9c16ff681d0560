"""Checks of pods and their updates, and warnings about pods and pod templates."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from typing import Any, Final

import msgspec

from navarch.api.names import DNS_LABEL
from navarch.api.quantity import Quantity
from navarch.cluster.server.kinds.builtin.pods.spec import check_pod_spec
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_causes import forbidden, invalid, required
from navarch.errors import Cause

_CONTAINER_LISTS: Final = ("containers", "initContainers")
_UPDATES: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def check_pod(pod: Json) -> Iterator[Cause]:
    """A pod, new or changed."""
    yield from check_pod_spec(pod["spec"], "spec")
    yield from _check_images(pod["spec"])
    if pod["spec"].get("ephemeralContainers") and not pod["metadata"].get("resourceVersion"):
        yield forbidden("spec.ephemeralContainers", "cannot be set on create")


def _check_images(spec: Json) -> Iterator[Cause]:
    """Refuses image names with surrounding spaces, which templates may have."""
    for name in (*_CONTAINER_LISTS, "ephemeralContainers"):
        for index, container in enumerate(spec.get(name) or ()):
            image = container.get("image", "")
            if image != image.strip():
                yield invalid(f"spec.{name}[{index}].image", image, "must not have leading or trailing whitespace")


def check_pod_update(pod: Json, old: Json) -> Iterator[Cause]:
    """Only a few fields of a pod's spec change, and some only in one direction."""
    spec, before = pod["spec"], old["spec"]
    counts = [(len(spec.get(name) or ()), len(before.get(name) or ())) for name in _CONTAINER_LISTS]
    for name, (now, then) in zip(_CONTAINER_LISTS, counts, strict=True):
        if now != then:
            yield forbidden(f"spec.{name}", "pod updates may not add or remove containers")
            return
    for index, container in enumerate(spec.get("containers") or ()):
        if not container.get("image"):
            yield required(f"spec.containers[{index}].image")
    yield from _check_deadline(spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds"))
    yield from _check_tolerations(spec.get("tolerations") or [], before.get("tolerations") or [])
    if _fixed(spec, before) != _fixed(before, before):
        yield forbidden("spec", _UPDATES)


def resize_faults(spec: Json, before: Json, path: str) -> Iterator[Cause]:
    """Other containers than before, or in another order, which no resize can make."""
    for kind in _CONTAINER_LISTS:
        now, then = ([each["name"] for each in of.get(kind) or ()] for of in (spec, before))
        if len(now) != len(then):
            yield forbidden(f"{path}.{kind}", f"{kind} may not be added or removed on resize")
            continue
        for index, (name, known) in enumerate(zip(now, then, strict=True)):
            if name != known:
                said = f"{kind} may not be renamed or reordered on resize"
                yield forbidden(f"{path}.{kind}[{index}].name", said)


def removal_faults(spec: Json, before: Json, path: str) -> Iterator[Cause]:
    """Resources that a container had, and has no more."""
    pairs = zip(spec.get("containers") or (), before.get("containers") or (), strict=True)
    for index, (now, then) in enumerate(pairs):
        for kind in ("requests", "limits"):
            left, had = ((each.get("resources") or {}).get(kind) or {} for each in (now, then))
            if had.keys() - left.keys():
                field = f"{path}.containers[{index}].resources.{kind}"
                yield forbidden(field, f"resource {kind} cannot be removed")


def _check_deadline(now: int | None, then: int | None) -> Iterator[Cause]:
    if now is None and then is not None:
        yield invalid("spec.activeDeadlineSeconds", now, "must not update from a positive integer to nil value")
    elif now is not None and then is not None and now > then:
        yield invalid("spec.activeDeadlineSeconds", now, "must be less than or equal to previous value")


def _check_tolerations(now: list[Json], then: list[Json]) -> Iterator[Cause]:
    kept = {_toleration(each) for each in now}
    if any(_toleration(each) not in kept for each in then):
        said = "existing toleration can not be modified except its tolerationSeconds"
        yield forbidden("spec.tolerations", said)


def _toleration(toleration: Json) -> bytes:
    return _canonical({name: value for name, value in toleration.items() if name != "tolerationSeconds"})


def _canonical(value: Json) -> bytes:
    """Returns equal bytes for equal values, as a key: a pod may have thousands of tolerations."""
    return msgspec.json.encode(value, order="deterministic")


def _fixed(spec: Json, before: Json) -> Json:
    """Returns the spec with all mutable fields set to their old values."""
    fixed: Json = {**spec}
    for name in _CONTAINER_LISTS:
        fixed[name] = [{**each, "image": ""} for each in spec.get(name) or ()]
    for name in ("activeDeadlineSeconds", "tolerations"):
        fixed.pop(name, None)
    if (before.get("terminationGracePeriodSeconds") or 0) < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        fixed["terminationGracePeriodSeconds"] = before["terminationGracePeriodSeconds"]
    if before.get("schedulingGates"):
        _allow_gates(fixed, before)
    return fixed


def _allow_gates(fixed: Json, before: Json) -> None:
    """A pod that waits at a gate may lose gates and be steered to nodes."""
    known = {_canonical(gate) for gate in before["schedulingGates"]}
    if all(_canonical(gate) in known for gate in fixed.get("schedulingGates") or ()):
        for name in ("schedulingGates", "nodeSelector", "affinity"):
            fixed.pop(name, None)


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
