"""Rules of the workloads: defaults, columns and the template generation of DaemonSets."""

from __future__ import annotations

from typing import Any, Final

from navarch.api.names import DNS_LABEL
from navarch.api.strconv import parse_int64
from navarch.cluster.server.kinds.builtin.apps.checks import (
    check_daemon_set,
    check_deployment,
    check_replica_set,
    check_replication_controller,
    check_selector_update,
    check_stateful_set,
    check_stateful_set_update,
    daemon_set_status,
    deployment_status,
    replica_set_status,
    stateful_set_status,
)
from navarch.cluster.server.kinds.builtin.generic.columns import (
    NONE,
    Ages,
    containers,
    labels,
    name_of,
    selectable,
    selector,
)
from navarch.cluster.server.kinds.builtin.generic.strategy import Rules
from navarch.cluster.server.kinds.builtin.pods.checks import template_warnings, workload_warnings
from navarch.cluster.server.kinds.builtin.pods.columns import template_of
from navarch.cluster.server.kinds.builtin.pods.defaults import default_claim_spec, default_pod_spec
from navarch.cluster.server.objects.types import DeletionRules, WriteContext
from navarch.cluster.server.wire.request import Json

_NOTE: Final = "deprecated.daemonset.template.generation"


def noted(value: Json) -> None:
    """Kubernetes writes the annotation into everything that it reads, so that it belongs to whoever writes."""
    _note(value, _generation(value))


def begin_template_generation(value: Json, _: WriteContext) -> None:
    """A new DaemonSet begins with 1, or with what it says."""
    _note(value, max(1, _generation(value)))


def count_template_generation(value: Json, old: Json, _: WriteContext) -> None:
    """It grows with each change of the template."""
    _note(value, _generation(old) + (value["spec"]["template"] != old["spec"]["template"]))


def keep_template_generation(value: Json, old: Json, _: WriteContext) -> None:
    """A write of the status leaves it alone."""
    _note(value, _generation(old))


def _generation(value: Json) -> int:
    text = (value["metadata"].get("annotations") or {}).get(_NOTE, "0")
    return (parse_int64(text) or 0) if text.isdecimal() else 0


def _note(value: Json, generation: int) -> None:
    annotations = value["metadata"].get("annotations") or {}
    value["metadata"]["annotations"] = {**annotations, _NOTE: str(generation)}


_ROLLING: Final = "RollingUpdate"


def default_deployment(value: Json) -> None:
    """A Deployment."""
    spec = value["spec"]
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    strategy = spec["strategy"]
    if strategy.setdefault("type", _ROLLING) == _ROLLING:
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    default_pod_spec(spec["template"]["spec"])


def default_replica_set(value: Json) -> None:
    """A ReplicaSet."""
    value["spec"].setdefault("replicas", 1)
    default_pod_spec(value["spec"].get("template", {}).get("spec", {}))


def default_replication_controller(value: Json) -> None:
    """A ReplicationController: labels and selector are its template's if it says nothing."""
    spec = value["spec"]
    template = spec.get("template")
    labels = ((template or {}).get("metadata") or {}).get("labels")
    if labels:
        spec.setdefault("selector", {**labels})
        value["metadata"].setdefault("labels", {**labels})
    spec.setdefault("replicas", 1)
    if template is not None:
        default_pod_spec(template["spec"])


def default_stateful_set(value: Json) -> None:
    """A StatefulSet."""
    spec = value["spec"]
    spec.setdefault("podManagementPolicy", "OrderedReady")
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    _default_stateful_update(spec["updateStrategy"])
    retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    retention.setdefault("whenDeleted", "Retain")
    retention.setdefault("whenScaled", "Retain")
    default_pod_spec(spec["template"]["spec"])
    for claim in spec.get("volumeClaimTemplates") or ():
        default_claim_spec(claim["spec"])
        claim["status"].setdefault("phase", "Pending")
        claim["apiVersion"], claim["kind"] = "v1", "PersistentVolumeClaim"


def _default_stateful_update(strategy: Json) -> None:
    """Drops `maxUnavailable`, whose feature gate is off."""
    if "type" not in strategy:
        strategy["type"] = _ROLLING
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == _ROLLING and "rollingUpdate" in strategy:
        strategy["rollingUpdate"].setdefault("partition", 0)
        strategy["rollingUpdate"].pop("maxUnavailable", None)


