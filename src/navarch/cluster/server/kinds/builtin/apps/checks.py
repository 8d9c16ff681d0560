"""Checks of workloads and of their status."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from navarch.cluster.server.kinds.builtin.generic.checks import (
    at_least_zero,
    choice,
    in_order,
    int_or_percent,
    not_negative,
    selects,
)
from navarch.cluster.server.kinds.builtin.pods.spec import check_template
from navarch.cluster.server.objects.metadata import immutable_faults, selector_faults
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_causes import forbidden, invalid, required, unsupported
from navarch.errors import Cause

_NO_MATCH: Final = "`selector` does not match template `labels`"
_STATEFUL_UPDATES: Final = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)
_STATEFUL_MUTABLE: Final = frozenset(
    {
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    }
)
_RETENTION: Final = ("Retain", "Delete")


def check_selector(
    selector: Json | None, path: str, empty: str, senseless: str = "invalid label selector"
) -> Iterator[Cause]:
    """A selector that has to select something, and to make sense; in Kubernetes' words for what does not."""
    if selector is None:
        yield required(path)
        return
    faults = selector_faults(selector, path)
    yield from faults
    if not selector:
        yield invalid(path, selector, empty)
    elif faults:
        yield invalid(path, selector, senseless)


def _check_pods(spec: Json, *, sets: str) -> Iterator[Cause]:
    """The template: its labels match, and its pods are restarted for ever."""
    template, selector = spec.get("template"), spec.get("selector")
    understood = not selector_faults(selector, "")
    if sets != "DaemonSet" and not understood:
        return
    labels = ((template or {}).get("metadata") or {}).get("labels")
    if template is not None and understood and (selector is None or not selects(selector, labels or {})):
        yield invalid("spec.template.metadata.labels", in_order(labels), _NO_MATCH)
    yield from check_template(template, "spec.template")
    pod = (template or {}).get("spec") or {}
    if pod.get("restartPolicy", "Always") != "Always":
        yield unsupported("spec.template.spec.restartPolicy", pod["restartPolicy"], ("Always",))
    if pod.get("activeDeadlineSeconds") is not None:
        yield forbidden("spec.template.spec.activeDeadlineSeconds", f"activeDeadlineSeconds in {sets} is not Supported")


def check_deployment(value: Json) -> Iterator[Cause]:
    """A Deployment."""
    spec = value["spec"]
    yield from at_least_zero(spec, "replicas", "spec")
    yield from check_selector(spec.get("selector"), "spec.selector", "empty selector is invalid for deployment")
    yield from _check_pods(spec, sets="ReplicaSet")
    yield from _check_strategy(spec["strategy"], "spec.strategy")
    for name in ("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"):
        yield from at_least_zero(spec, name, "spec")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
        yield invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def _check_strategy(strategy: Json, path: str) -> Iterator[Cause]:
    kind = strategy.get("type")
    if kind == "Recreate" and "rollingUpdate" in strategy:
        yield forbidden(f"{path}.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'")
    elif kind == "RollingUpdate":
        rolling, place = strategy["rollingUpdate"], f"{path}.rollingUpdate"
        yield from int_or_percent(rolling["maxUnavailable"], f"{place}.maxUnavailable", at_most_all=True)
        yield from int_or_percent(rolling["maxSurge"], f"{place}.maxSurge")
        if _is_zero(rolling["maxUnavailable"]) and _is_zero(rolling["maxSurge"]):
            said = "may not be 0 when `maxSurge` is 0"
            yield invalid(f"{place}.maxUnavailable", rolling["maxUnavailable"], said)
    elif kind != "Recreate":
        yield unsupported(path, _go_strategy(strategy), ("Recreate", "RollingUpdate"))


def _go_strategy(strategy: Json) -> Any:
    """As Go's own names show it."""
    rolling = strategy.get("rollingUpdate")
    shown = None if rolling is None else {f"{name[0].upper()}{name[1:]}": part for name, part in rolling.items()}
    return {"Type": strategy.get("type", ""), "RollingUpdate": shown}


