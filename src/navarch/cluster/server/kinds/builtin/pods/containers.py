"""Checks of containers: images, ports, variables, mounts, resources, probes and security."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from navarch.api.names import DNS_SUBDOMAIN
from navarch.api.quantity import Quantity
from navarch.cluster.server.kinds.builtin.generic.checks import (
    NOT_NEGATIVE,
    at_least_zero,
    choice,
    config_key,
    exactly_one,
    named,
    node_port_or_name,
    port_name_faults,
    port_number,
    required_name,
    resource_name,
    unique,
)
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_causes import duplicate, forbidden, invalid, not_found, required
from navarch.errors import Cause

PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_PULL: Final = ("Always", "IfNotPresent", "Never")
_MESSAGES: Final = ("File", "FallbackToLogsOnError")
_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE_NUMBERS: Final = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)
_VARIABLE: Final = re.compile(r"[ -<>-~]+")
_VARIABLE_SENTENCE: Final = (
    "a valid environment variable name must consist only of printable ASCII characters other than '='"
)
_SOURCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_FIELDS: Final = frozenset(
    {
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    }
)
_SUBSCRIPTED: Final = re.compile(r"metadata\.(labels|annotations)\['[^']+'\]")
_CONTAINER_RESOURCES: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_NOT_EPHEMERAL: Final = ("ports", "resources", "resizePolicy", "restartPolicy", *_PROBES, "lifecycle")
_PROPAGATION: Final = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE: Final = ("Disabled", "Enabled", "IfPossible")
_LARGEST_ID: Final = 2**31 - 1


def check_containers(spec: Json, path: str) -> Iterator[Cause]:
    """Containers and init containers of a pod."""
    volumes = {each.get("name"): each for each in spec.get("volumes") or ()}
    containers = spec.get("containers") or ()
    if not containers:
        yield required(f"{path}.containers")
    host = bool(spec.get("hostNetwork"))
    for index, container in enumerate(containers):
        yield from _check_container(container, f"{path}.containers[{index}]", volumes, host_network=host)
    yield from unique((each["name"], f"{path}.containers[{index}].name") for index, each in enumerate(containers))
    yield from _check_init_containers(spec, path, volumes)


def _check_init_containers(spec: Json, path: str, volumes: Json) -> Iterator[Cause]:
    seen = {each["name"] for each in spec.get("containers") or ()}
    for index, container in enumerate(spec.get("initContainers") or ()):
        place = f"{path}.initContainers[{index}]"
        yield from _check_container(container, place, volumes, host_network=bool(spec.get("hostNetwork")))
        if container["name"] in seen:
            yield duplicate(f"{place}.name", container["name"])
        seen.add(container["name"])
        if container.get("restartPolicy") != "Always":
            for name in ("lifecycle", *_PROBES):
                if name in container:
                    yield forbidden(
                        f"{place}.{name}", "may not be set for init containers without restartPolicy=Always"
                    )


def check_ephemeral_containers(spec: Json, path: str) -> Iterator[Cause]:
    """Containers for debugging: nothing depends on them, and they have no resources of their own."""
    volumes = {each.get("name"): each for each in spec.get("volumes") or ()}
    others = {each["name"] for name in ("containers", "initContainers") for each in spec.get(name) or ()}
    seen = {*others}
    for index, container in enumerate(spec.get("ephemeralContainers") or ()):
        place, target = f"{path}[{index}]", container.get("targetContainerName")
        yield from _check_container(container, place, volumes, host_network=bool(spec.get("hostNetwork")))
        if container["name"] in seen:
            yield duplicate(f"{place}.name", container["name"])
        seen.add(container["name"])
        if target and target not in others:
            yield not_found(f"{place}.targetContainerName", target)
        for name in _NOT_EPHEMERAL:
            if container.get(name):
                yield forbidden(f"{place}.{name}", "cannot be set for an Ephemeral Container")


def _check_container(container: Json, path: str, volumes: Json, *, host_network: bool) -> Iterator[Cause]:
    yield from required_name(container.get("name"), f"{path}.name")
    yield from _check_image(container.get("image", ""), f"{path}.image")
    yield from choice(container.get("terminationMessagePolicy"), f"{path}.terminationMessagePolicy", _MESSAGES)
    yield from _check_ports(container.get("ports") or (), f"{path}.ports", host_network=host_network)
    yield from _check_env(container, path)
    privileged = bool((container.get("securityContext") or {}).get("privileged"))
    yield from _check_mounts(
        container.get("volumeMounts") or (), f"{path}.volumeMounts", volumes, privileged=privileged
    )
    yield from choice(container.get("imagePullPolicy"), f"{path}.imagePullPolicy", _PULL)
    yield from check_resources(container.get("resources") or {}, f"{path}.resources")
    yield from _check_probes(container, path)
    for name in ("postStart", "preStop"):
        if (handler := (container.get("lifecycle") or {}).get(name)) is not None:
            yield from _check_handler(handler, f"{path}.lifecycle.{name}")
    yield from _check_security(container.get("securityContext") or {}, f"{path}.securityContext")


def _check_image(image: str, field: str) -> Iterator[Cause]:
    if not image:
        yield required(field)


def _check_ports(ports: Any, path: str, *, host_network: bool) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, port in enumerate(ports):
        place = f"{path}[{index}]"
        if name := port.get("name"):
            faults = port_name_faults(name)
            yield from (invalid(f"{place}.name", name, said) for said in faults)
            if not faults and name in seen:
                yield duplicate(f"{place}.name", name)
            seen.add(name)
        if not port.get("containerPort"):
            yield required(f"{place}.containerPort")
        else:
            yield from port_number(port["containerPort"], f"{place}.containerPort")
        yield from _check_host_port(port, f"{place}.hostPort", host_network=host_network)
        yield from choice(port.get("protocol"), f"{place}.protocol", PROTOCOLS)


def _check_host_port(port: Json, field: str, *, host_network: bool) -> Iterator[Cause]:
    if not port.get("hostPort"):
        return
    yield from port_number(port["hostPort"], field)
    if host_network and port["hostPort"] != port.get("containerPort"):
        yield invalid(field, port["hostPort"], "must match `containerPort` when `hostNetwork` is true")


def _check_env(container: Json, path: str) -> Iterator[Cause]:
    for index, variable in enumerate(container.get("env") or ()):
        place = f"{path}.env[{index}]"
        yield from _check_variable_name(variable.get("name", ""), f"{place}.name")
        if variable.get("valueFrom") is not None:
            yield from _check_value_from(variable, f"{place}.valueFrom")
    for index, source in enumerate(container.get("envFrom") or ()):
        references = [name for name in ("configMapRef", "secretRef") if name in source]
        field = f"{path}.envFrom"
        if not references:
            yield invalid(field, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(references) > 1:
            yield invalid(field, "", "may not have more than one field specified at a time")
        for name in references:
            yield from required_name(
                source[name].get("name"), f"{path}.envFrom[{index}].{name}.name", DNS_SUBDOMAIN.faults
            )


def _check_variable_name(name: str, field: str) -> Iterator[Cause]:
    if not name:
        yield required(field)
    elif not _VARIABLE.fullmatch(name):
        yield invalid(field, name, _VARIABLE_SENTENCE)


def _check_value_from(variable: Json, path: str) -> Iterator[Cause]:
    source = variable["valueFrom"]
    given = [name for name in _SOURCES if name in source]
    if not given:
        listed = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        yield invalid(path, "", f"must specify one of: {listed}")
    elif variable.get("value"):
        yield invalid(path, "", "may not be specified when `value` is not empty")
    elif len(given) > 1:
        yield invalid(path, "", "may not have more than one field specified at a time")
    if "fieldRef" in source:
        yield from check_field_reference(source["fieldRef"], f"{path}.fieldRef", _FIELDS)
    for name in {"configMapKeyRef", "secretKeyRef"} & {*given}:
        yield from _check_key_reference(source[name], f"{path}.{name}")


def check_field_reference(reference: Json, path: str, fields: frozenset[str]) -> Iterator[Cause]:
    """A field of the pod that a variable or a file shows."""
    field = reference.get("fieldPath", "")
    if not field:
        yield required(f"{path}.fieldPath")
    elif field not in fields and not _SUBSCRIPTED.fullmatch(field):
        yield invalid(f"{path}.fieldPath", field, f"error converting fieldPath: field label not supported: {field}")


def _check_key_reference(reference: Json, path: str) -> Iterator[Cause]:
    yield from named(reference.get("name") or "", f"{path}.name")
    if not reference.get("key"):
        yield required(f"{path}.key")
    else:
        yield from config_key(reference["key"], f"{path}.key")


def _check_mounts(mounts: Any, path: str, volumes: Json, *, privileged: bool) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, mount in enumerate(mounts):
        name, place = mount.get("name", ""), f"{path}[{index}]"
        if not name:
            yield required(f"{place}.name")
        if name not in volumes:
            yield not_found(f"{place}.name", name)
        if not mount.get("mountPath"):
            yield required(f"{place}.mountPath")
        elif mount["mountPath"] in seen:
            yield invalid(f"{place}.mountPath", mount["mountPath"], "must be unique")
        seen.add(mount.get("mountPath", ""))
        yield from _check_sub_path(mount, place, path)
        yield from _check_propagation(mount, path, privileged=privileged)


def _check_sub_path(mount: Json, place: str, path: str) -> Iterator[Cause]:
    yield from check_local_path(mount.get("subPath", ""), f"{path}.subPath")
    expression = mount.get("subPathExpr", "")
    if expression and mount.get("subPath"):
        yield invalid(f"{place}.subPathExpr", expression, "subPathExpr and subPath are mutually exclusive")
    yield from check_local_path(expression, f"{path}.subPathExpr")


def _check_propagation(mount: Json, path: str, *, privileged: bool) -> Iterator[Cause]:
    propagation, recursive = mount.get("mountPropagation"), mount.get("recursiveReadOnly")
    yield from choice(propagation, f"{path}.mountPropagation", _PROPAGATION)
    if propagation == "Bidirectional" and not privileged:
        said = "Bidirectional mount propagation is available only to privileged containers"
        yield forbidden(f"{path}.mountPropagation", said)
    field = f"{path}.recursiveReadOnly"
    yield from choice(recursive, field, _RECURSIVE)
    if recursive in {"Enabled", "IfPossible"}:
        if not mount.get("readOnly"):
            yield forbidden(field, "may only be specified when readOnly is true")
        if propagation not in {None, "None"}:
            yield forbidden(field, "may only be specified when mountPropagation is None or not specified")


def check_local_path(text: str, field: str) -> Iterator[Cause]:
    """A path inside a volume, from which no way leads out."""
    if text.startswith("/"):
        yield invalid(field, text, "must be a relative path")
    if ".." in text.split("/"):
        yield invalid(field, text, "must not contain '..'")


def check_resources(resources: Json, path: str) -> Iterator[Cause]:
    """Requests and limits."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for kind, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            yield from _check_amount(name, amount, f"{path}.{kind}[{name}]")
    for name, amount in requests.items():
        if name in limits:
            if Quantity(amount) > Quantity(limits[name]):
                said = f"must be less than or equal to {name} limit of {limits[name]}"
                yield invalid(f"{path}.requests", amount, said)
        elif "/" in name and not name.endswith(".kubernetes.io"):
            yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")


