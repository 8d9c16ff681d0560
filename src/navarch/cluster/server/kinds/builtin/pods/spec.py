"""Checks of a PodSpec and of pod templates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from navarch.api.names import DNS_LABEL
from navarch.cluster.server.kinds.builtin.generic.checks import address, choice, label_name, named
from navarch.cluster.server.kinds.builtin.pods.containers import check_containers, check_id, check_resources
from navarch.cluster.server.kinds.builtin.pods.volumes import check_volumes
from navarch.cluster.server.objects.metadata import annotation_faults, label_faults, selector_faults
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_causes import duplicate, forbidden, invalid, required, unsupported
from navarch.errors import Cause


def check_host_ports(containers: Iterable[Json], path: str) -> Iterator[Cause]:
    """All containers of a pod together."""
    seen: set[str] = set()
    for outer, container in enumerate(containers):
        for inner, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            taken = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if taken in seen:
                yield duplicate(f"{path}[{outer}].ports[{inner}].hostPort", taken)
            seen.add(taken)


_NAMES: Final = (
    "ABRT ALRM BUS CHLD CLD CONT FPE HUP ILL INT IO IOT KILL PIPE POLL PROF PWR QUIT SEGV STKFLT STOP SYS TERM TRAP TSTP "
    "TTIN TTOU URG USR1 USR2 VTALRM WINCH XCPU XFSZ RTMIN RTMAX"
)
_SIGNALS: Final[dict[str, list[str]]] = {
    "linux": sorted(
        [f"SIG{name}" for name in _NAMES.split()]
        + [f"SIGRTMIN+{number}" for number in range(1, 16)]
        + [f"SIGRTMAX-{number}" for number in range(1, 15)]
    ),
    "windows": ["SIGKILL", "SIGTERM"],
}
"""The stop signals of each operating system."""


def check_os(system: Json | None, path: str) -> Iterator[Cause]:
    """The system that a pod is for."""
    if system is None:
        return
    if not system.get("name"):
        yield required(f"{path}.name", "cannot be empty")
    elif system["name"] not in _SIGNALS:
        yield unsupported(path, system["name"], sorted(_SIGNALS))


def check_stop_signals(spec: Json, path: str) -> Iterator[Cause]:
    """Those of all containers: each is one of the pod's system, which the pod has to name."""
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            signal = (container.get("lifecycle") or {}).get("stopSignal")
            if signal is not None:
                yield from _check(signal, spec.get("os"), f"{path}.{kind}[{index}].lifecycle.stopSignal")


def _check(signal: Any, system: Json | None, field: str) -> Iterator[Cause]:
    if system is None:
        yield forbidden(field, "may not be set for containers with empty `spec.os.name`")
    elif (known := _SIGNALS.get(system.get("name", ""))) is not None:
        yield from choice(signal, field, known)


EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_RESTARTS: Final = ("Always", "OnFailure", "Never")
_DNS: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_LARGEST: Final = 2**31 - 1
_NODE_OPERATORS: Final = frozenset({"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"})
_HIGHEST_WEIGHT: Final = 100
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def check_template(template: Json | None, path: str) -> Iterator[Cause]:
    """A pod template."""
    if template is None:
        yield required(path)
        return
    metadata = template.get("metadata") or {}
    yield from label_faults(metadata.get("labels"), f"{path}.labels")
    yield from annotation_faults(metadata.get("annotations"), f"{path}.annotations")
    yield from check_pod_spec(template["spec"], f"{path}.spec")
    if template["spec"].get("ephemeralContainers"):
        yield forbidden(f"{path}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template")


def check_pod_spec(spec: Json, path: str) -> Iterator[Cause]:
    """The spec of a pod."""
    yield from check_volumes(spec.get("volumes") or (), f"{path}.volumes")
    yield from check_containers(spec, path)
    yield from check_stop_signals(spec, path)
    yield from check_host_ports(spec.get("containers") or (), f"{path}.containers")
    if spec.get("resources"):
        yield from check_resources(spec["resources"], f"{path}.resources")
    yield from check_os(spec.get("os"), f"{path}.os")
    yield from choice(spec.get("restartPolicy"), f"{path}.restartPolicy", _RESTARTS)
    yield from _check_dns(spec, path)
    yield from label_faults(spec.get("nodeSelector"), f"{path}.nodeSelector")
    yield from _check_security(spec.get("securityContext") or {}, f"{path}.securityContext")
    yield from _check_affinity(spec.get("affinity") or {}, f"{path}.affinity")
    yield from _check_names(spec, path)
    yield from check_tolerations(spec.get("tolerations") or (), f"{path}.tolerations")
    yield from _check_aliases(spec.get("hostAliases") or (), f"{path}.hostAliases")
    yield from _check_spreading(spec.get("topologySpreadConstraints") or (), f"{path}.topologySpreadConstraints")
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _LARGEST:
        yield invalid(f"{path}.activeDeadlineSeconds", deadline, f"must be between 1 and {_LARGEST}, inclusive")


def _check_dns(spec: Json, path: str) -> Iterator[Cause]:
    yield from choice(spec.get("dnsPolicy"), f"{path}.dnsPolicy", _DNS)
    config = spec.get("dnsConfig")
    if spec.get("dnsPolicy") == "None" and config is None:
        yield required(f"{path}.dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None")
    elif spec.get("dnsPolicy") == "None" and config is not None and not config.get("nameservers"):
        yield required(
            f"{path}.dnsConfig.nameservers", "must provide at least one DNS nameserver when `dnsPolicy` is None"
        )