def _go_partition(rolling: Json) -> Any:
    return {"Partition": rolling.get("partition", 0), "MaxUnavailable": rolling.get("maxUnavailable")}


def _is_zero(value: Any) -> bool:
    return value in {0, "0%", "0"}


def check_replica_set(value: Json) -> Iterator[Cause]:
    """A ReplicaSet."""
    spec = value["spec"]
    yield from at_least_zero(spec, "replicas", "spec")
    yield from at_least_zero(spec, "minReadySeconds", "spec")
    yield from check_selector(spec.get("selector"), "spec.selector", "empty selector is invalid for deployment")
    yield from _check_pods(spec, sets="ReplicaSet")


def check_replication_controller(value: Json) -> Iterator[Cause]:
    """A ReplicationController."""
    spec = value["spec"]
    yield from at_least_zero(spec, "minReadySeconds", "spec")
    if not spec.get("selector"):
        yield required("spec.selector")
    yield from at_least_zero(spec, "replicas", "spec")
    yield from _check_pods({**spec, "selector": {"matchLabels": spec.get("selector") or {}}}, sets="ReplicaSet")


def check_selector_update(value: Json, old: Json) -> list[Cause]:
    """Refuses a changed selector."""
    return immutable_faults(value["spec"].get("selector"), old["spec"].get("selector"), "spec.selector")


def check_stateful_set(value: Json) -> Iterator[Cause]:
    """A StatefulSet."""
    spec = value["spec"]
    if spec.get("podManagementPolicy") not in {"OrderedReady", "Parallel"}:
        said = "must be 'OrderedReady' or 'Parallel'"
        yield invalid("spec.podManagementPolicy", spec.get("podManagementPolicy", ""), said)
    yield from _check_stateful_update(spec["updateStrategy"], "spec.updateStrategy")
    retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    for name in ("whenDeleted", "whenScaled"):
        yield from choice(retention.get(name), f"spec.persistentVolumeClaimRetentionPolicy.{name}", _RETENTION)
    for name in ("replicas", "minReadySeconds", "revisionHistoryLimit"):
        yield from at_least_zero(spec, name, "spec")
    yield from at_least_zero(spec.get("ordinals") or {}, "start", "spec.ordinals")
    yield from check_selector(spec.get("selector"), "spec.selector", "empty selector is invalid for statefulset", "")
    yield from _check_pods(_with_claims(spec), sets="StatefulSet")


def _with_claims(spec: Json) -> Json:
    """Each of its pods has a volume for every claim, which its containers may mount."""
    names = [((claim.get("metadata") or {}).get("name")) for claim in spec.get("volumeClaimTemplates") or ()]
    pod = (spec.get("template") or {}).get("spec")
    if not names or pod is None:
        return spec
    own = [volume for volume in pod.get("volumes") or () if volume.get("name") not in names]
    claimed = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    return {**spec, "template": {**spec["template"], "spec": {**pod, "volumes": [*own, *claimed]}}}


def _check_stateful_update(strategy: Json, path: str) -> Iterator[Cause]:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind not in {"RollingUpdate", "OnDelete"}:
        shown = {"Type": strategy.get("type", ""), "RollingUpdate": _go_partition(rolling) if rolling else None}
        yield invalid(path, shown, "must be 'RollingUpdate' or 'OnDelete'")
    elif kind == "OnDelete" and rolling is not None:
        yield invalid(
            f"{path}.rollingUpdate", _go_partition(rolling), "only allowed for updateStrategy 'RollingUpdate'"
        )
    elif rolling is not None:
        yield from at_least_zero(rolling, "partition", f"{path}.rollingUpdate")


def check_stateful_set_update(value: Json, old: Json) -> Iterator[Cause]:
    """Most of a StatefulSet stays as it is."""
    spec, before = value["spec"], old["spec"]
    fixed = (spec.keys() | before.keys()) - _STATEFUL_MUTABLE
    if any((spec.get(name) or None) != (before.get(name) or None) for name in fixed):
        yield forbidden("spec", _STATEFUL_UPDATES)


