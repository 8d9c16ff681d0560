"""Rules of pods and PodTemplates, and the strategies of the subresources of pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from navarch.api.quantity import Quantity
from navarch.cluster.server.kinds.builtin.generic.strategy import (
    BuiltinStatusStrategy,
    BuiltinStrategy,
    Rules,
    count_generation,
)
from navarch.cluster.server.kinds.builtin.pods.checks import (
    check_pod,
    check_pod_update,
    pod_warnings,
    removal_faults,
    resize_faults,
)
from navarch.cluster.server.kinds.builtin.pods.columns import pod_cells, pod_template_cells
from navarch.cluster.server.kinds.builtin.pods.containers import check_ephemeral_containers
from navarch.cluster.server.kinds.builtin.pods.defaults import containers_of, default_pod, default_pod_template
from navarch.cluster.server.kinds.builtin.pods.spec import check_template
from navarch.cluster.server.objects.metadata import metadata_update_faults
from navarch.cluster.server.objects.types import DeletionRules, WriteContext
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_causes import forbidden, invalid
from navarch.errors import Cause

_QOS_RESOURCES: Final = ("cpu", "memory")


def create_pod(value: Json, _: WriteContext) -> None:
    """A pod begins as pending, with the class that its resources give it."""
    value["status"] = {"phase": "Pending", "qosClass": qos_class(value["spec"])}
    value["spec"]["terminationGracePeriodSeconds"] = _grace(value["spec"])


def _grace(spec: Json) -> int:
    """Less than no time is a second."""
    grace: int = spec["terminationGracePeriodSeconds"]
    return 1 if grace < 0 else grace


def qos_class(spec: Json) -> str:
    """Returns the QoS class: Guaranteed, Burstable or BestEffort."""
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


_POD_SPEC: Final = ("nodeName", "restartPolicy", "schedulerName", "serviceAccountName")
_ENDED: Final = frozenset({"Succeeded", "Failed"})
_GRACE_SECONDS: Final = 30


def pod_fields(value: Json) -> Mapping[str, str]:
    """Returns the selectable fields of a pod."""
    spec, status = value.get("spec") or {}, value.get("status") or {}
    addresses = [each.get("ip", "") for each in status.get("podIPs") or ()]
    return {
        **{f"spec.{name}": spec.get(name) or "" for name in _POD_SPEC},
        "spec.hostNetwork": "true" if spec.get("hostNetwork") else "false",
        "status.phase": status.get("phase") or "",
        "status.podIP": addresses[0] if addresses else "",
        "status.podIPs": ",".join(addresses),
        "status.nominatedNodeName": status.get("nominatedNodeName") or "",
    }


def pod_grace_seconds(value: Json, asked: int | None) -> int:
    """Returns the requested grace period or the pod's own; 0 if no node runs the pod."""
    spec = value.get("spec") or {}
    if not spec.get("nodeName") or (value.get("status") or {}).get("phase") in _ENDED:
        return 0
    own = spec.get("terminationGracePeriodSeconds")
    seconds: int = asked if asked is not None else _GRACE_SECONDS if own is None else own
    return seconds if seconds >= 0 else 1


class PodStatusStrategy(BuiltinStatusStrategy):
    """`pods/status`: how a pod fares."""

    def default(self, value: Json) -> None:
        """Its address is the first of its addresses."""
        super().default(value)
        status = value.get("status") or {}
        if status.get("podIP") and not status.get("podIPs"):
            status["podIPs"] = [{"ip": status["podIP"]}]

    def prepare_update(self, value: Json, old: Json, operation: WriteContext) -> None:
        """A pod stays in its class."""
        super().prepare_update(value, old, operation)
        status = value["status"] = {**(value.get("status") or {})}
        if "qosClass" in old.get("status", {}):
            status["qosClass"] = old["status"]["qosClass"]


class EphemeralContainersStrategy(BuiltinStrategy):
    """`pods/ephemeralcontainers`: containers for debugging, which are added and never removed."""

    def prepare_update(self, value: Json, old: Json, operation: WriteContext) -> None:  # noqa: ARG002 - the contract's
        """Takes the ephemeral containers."""
        self._written.reset(value, old)
        count_generation(value, old)

    def validate_update(self, value: Json, old: Json) -> list[Cause]:
        """New ones are containers with names of their own, old ones stay as they are."""
        field, spec = "spec.ephemeralContainers", value["spec"]
        now = {each["name"]: each for each in spec.get("ephemeralContainers") or ()}
        faults = [*metadata_update_faults(value, old), *check_pod(value), *check_ephemeral_containers(spec, field)]
        for each in old["spec"].get("ephemeralContainers") or ():
            if each["name"] not in now:
                faults.append(forbidden(field, f'existing ephemeral containers "{each["name"]}" may not be removed'))
            elif now[each["name"]] != each:
                faults.append(forbidden(field, f'existing ephemeral containers "{each["name"]}" may not be changed'))
        return faults


class ResizeStrategy(BuiltinStrategy):
    """`pods/resize`: the resources of containers that run."""

    def prepare_update(self, value: Json, old: Json, operation: WriteContext) -> None:  # noqa: ARG002 - the contract's
        """Takes the resources of each container, and nothing else; other containers are left to be refused."""
        self._written.reset(value, old)
        if not [*resize_faults(value["spec"], old["spec"], "spec")]:
            for name in ("containers", "initContainers"):
                _take_resources(value["spec"], old["spec"], name)
        count_generation(value, old)

    def validate_update(self, value: Json, old: Json) -> list[Cause]:
        """A pod stays in its class, and loses no resources."""
        faults = [*metadata_update_faults(value, old), *check_pod(value)]
        before = qos_class(old["spec"])
        if qos_class(value["spec"]) != before:
            faults.append(invalid("spec", before, "Pod QOS Class may not change as a result of resizing"))
        order = [*resize_faults(value["spec"], old["spec"], "spec")]
        return [*faults, *(order or removal_faults(value["spec"], old["spec"], "spec"))]


def _take_resources(spec: Json, old: Json, name: str) -> None:
    """Leaves of the containers that were sent only what they ask for, and in which way they are resized."""
    sent = {each["name"]: each for each in spec.get(name) or ()}
    kept = [{**each, **_resources(sent.get(each["name"], each))} for each in old.get(name) or ()]
    spec.pop(name, None)
    if kept:
        spec[name] = kept


def _resources(container: Json) -> Json:
    return {name: container[name] for name in ("resources", "resizePolicy") if name in container}


def check_pod_template(value: Json) -> Iterator[Cause]:
    """A PodTemplate."""
    yield from check_template(value.get("template"), "template")


RULES: Final[dict[tuple[str, str], Rules]] = {
    ("v1", "pods"): Rules(
        deletion=DeletionRules(marks_first=True),
        default=default_pod,
        create=create_pod,
        check=check_pod,
        check_update=check_pod_update,
        warnings=pod_warnings,
        counts_generation=True,
        grace_seconds=pod_grace_seconds,
        fields=pod_fields,
        cells=pod_cells,
        returns_deleted=True,
        subresources={
            "status": PodStatusStrategy,
            "ephemeralcontainers": EphemeralContainersStrategy,
            "resize": ResizeStrategy,
        },
    ),
    ("v1", "podtemplates"): Rules(
        default=default_pod_template,
        check=check_pod_template,
        counts_generation=True,
        cells=pod_template_cells,
        returns_deleted=True,
    ),
}
