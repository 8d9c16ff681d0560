"""What the server sets itself when an object is created or updated."""

from __future__ import annotations

from typing import Final

from navarch.api.quantity import Quantity
from navarch.cluster.server.kinds.builtin.defaults.core import default_families, needs_health_port
from navarch.cluster.server.kinds.builtin.defaults.pods import containers_of
from navarch.cluster.server.objects.types import Operation
from navarch.cluster.server.wire.request import Json

__all__ = [
    "begin_generation",
    "create_attributes_class",
    "create_job",
    "create_lease",
    "create_namespace",
    "create_persistent_volume",
    "create_pod",
    "create_service",
    "create_service_account",
    "create_signing_request",
    "mark_namespace_deleted",
    "qos_class",
    "update_lease",
    "update_persistent_volume_status",
    "update_service",
    "update_service_account",
]

_QOS_RESOURCES: Final = ("cpu", "memory")
_JOB_LABELS: Final = ("batch.kubernetes.io/job-name", "job-name")
_WITH_PORTS: Final = frozenset({"NodePort", "LoadBalancer"})
_CLASS_PROTECTION: Final = "kubernetes.io/vac-protection"
_COORDINATED: Final = ("strategy", "preferredHolder")
_UID_LABELS: Final = ("batch.kubernetes.io/controller-uid", "controller-uid")


def create_pod(value: Json, _: Operation) -> None:
    """A pod begins as pending, with the class that its resources give it."""
    value["status"] = {"phase": "Pending", "qosClass": qos_class(value["spec"])}
    value["spec"]["terminationGracePeriodSeconds"] = _grace(value["spec"])


def _grace(spec: Json) -> int:
    """Less than no time is a second."""
    grace: int = spec["terminationGracePeriodSeconds"]
    return 1 if grace < 0 else grace


def qos_class(spec: Json) -> str:
    """How well a pod is treated when a node runs out of something."""
    if (spec.get("resources") or {}).get("limits") or (spec.get("resources") or {}).get("requests"):
        return _qos_of([spec["resources"]])
    return _qos_of([container.get("resources") or {} for container in containers_of(spec)])


def _qos_of(resources: list[Json]) -> str:
    asked = [
        (each.get(kind) or {}).get(name)
        for each in resources
        for kind in ("requests", "limits")
        for name in _QOS_RESOURCES
    ]
    if not any(amount is not None and Quantity(amount) != 0 for amount in asked):
        return "BestEffort"
    guaranteed = all(
        (limit := (each.get("limits") or {}).get(name)) is not None
        and Quantity((each.get("requests") or {}).get(name, limit)) == Quantity(limit)
        for each in resources
        for name in _QOS_RESOURCES
    )
    return "Guaranteed" if guaranteed else "Burstable"


def begin_generation(value: Json, _: Operation) -> None:
    """The first generation, which is the last one of kinds that do not count."""
    value["metadata"]["generation"] = 1


def create_namespace(value: Json, _: Operation) -> None:
    """A namespace is active, and stays until the server has emptied it."""
    value["status"] = {"phase": "Active"}
    finalizers = value["spec"].get("finalizers") or []
    if "kubernetes" not in finalizers:
        value["spec"]["finalizers"] = [*finalizers, "kubernetes"]


def create_service(value: Json, _: Operation) -> None:
    """A new Service gets its families of addresses."""
    default_families(value["spec"])
    _drop_policy_of_names(value["spec"])


def update_service(value: Json, old: Json, _: Operation) -> None:
    """An update that says nothing about addresses and node ports keeps them; what its type has no use for goes."""
    _keep_what_is_given_out(value["spec"], old["spec"])
    default_families(value["spec"], old["spec"].get("ipFamilyPolicy"))
    _drop_policy_of_names(value["spec"])


def _drop_policy_of_names(spec: Json) -> None:
    """Kubernetes does not show where traffic to a mere name may go; what is no such place is refused before."""
    if spec.get("type") == "ExternalName" and spec.get("internalTrafficPolicy") in {"Cluster", "Local"}:
        del spec["internalTrafficPolicy"]