def _check_amount(name: str, amount: str, field: str) -> Iterator[Cause]:
    yield from resource_name(name, field)
    if "/" not in name and name not in _CONTAINER_RESOURCES and not name.startswith("hugepages-"):
        yield invalid(field, name, "must be a standard resource for containers")
    quantity = Quantity(amount)
    if quantity < 0:
        yield invalid(field, amount, NOT_NEGATIVE)
    elif "/" in name and quantity.milli_value % 1000:
        yield invalid(field, amount, "must be an integer")


def _check_probes(container: Json, path: str) -> Iterator[Cause]:
    for name in _PROBES:
        if (probe := container.get(name)) is None:
            continue
        place = f"{path}.{name}"
        yield from _check_handler(probe, place)
        for number in _PROBE_NUMBERS:
            yield from at_least_zero(probe, number, place)
        if name != "readinessProbe" and probe.get("successThreshold") != 1:
            yield invalid(f"{place}.successThreshold", probe.get("successThreshold"), "must be 1")
        grace = probe.get("terminationGracePeriodSeconds")
        if grace is not None and name == "readinessProbe":
            yield invalid(f"{place}.terminationGracePeriodSeconds", grace, "must not be set for readinessProbes")
        elif grace is not None and grace <= 0:
            yield invalid(f"{place}.terminationGracePeriodSeconds", grace, "must be greater than 0")


