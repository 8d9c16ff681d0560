"""ConfigMaps, Secrets, Namespaces and ServiceAccounts: checks, defaults and columns; the rules of the folder."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from navarch.api.names import DNS_LABEL
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
from navarch.cluster.server.kinds.builtin.generic.checks import config_key, finalizer_name
from navarch.cluster.server.kinds.builtin.generic.columns import Ages, name_of, selectable
from navarch.cluster.server.kinds.builtin.generic.strategy import BuiltinStrategy, Rules, path_segment_faults
from navarch.cluster.server.objects.metadata import immutable_faults
from navarch.cluster.server.objects.types import DeletionRules, WriteContext
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_causes import forbidden, invalid, required, too_long
from navarch.errors import Cause

_IMMUTABLE: Final = "field is immutable when `immutable` is set"
_NEEDED_KEYS: Final = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
}
_ACCOUNT: Final = "kubernetes.io/service-account.name"
_MOUNTABLE: Final = "kubernetes.io/enforce-mountable-secrets"
_MOST_DATA: Final = 2**20


def check_config_map(value: Json) -> Iterator[Cause]:
    """A ConfigMap."""
    binary = value.get("binaryData") or {}
    for key in value.get("data") or ():
        yield from config_key(key, f"data[{key}]")
        if key in binary:
            yield invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    for key in binary:
        yield from config_key(key, f"binaryData[{key}]")
    if _is_over([*(value.get("data") or {}).values()], [*binary.values()]):
        yield too_long("[]", _MOST_DATA)


def _is_over(texts: Sequence[str], encoded: Sequence[str]) -> bool:
    """Tells whether texts and base64 bytes exceed the size limit; small ones are not decoded."""
    if 4 * sum(map(len, (*texts, *encoded))) <= _MOST_DATA:
        return False
    sizes = (*(len(text.encode()) for text in texts), *(len(base64.b64decode(each)) for each in encoded))
    return sum(sizes) > _MOST_DATA


def check_immutable(value: Json, old: Json) -> Iterator[Cause]:
    """Refuses changes of an immutable ConfigMap or Secret."""
    if not old.get("immutable"):
        return
    if not value.get("immutable"):
        yield forbidden("immutable", _IMMUTABLE)
    for name in ("data", "binaryData"):
        if (value.get(name) or None) != (old.get(name) or None):
            yield forbidden(name, _IMMUTABLE)


def check_secret(value: Json) -> Iterator[Cause]:
    """A Secret: some types need some keys."""
    data, kind = value.get("data") or {}, value.get("type", "")
    for key in data:
        yield from config_key(key, f"data[{key}]")
    if _is_over((), [*data.values()]):
        yield too_long("data", _MOST_DATA)
    if kind == "kubernetes.io/service-account-token":
        if not (value["metadata"].get("annotations") or {}).get(_ACCOUNT):
            yield required(f"metadata.annotations[{_ACCOUNT}]")
    elif kind == "kubernetes.io/basic-auth" and not {"username", "password"} & {*data}:
        yield required("data[username]")
        yield required("data[password]")
    for key in _NEEDED_KEYS.get(kind, ()):
        if key not in data:
            yield required(f"data[{key}]")
        elif kind.startswith("kubernetes.io/dockerc"):
            yield from _check_docker(data[key], f"data[{key}]")


def _check_docker(encoded: str, field: str) -> Iterator[Cause]:
    text = base64.b64decode(encoded).decode(errors="replace").strip()
    try:
        json.loads(text)
    except ValueError:
        why = (
            f"invalid character '{text[0]}' looking for beginning of value" if text else "unexpected end of JSON input"
        )
        yield invalid(field, "<secret contents redacted>", why)


def check_secret_update(value: Json, old: Json) -> Iterator[Cause]:
    """Refuses a changed type, and changes of an immutable Secret."""
    yield from immutable_faults(value.get("type"), old.get("type"), "type")
    yield from check_immutable(value, old)


def secret_warnings(value: Json, _: Json | None) -> list[str]:
    """Warns of a TLS certificate that is not PEM."""
    if value.get("type") != "kubernetes.io/tls":
        return []
    certificate = base64.b64decode((value.get("data") or {}).get("tls.crt", ""))
    return [] if b"-----BEGIN" in certificate else ["tls: failed to find any PEM data in certificate input"]


def check_namespace(value: Json) -> Iterator[Cause]:
    """A Namespace."""
    for name in value["spec"].get("finalizers") or ():
        yield from finalizer_name(name, "spec.finalizers")


def service_account_warnings(value: Json, old: Json | None) -> list[str]:
    """Warns of a deprecated annotation."""
    had = (old or {}).get("metadata", {}).get("annotations") or {}
    if _MOUNTABLE in had or _MOUNTABLE not in (value["metadata"].get("annotations") or {}):
        return []
    why = "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
    return [f"metadata.annotations[{_MOUNTABLE}]: {why}"]


def create_namespace(value: Json, _: WriteContext) -> None:
    """Sets the phase Active and the finalizer `kubernetes`, which the namespace controller removes."""
    value["status"] = {"phase": "Active"}
    finalizers = value["spec"].get("finalizers") or []
    if "kubernetes" not in finalizers:
        value["spec"]["finalizers"] = [*finalizers, "kubernetes"]


def mark_namespace_deleted(value: Json) -> None:
    """Sets the phase of a deleted Namespace to Terminating."""
    value["status"] = {**value.get("status", {}), "phase": "Terminating"}


def create_service_account(value: Json, _: WriteContext) -> None:
    """Drops every field but the name of the referenced secrets."""
    _keep_names_of_secrets(value)


def update_service_account(value: Json, _old: Json, _: WriteContext) -> None:
    """Drops every field but the name of the referenced secrets."""
    _keep_names_of_secrets(value)


def _keep_names_of_secrets(value: Json) -> None:
    for secret in value.get("secrets") or ():
        for name in secret.keys() - {"name"}:
            del secret[name]


def default_secret(value: Json) -> None:
    """Sets the type Opaque, and encodes `stringData` into `data`."""
    value.setdefault("type", "Opaque")
    texts = value.pop("stringData", None)
    if texts:
        encoded = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
        value["data"] = {**(value.get("data") or {}), **encoded}


def default_namespace(value: Json) -> None:
    """Labels a Namespace with its name, and sets the phase Active."""
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
        deletion=DeletionRules(has_spec_finalizers=True, checks_in_storage=True),
        selects_namespace=False,
        is_own_namespace=True,
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
        deletion=DeletionRules(has_dependents=False),
        has_watch_cache=False,
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
        deletion=DeletionRules(has_dependents=False),
        has_watch_cache=False,
        check=check_event,
        check_update=check_event_update,
        fields=events_v1_fields,
        qualifies_finalizers=False,
        cells=events_v1_cells,
        creates_on_update=True,
        convert=convert_events,
        stored_as=("", "v1"),
    ),
}
