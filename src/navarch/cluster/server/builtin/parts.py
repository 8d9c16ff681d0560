"""Strategies of subresources that are a part of their object: what each takes from the client."""

from __future__ import annotations

from typing import Final

from navarch.cluster.server.builtin.checks.containers import check_ephemeral_containers
from navarch.cluster.server.builtin.checks.pods import check_pod, removal_faults, resize_faults
from navarch.cluster.server.builtin.creating import qos_class
from navarch.cluster.server.builtin.strategy import BuiltinStrategy, StatusStrategy, count_generation
from navarch.cluster.server.causes import forbidden, invalid
from navarch.cluster.server.metadata import metadata_update_faults
from navarch.cluster.server.request import Json
from navarch.cluster.server.types import Operation
from navarch.errors import Cause

__all__ = ["PARTS"]


class FinalizeStrategy(BuiltinStrategy):
    """`namespaces/finalize`: what a namespace waits for before it goes."""

    def prepare_update(self, value: Json, old: Json, operation: Operation) -> None:  # noqa: ARG002 - the contract's
        """Everything is the client's but the status."""
        value["status"] = old.get("status", {})


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


class LabelledStatusStrategy(StatusStrategy):
    """The status of what is known by its labels: a write of it leaves them alone."""

    def prepare_update(self, value: Json, old: Json, operation: Operation) -> None:
        """Takes the status, and of the metadata everything but the labels."""
        super().prepare_update(value, old, operation)
        value["metadata"].pop("labels", None)
        if "labels" in old["metadata"]:
            value["metadata"]["labels"] = old["metadata"]["labels"]


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
        containers = value["spec"].get("ephemeralContainers") or []
        _take(value, old, {**old["spec"], **({"ephemeralContainers": containers} if containers else {})})

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
        given = value["spec"].get("containers") or []
        if [*resize_faults(value["spec"], old["spec"], "spec")]:
            _take(value, old, {**old["spec"], "containers": given})
            return
        asked = {each["name"]: each.get("resources", {}) for each in given}
        containers = [{**each, "resources": asked[each["name"]]} for each in old["spec"].get("containers") or ()]
        _take(value, old, {**old["spec"], "containers": containers})

    def validate_update(self, value: Json, old: Json) -> list[Cause]:
        """A pod stays in its class, and loses no resources."""
        faults = [*metadata_update_faults(value, old), *check_pod(value)]
        before = qos_class(old["spec"])
        if qos_class(value["spec"]) != before:
            faults.append(invalid("spec", before, "Pod QOS Class may not change as a result of resizing"))
        order = [*resize_faults(value["spec"], old["spec"], "spec")]
        return [*faults, *(order or removal_faults(value["spec"], old["spec"], "spec"))]


class ApprovalStrategy(StatusStrategy):
    """`certificatesigningrequests/approval`: whether a certificate is issued."""

    def prepare_update(self, value: Json, old: Json, operation: Operation) -> None:
        """Takes the conditions of the status."""
        conditions = (value.get("status") or {}).get("conditions")
        value["status"] = {**(old.get("status") or {})}
        if conditions:
            value["status"]["conditions"] = conditions
        super().prepare_update(value, old, operation)


def _take(value: Json, old: Json, spec: Json) -> None:
    """The old object with another spec; of the metadata only what says who writes is the client's."""
    managed = value["metadata"].get("managedFields")
    version = value["metadata"].get("resourceVersion")
    value.clear()
    value.update(old)
    value["spec"], value["metadata"] = spec, {**old["metadata"]}
    if managed is not None:
        value["metadata"]["managedFields"] = managed
    if version:
        value["metadata"]["resourceVersion"] = version
    count_generation(value, old)


PARTS: Final[dict[tuple[str, str], type[BuiltinStrategy]]] = {
    ("namespaces", "finalize"): FinalizeStrategy,
    ("deployments", "status"): LabelledStatusStrategy,
    ("jobs", "status"): JobStatusStrategy,
    ("pods", "status"): PodStatusStrategy,
    ("pods", "ephemeralcontainers"): EphemeralContainersStrategy,
    ("pods", "resize"): ResizeStrategy,
    ("certificatesigningrequests", "approval"): ApprovalStrategy,
}
"""By resource and subresource; every other `status` is a `StatusStrategy`."""