def _check_handler(handler: Json, path: str) -> Iterator[Cause]:
    given = [name for name in _HANDLERS if name in handler]
    yield from exactly_one(given, path, "handler type")
    if not given:
        return
    name, action = given[0], handler[given[0]]
    if name == "exec" and not action.get("command"):
        yield required(f"{path}.exec.command")
    if name in {"httpGet", "tcpSocket"}:
        yield from node_port_or_name(action.get("port", 0), f"{path}.{name}.port")
    if name == "httpGet":
        yield from choice(action.get("scheme"), f"{path}.httpGet.scheme", ("HTTP", "HTTPS"))
    if name == "grpc":
        yield from port_number(action.get("port", 0), f"{path}.grpc.port")


def _check_security(context: Json, path: str) -> Iterator[Cause]:
    for name in ("runAsUser", "runAsGroup"):
        yield from check_id(context.get(name), f"{path}.{name}")
    if context.get("allowPrivilegeEscalation") is False and context.get("privileged"):
        said = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        yield invalid(path, _shown_security(context), said)


_SECURITY_FIELDS: Final = (
    "capabilities",
    "privileged",
    "seLinuxOptions",
    "windowsOptions",
    "runAsUser",
    "runAsGroup",
    "runAsNonRoot",
    "readOnlyRootFilesystem",
    "allowPrivilegeEscalation",
    "procMount",
    "seccompProfile",
    "appArmorProfile",
)


def _shown_security(context: Json) -> Json:
    """As Go's own names show it."""
    shown = {f"{name[0].upper()}{name[1:]}": context.get(name) for name in _SECURITY_FIELDS}
    return {name.replace("SeLinux", "SELinux"): value for name, value in shown.items()}


def check_id(number: int | None, field: str) -> Iterator[Cause]:
    """The number of a user or a group."""
    if number is not None and not 0 <= number <= _LARGEST_ID:
        yield invalid(field, number, f"must be between 0 and {_LARGEST_ID}, inclusive")