def default_daemon_set(value: Json) -> None:
    """A DaemonSet."""
    noted(value)
    spec = value["spec"]
    strategy = spec["updateStrategy"]
    if strategy.setdefault("type", _ROLLING) == _ROLLING:
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)
    spec.setdefault("revisionHistoryLimit", 10)
    default_pod_spec(spec["template"]["spec"])


def deployment_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, ready, up to date, available, age; containers, images, selector."""
    spec, status = value["spec"], value.get("status", {})
    return [
        name_of(value),
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        ages.of(value),
        *containers(template_of(value)),
        selector(spec.get("selector")),
    ]


def replica_set_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, desired, current, ready, age; containers, images, selector."""
    return [*_replicas(value, ages), selector(value["spec"].get("selector"))]


def replication_controller_cells(value: Json, ages: Ages) -> list[Any]:
    """Returns the row of a ReplicationController."""
    return [*_replicas(value, ages), labels(value["spec"].get("selector"))]


def _replicas(value: Json, ages: Ages) -> list[Any]:
    spec, status = value["spec"], value.get("status", {})
    counts = [spec.get("replicas", 0), status.get("replicas", 0), status.get("readyReplicas", 0)]
    return [name_of(value), *counts, ages.of(value), *containers(template_of(value))]


def stateful_set_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, ready, age; containers, images."""
    ready = f"{value.get('status', {}).get('readyReplicas', 0)}/{value['spec'].get('replicas', 0)}"
    return [name_of(value), ready, ages.of(value), *containers(template_of(value))]


def daemon_set_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, desired, current, ready, up to date, available, node selector, age; containers, images, selector."""
    status = value.get("status", {})
    fields = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    template = template_of(value)
    return [
        name_of(value),
        *(status.get(field, 0) for field in fields),
        labels(template.get("nodeSelector")),
        ages.of(value),
        *containers(template),
        selector(value["spec"].get("selector")),
    ]


def revision_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, controller, revision, age."""
    owners = value["metadata"].get("ownerReferences") or ()
    controller = next((each for each in owners if each.get("controller")), None)
    return [name_of(value), _owner(controller) if controller else NONE, value.get("revision", 0), ages.of(value)]


def _owner(owner: Json) -> str:
    group = owner.get("apiVersion", "").rpartition("/")[0]
    kind = owner.get("kind", "").lower()
    return f"{kind}.{group}/{owner.get('name', '')}" if group else f"{kind}/{owner.get('name', '')}"


replication_controller_fields: Final = selectable("status.replicas", default="0")
_LABELS: Final = ("spec", "template", "metadata", "labels")

RULES: Final[dict[tuple[str, str], Rules]] = {
    ("v1", "replicationcontrollers"): Rules(
        deletion=DeletionRules(orphans_dependents=True),
        default=default_replication_controller,
        check=check_replication_controller,
        warnings=workload_warnings,
        counts_generation=True,
        fields=replication_controller_fields,
        cells=replication_controller_cells,
        storage_prefix="controllers",
    ),
    ("apps/v1", "deployments"): Rules(
        never_empty=_LABELS,
        default=default_deployment,
        check=check_deployment,
        check_status=deployment_status,
        check_update=check_selector_update,
        warnings=workload_warnings,
        counts_generation=True,
        cells=deployment_cells,
        counts_annotations=True,
    ),
    ("apps/v1", "replicasets"): Rules(
        never_empty=_LABELS,
        default=default_replica_set,
        check=check_replica_set,
        check_status=replica_set_status,
        check_update=check_selector_update,
        warnings=workload_warnings,
        counts_generation=True,
        cells=replica_set_cells,
    ),
    ("apps/v1", "statefulsets"): Rules(
        never_empty=_LABELS,
        default=default_stateful_set,
        check=check_stateful_set,
        check_status=stateful_set_status,
        check_update=check_stateful_set_update,
        warnings=template_warnings,
        name_faults=DNS_LABEL.faults,
        counts_generation=True,
        cells=stateful_set_cells,
    ),
    ("apps/v1", "daemonsets"): Rules(
        never_empty=_LABELS,
        default=default_daemon_set,
        create=begin_template_generation,
        update=count_template_generation,
        update_status=keep_template_generation,
        check=check_daemon_set,
        check_status=daemon_set_status,
        check_update=check_selector_update,
        warnings=template_warnings,
        counts_generation=True,
        cells=daemon_set_cells,
        hidden_annotation=_NOTE,
    ),
    ("apps/v1", "controllerrevisions"): Rules(
        cells=revision_cells,
    ),
}