def check_daemon_set(value: Json) -> Iterator[Cause]:
    """A DaemonSet."""
    spec = value["spec"]
    selector = spec.get("selector")
    yield from selector_faults(selector, "spec.selector")
    if selector == {}:
        yield invalid("spec.selector", selector, "empty selector is invalid for daemonset")
    yield from _check_pods(spec, sets="DaemonSet")
    for name in ("minReadySeconds", "revisionHistoryLimit"):
        yield from at_least_zero(spec, name, "spec")
    yield from _check_daemon_update(spec["updateStrategy"], "spec.updateStrategy")


def _check_daemon_update(strategy: Json, path: str) -> Iterator[Cause]:
    if strategy.get("type") == "RollingUpdate":
        rolling, place = strategy["rollingUpdate"], f"{path}.rollingUpdate"
        yield from int_or_percent(rolling["maxUnavailable"], f"{place}.maxUnavailable", at_most_all=True)
        yield from int_or_percent(rolling["maxSurge"], f"{place}.maxSurge", at_most_all=True)
        surges = not _is_zero(rolling["maxSurge"])
        if _is_zero(rolling["maxUnavailable"]) and not surges:
            yield required(f"{place}.maxUnavailable", "cannot be 0 when maxSurge is 0")
        elif surges and not _is_zero(rolling["maxUnavailable"]):
            yield invalid(f"{place}.maxSurge", rolling["maxSurge"], "may not be set when maxUnavailable is non-zero")
    elif strategy.get("type") != "OnDelete":
        yield unsupported(path, _go_strategy(strategy), ("RollingUpdate", "OnDelete"))


_DEPLOYED = ("updatedReplicas", "readyReplicas", "availableReplicas")
_OF_SET = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
_REPLICATED = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
_ON_NODES = (
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
    "observedGeneration",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
    "collisionCount",
)


def deployment_status(value: Json, old: Json) -> Iterator[Cause]:
    """Counts that fit together."""
    status = value.get("status") or {}
    yield from _not_fewer_collisions(status, old)
    yield from not_negative(
        status, "observedGeneration", "replicas", *_DEPLOYED, "unavailableReplicas", "collisionCount"
    )
    yield from _not_more(status, _DEPLOYED, "replicas", "status.replicas")
    yield from _not_more(status, ("availableReplicas",), "readyReplicas", "readyReplicas")


def stateful_set_status(value: Json, old: Json) -> Iterator[Cause]:
    """Counts that fit together."""
    status = value.get("status") or {}
    yield from _not_fewer_collisions(status, old)
    yield from not_negative(status, "replicas", *_OF_SET, "observedGeneration", "collisionCount")
    yield from _not_more(status, _OF_SET, "replicas", "status.replicas")
    yield from _not_more(status, ("availableReplicas",), "readyReplicas", "status.readyReplicas")


def replica_set_status(value: Json, _old: Json) -> Iterator[Cause]:
    """Counts that fit together."""
    status = value.get("status") or {}
    yield from not_negative(status, "replicas", *_REPLICATED, "observedGeneration")
    yield from _not_more(status, _REPLICATED, "replicas", "status.replicas")
    yield from _not_more(status, ("availableReplicas",), "readyReplicas", "readyReplicas")


def daemon_set_status(value: Json, old: Json) -> Iterator[Cause]:
    """Counts that can be."""
    yield from _not_fewer_collisions(value.get("status") or {}, old)
    yield from not_negative(value.get("status") or {}, *_ON_NODES)


def _not_fewer_collisions(status: Json, old: Json) -> Iterator[Cause]:
    before, now = (old.get("status") or {}).get("collisionCount"), status.get("collisionCount")
    if before is not None and (now is None or now < before):
        yield invalid("status.collisionCount", now or 0, "cannot be decremented")


def _not_more(status: Json, names: tuple[str, ...], limit: str, told: str) -> Iterator[Cause]:
    for name in names:
        if status.get(name, 0) > status.get(limit, 0):
            yield invalid(f"status.{name}", status.get(name, 0), f"cannot be greater than {told}")