def _check_names(spec: Json, path: str) -> Iterator[Cause]:
    for name in ("serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName"):
        if spec.get(name):
            yield from named(spec[name], f"{path}.{name}")
    for name in ("hostname", "subdomain"):
        if spec.get(name):
            yield from named(spec[name], f"{path}.{name}", DNS_LABEL.faults)


def _check_security(context: Json, path: str) -> Iterator[Cause]:
    for name in ("fsGroup", "runAsUser", "runAsGroup"):
        yield from check_id(context.get(name), f"{path}.{name}")
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        yield from check_id(group, f"{path}.supplementalGroups[{index}]")


def check_tolerations(tolerations: Any, path: str) -> Iterator[Cause]:
    """Checks tolerations."""
    for index, each in enumerate(tolerations):
        place = f"{path}[{index}]"
        operator, effect = each.get("operator"), each.get("effect")
        if each.get("key"):
            yield from label_name(each["key"], f"{place}.key")
        elif operator != "Exists":
            said = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            yield invalid(f"{place}.operator", operator or "", said)
        if each.get("tolerationSeconds") is not None and effect != "NoExecute":
            said = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield invalid(f"{place}.effect", effect or "", said)
        if operator == "Exists" and each.get("value"):
            yield invalid(f"{place}.operator", each["value"], "value must be empty when `operator` is 'Exists'")
        if operator and operator not in {"Equal", "Exists"}:
            yield unsupported(f"{place}.operator", operator, ("Equal", "Exists"))
        if effect and effect not in EFFECTS:
            yield unsupported(f"{place}.effect", effect, EFFECTS)


def _check_aliases(aliases: Any, path: str) -> Iterator[Cause]:
    for index, each in enumerate(aliases):
        yield from address(each.get("ip", ""), f"{path}[{index}].ip")
        for number, host in enumerate(each.get("hostnames") or ()):
            yield from named(host, f"{path}[{index}].hostnames[{number}]")


def _check_spreading(constraints: Any, path: str) -> Iterator[Cause]:
    for index, each in enumerate(constraints):
        place = f"{path}[{index}]"
        if each.get("maxSkew", 0) <= 0:
            yield invalid(f"{place}.maxSkew", each.get("maxSkew", 0), "must be greater than zero")
        if not each.get("topologyKey"):
            yield required(f"{place}.topologyKey", "can not be empty")
        else:
            yield from label_name(each["topologyKey"], f"{place}.topologyKey")
        word = each.get("whenUnsatisfiable", "")
        yield from choice(word, f"{place}.whenUnsatisfiable", ("DoNotSchedule", "ScheduleAnyway"))
        yield from selector_faults(each.get("labelSelector"), f"{place}.labelSelector")


def _check_affinity(affinity: Json, path: str) -> Iterator[Cause]:
    if node := affinity.get("nodeAffinity"):
        yield from _check_node_affinity(node, f"{path}.nodeAffinity")
    for name in ("podAffinity", "podAntiAffinity"):
        rules, place = affinity.get(name) or {}, f"{path}.{name}"
        for index, term in enumerate(rules.get(_REQUIRED) or ()):
            yield from _check_pod_term(term, f"{place}.{_REQUIRED}[{index}]")
        for index, each in enumerate(rules.get(_PREFERRED) or ()):
            yield from _check_weight(each, f"{place}.{_PREFERRED}[{index}]")
            yield from _check_pod_term(each["podAffinityTerm"], f"{place}.{_PREFERRED}[{index}].podAffinityTerm")


def _check_node_affinity(node: Json, path: str) -> Iterator[Cause]:
    if (wanted := node.get(_REQUIRED)) is not None:
        terms, place = wanted.get("nodeSelectorTerms") or (), f"{path}.{_REQUIRED}.nodeSelectorTerms"
        if not terms:
            yield required(place, "must have at least one node selector term")
        for index, term in enumerate(terms):
            yield from _check_node_term(term, f"{place}[{index}]")
    for index, each in enumerate(node.get(_PREFERRED) or ()):
        yield from _check_weight(each, f"{path}.{_PREFERRED}[{index}]")
        yield from _check_node_term(each["preference"], f"{path}.{_PREFERRED}[{index}].preference")


def _check_weight(each: Json, path: str) -> Iterator[Cause]:
    if not 1 <= each.get("weight", 0) <= _HIGHEST_WEIGHT:
        yield invalid(f"{path}.weight", each.get("weight", 0), "must be in the range 1-100")


def _check_node_term(term: Json, path: str) -> Iterator[Cause]:
    for index, each in enumerate(term.get("matchExpressions") or ()):
        place, operator = f"{path}.matchExpressions[{index}]", each.get("operator", "")
        if operator not in _NODE_OPERATORS:
            yield invalid(f"{place}.operator", operator, "not a valid selector operator")
        elif operator in {"In", "NotIn"} and not each.get("values"):
            yield required(f"{place}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in {"Exists", "DoesNotExist"} and each.get("values"):
            said = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield forbidden(f"{place}.values", said)
        yield from label_name(each.get("key", ""), f"{place}.key")


def _check_pod_term(term: Json, path: str) -> Iterator[Cause]:
    yield from selector_faults(term.get("labelSelector"), f"{path}.labelSelector")
    if not term.get("topologyKey"):
        yield required(f"{path}.topologyKey", "can not be empty")
    yield from label_name(term.get("topologyKey", ""), f"{path}.topologyKey")
