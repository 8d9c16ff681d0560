"""Rules of the core group, except for pods, nodes, services and volumes."""

from __future__ import annotations

import base64
from typing import Any, Final

from navarch.api.names import DNS_LABEL
from navarch.cluster.server.kinds.builtin.core.checks import (
    check_config_map,
    check_immutable,
    check_namespace,
    check_secret,
    check_secret_update,
    secret_warnings,
    service_account_warnings,
)
from navarch.cluster.server.kinds.builtin.core.events import (
    check_event,
    check_event_update,
    convert_events,
    event_cells,
    event_fields,
    events_v1_cells,
    events_v1_fields,
)
from navarch.cluster.server.kinds.builtin.core.quotas import (
    check_limit_range,
    check_quota,
    check_quota_status,
    check_quota_update,
    default_limit_range,
    quota_cells,
    quota_warnings,
)
from navarch.cluster.server.kinds.builtin.generic.columns import Ages, name_of, selectable
from navarch.cluster.server.kinds.builtin.generic.strategy import BuiltinStrategy, Rules, path_segment_faults
from navarch.cluster.server.objects.types import Operation
from navarch.cluster.server.wire.request import Json


def create_namespace(value: Json, _: Operation) -> None:
    """A namespace is active, and stays until the server has emptied it."""
    value["status"] = {"phase": "Active"}
    finalizers = value["spec"].get("finalizers") or []
    if "kubernetes" not in finalizers:
        value["spec"]["finalizers"] = [*finalizers, "kubernetes"]


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


def default_secret(value: Json) -> None:
    """A Secret: what was given as text becomes data."""
    value.setdefault("type", "Opaque")
    texts = value.pop("stringData", None)
    if texts:
        encoded = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
        value["data"] = {**(value.get("data") or {}), **encoded}


def default_namespace(value: Json) -> None:
    """A Namespace: a label with its name, so that selectors can name it."""
    name = value["metadata"].get("name")
    if name:
        labels = value["metadata"].get("labels") or {}
        value["metadata"]["labels"] = {**labels, "kubernetes.io/metadata.name": name}
    value["status"].setdefault("phase", "Active")


def config_map_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, how many values, age."""
    return [name_of(value), len(value.get("data") or ()) + len(value.get("binaryData") or ()), ages.of(value)]


def secret_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, type, how many values, age."""
    return [name_of(value), value.get("type", ""), len(value.get("data") or ()), ages.of(value)]


def namespace_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, status, age."""
    return [name_of(value), value.get("status", {}).get("phase", ""), ages.of(value)]


def service_account_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, age."""
    return [name_of(value), ages.of(value)]


namespace_fields: Final = selectable("status.phase")
secret_fields: Final = selectable("type")

RULES: Final[dict[tuple[str, str], Rules]] = {
    ("v1", "configmaps"): Rules(
        check=check_config_map,
        check_update=check_immutable,
        cells=config_map_cells,
    ),
    ("v1", "secrets"): Rules(
        default=default_secret,
        check=check_secret,
        check_update=check_secret_update,
        warnings=secret_warnings,
        fields=secret_fields,
        cells=secret_cells,
    ),
    ("v1", "namespaces"): Rules(
        default=default_namespace,
        create=create_namespace,
        check=check_namespace,
        name_faults=DNS_LABEL.faults,
        fields=namespace_fields,
        cells=namespace_cells,
        returns_deleted=True,
        mark_deleted=mark_namespace_deleted,
        subresources={"finalize": BuiltinStrategy},
    ),
    ("v1", "serviceaccounts"): Rules(
        create=create_service_account,
        update=update_service_account,
        warnings=service_account_warnings,
        cells=service_account_cells,
        returns_deleted=True,
    ),
    ("v1", "limitranges"): Rules(
        default=default_limit_range,
        check=check_limit_range,
        empty_lists=(("spec", "limits"),),
        creates_on_update=True,
    ),
    ("v1", "resourcequotas"): Rules(
        check=check_quota,
        check_update=check_quota_update,
        check_status=check_quota_status,
        warnings=quota_warnings,
        cells=quota_cells,
        returns_deleted=True,
    ),
    ("v1", "events"): Rules(
        check=check_event,
        name_faults=path_segment_faults,
        fields=event_fields,
        checks_metadata=False,
        qualifies_finalizers=False,
        cells=event_cells,
        creates_on_update=True,
        convert=convert_events,
    ),
    ("events.k8s.io/v1", "events"): Rules(
        check=check_event,
        check_update=check_event_update,
        fields=events_v1_fields,
        qualifies_finalizers=False,
        cells=events_v1_cells,
        creates_on_update=True,
        convert=convert_events,
    ),
}
