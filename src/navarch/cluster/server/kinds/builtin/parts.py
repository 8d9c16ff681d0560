"""Strategies of subresources that are a part of their object: what each takes from the client."""

from __future__ import annotations

from typing import Final

from navarch.cluster.server.kinds.builtin.checks.containers import check_ephemeral_containers
from navarch.cluster.server.kinds.builtin.checks.pods import check_pod, removal_faults, resize_faults
from navarch.cluster.server.kinds.builtin.creating import qos_class
from navarch.cluster.server.kinds.builtin.signing_requests import ApprovalStrategy, SigningStrategy
from navarch.cluster.server.kinds.builtin.strategy import BuiltinStrategy, StatusStrategy, count_generation
from navarch.cluster.server.objects.metadata import metadata_update_faults
from navarch.cluster.server.objects.types import Operation
from navarch.cluster.server.wire.causes import forbidden, invalid
from navarch.cluster.server.wire.request import Json
from navarch.errors import Cause

__all__ = ["PARTS"]


class PodStatusStrategy(StatusStrategy):
    """`pods/status`: how a pod fares."""

    def default(self, value: Json) -> None:
        """Its address is the first of its addresses."""
        super().default(value)
        status = value.get("status") or {}
        if status.get("podIP") and not status.get("podIPs"):
            status["podIPs"] = [{"ip": status["podIP"]}]

    def prepare_update(self, value: Json, old: Json, operation: Operation) -> None:
        """A pod stays in its class."""
        super().prepare_update(value, old, operation)
        status = value["status"] = {**(value.get("status") or {})}
        if "qosClass" in old.get("status", {}):
            status["qosClass"] = old["status"]["qosClass"]


class JobStatusStrategy(StatusStrategy):
    """`jobs/status`: how a Job fares."""

    def prepare_update(self, value: Json, old: Json, operation: Operation) -> None:
        """A Job without labels has those of its template when it is read again, which one that goes is not."""
        super().prepare_update(value, old, operation)
        labels = (value["spec"]["template"].get("metadata") or {}).get("labels")
        if labels and "deletionTimestamp" not in old["metadata"]:
            value["metadata"].setdefault("labels", {**labels})


class EphemeralContainersStrategy(BuiltinStrategy):
    """`pods/ephemeralcontainers`: containers for debugging, which are added and never removed."""

    def prepare_update(self, value: Json, old: Json, operation: Operation) -> None:  # noqa: ARG002 - the contract's
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

    def prepare_update(self, value: Json, old: Json, operation: Operation) -> None:  # noqa: ARG002 - the contract's
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


PARTS: Final[dict[tuple[str, str], type[BuiltinStrategy]]] = {
    ("namespaces", "finalize"): BuiltinStrategy,
    ("jobs", "status"): JobStatusStrategy,
    ("pods", "status"): PodStatusStrategy,
    ("pods", "ephemeralcontainers"): EphemeralContainersStrategy,
    ("pods", "resize"): ResizeStrategy,
    ("certificatesigningrequests", "status"): SigningStrategy,
    ("certificatesigningrequests", "approval"): ApprovalStrategy,
}
"""By resource and subresource; every other `status` is a `StatusStrategy`, and other parts are as the object."""