def _keep_what_is_given_out(spec: Json, before: Json) -> None:
    if spec.get("type") == "ExternalName":
        if before.get("type") != "ExternalName":
            _drop_unchanged(spec, before, ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"))
            _drop_unchanged(spec, before, ("internalTrafficPolicy", "externalTrafficPolicy"))
            _drop_node_ports(spec, before)
            _keep_health_port(spec, before)
        return
    if before.get("type") != "ExternalName":
        _keep_address(spec, before)
    if spec.get("type") not in _WITH_PORTS and before.get("type") in _WITH_PORTS:
        _drop_unchanged(spec, before, ("externalTrafficPolicy", "allocateLoadBalancerNodePorts"))
        _drop_node_ports(spec, before)
    _keep_node_ports(spec, before)
    _keep_health_port(spec, before)


def _keep_health_port(spec: Json, before: Json) -> None:
    had, port = needs_health_port(before), before.get("healthCheckNodePort")
    if had and needs_health_port(spec):
        if port and not spec.get("healthCheckNodePort"):
            spec["healthCheckNodePort"] = port
    elif had and spec.get("healthCheckNodePort") == port:
        spec.pop("healthCheckNodePort", None)


def _drop_unchanged(spec: Json, before: Json, names: tuple[str, ...]) -> None:
    for name in names:
        if name in spec and spec[name] == before.get(name):
            del spec[name]


def _drop_node_ports(spec: Json, before: Json) -> None:
    taken = {port.get("nodePort") for port in before.get("ports") or ()}
    for port in spec.get("ports") or ():
        if port.get("nodePort") in taken:
            port.pop("nodePort", None)


def _keep_address(spec: Json, before: Json) -> None:
    if spec.get("clusterIP") != before.get("clusterIP") and spec.get("clusterIPs") == before.get("clusterIPs"):
        spec.pop("clusterIPs", None)
    if not spec.get("clusterIP"):
        spec.pop("clusterIP", None)
    if not (spec.get("clusterIP") or spec.get("clusterIPs")):
        spec |= {name: before[name] for name in ("clusterIP", "clusterIPs") if name in before}
    elif spec.get("clusterIP"):
        spec["clusterIPs"] = spec.get("clusterIPs") or [spec["clusterIP"]]


def _keep_node_ports(spec: Json, before: Json) -> None:
    if spec.get("type") not in _WITH_PORTS:
        return
    taken = {(port.get("protocol"), port["port"]): port.get("nodePort") for port in before.get("ports") or ()}
    for port in spec.get("ports") or ():
        if not port.get("nodePort") and (kept := taken.get((port.get("protocol"), port["port"]))):
            port["nodePort"] = kept


def mark_namespace_deleted(value: Json) -> None:
    """A namespace that is to go takes nothing new."""
    value["status"] = {**value.get("status", {}), "phase": "Terminating"}


def create_service_account(value: Json, _: Operation) -> None:
    """Of its secrets, only the names are kept."""
    _keep_names_of_secrets(value)


def update_service_account(value: Json, _old: Json, _: Operation) -> None:
    """Of its secrets, only the names are kept."""
    _keep_names_of_secrets(value)


def _keep_names_of_secrets(value: Json) -> None:
    for secret in value.get("secrets") or ():
        for name in secret.keys() - {"name"}:
            del secret[name]


def create_lease(value: Json, _: Operation) -> None:
    """Nobody else decides who holds a lease: that is switched off."""
    for name in _COORDINATED:
        value["spec"].pop(name, None)


def update_lease(value: Json, _old: Json, operation: Operation) -> None:
    """Nobody else decides who holds a lease: that is switched off."""
    create_lease(value, operation)


def create_persistent_volume(value: Json, _: Operation) -> None:
    """A volume is pending since now."""
    value["status"] = {
        "phase": "Pending",
        "lastPhaseTransitionTime": value["metadata"].get("creationTimestamp"),
    }


def update_persistent_volume_status(value: Json, old: Json, operation: Operation) -> None:
    """When the phase changed is noted, unless whoever changes it says it."""
    status, before = value.get("status") or {}, old.get("status") or {}
    since, given = before.get("lastPhaseTransitionTime"), status.get("lastPhaseTransitionTime")
    if status.get("phase") == before.get("phase"):
        noted = given or since
    else:
        noted = operation.now if given in {None, since} else given
    if noted:
        value["status"] = {**status, "lastPhaseTransitionTime": noted}


def create_job(value: Json, _: Operation) -> None:
    """A job selects its pods by its own uid, unless it says how."""
    if value["spec"].get("manualSelector"):
        return
    uid, name = value["metadata"].get("uid", ""), value["metadata"].get("name", "")
    labels = {**dict.fromkeys(_UID_LABELS, uid), **dict.fromkeys(_JOB_LABELS, name)}
    template = value["spec"]["template"].setdefault("metadata", {})
    template["labels"] = {**(template.get("labels") or {}), **labels}
    selector = value["spec"].setdefault("selector", {})
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), _UID_LABELS[0]: uid}
    value["metadata"].setdefault("labels", {**template["labels"]})


def create_attributes_class(value: Json, _: Operation) -> None:
    """A class of volume attributes stays while volumes use it."""
    finalizers = value["metadata"].get("finalizers") or []
    if _CLASS_PROTECTION not in finalizers:
        value["metadata"]["finalizers"] = [*finalizers, _CLASS_PROTECTION]


def create_signing_request(value: Json, operation: Operation) -> None:
    """A signing request says who asks; nobody can ask for somebody else."""
    user, spec = operation.user, value["spec"]
    spec["username"] = user.name
    for name, told in (("uid", user.uid), ("groups", list(user.groups))):
        spec.pop(name, None)
        if told:
            spec[name] = told
    spec.pop("extra", None)
    if user.extra:
        spec["extra"] = {key: list(values) for key, values in user.extra.items()}
    value["status"] = {}
