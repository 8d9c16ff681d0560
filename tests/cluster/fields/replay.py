"""One request to a real API server with its answer, and what this server makes of the same request."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec

from cluster.fields import widgets
from navarch.cluster.server.kinds.builtin.generic.schema import struct_of
from navarch.cluster.server.kinds.builtin.reset_fields import field_resets
from navarch.cluster.server.objects import fields
from navarch.cluster.server.objects.fields.kinds import KindShape
from navarch.cluster.server.objects.types import Catalog, ResourceType
from navarch.cluster.server.wire.status_errors import StatusError
from navarch.k8s.published import published

Json = dict[str, Any]

MEDIA_TYPES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
CORE = "", "v1"
APPS, BATCH, RBAC, NETWORK = (
    ("apps", "v1"),
    ("batch", "v1"),
    ("rbac.authorization.k8s.io", "v1"),
    ("networking.k8s.io", "v1"),
)
BUILTINS = {
    "configmaps": (*CORE, "ConfigMap"),
    "services": (*CORE, "Service"),
    "pods": (*CORE, "Pod"),
    "deployments": (*APPS, "Deployment"),
    "statefulsets": (*APPS, "StatefulSet"),
    "daemonsets": (*APPS, "DaemonSet"),
    "replicasets": (*APPS, "ReplicaSet"),
    "jobs": (*BATCH, "Job"),
    "cronjobs": (*BATCH, "CronJob"),
    "ingresses": (*NETWORK, "Ingress"),
    "networkpolicies": (*NETWORK, "NetworkPolicy"),
    "poddisruptionbudgets": ("policy", "v1", "PodDisruptionBudget"),
    "horizontalpodautoscalers": ("autoscaling", "v2", "HorizontalPodAutoscaler"),
    "roles": (*RBAC, "Role"),
    "rolebindings": (*RBAC, "RoleBinding"),
    "serviceaccounts": (*CORE, "ServiceAccount"),
    "secrets": (*CORE, "Secret"),
    "persistentvolumeclaims": (*CORE, "PersistentVolumeClaim"),
    "resourcequotas": (*CORE, "ResourceQuota"),
    "limitranges": (*CORE, "LimitRange"),
    "endpoints": (*CORE, "Endpoints"),
    "endpointslices": ("discovery.k8s.io", "v1", "EndpointSlice"),
    "leases": ("coordination.k8s.io", "v1", "Lease"),
    "events": (*CORE, "Event"),
    "podtemplates": (*CORE, "PodTemplate"),
    "replicationcontrollers": (*CORE, "ReplicationController"),
    "controllerrevisions": (*APPS, "ControllerRevision"),
}
# What the server sets after it has looked at who owns what: admission and the allocation of addresses.
SET_LATER = {
    "services": ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"),
    "pods": ("serviceAccount", "serviceAccountName", "tolerations", "priority", "preemptionPolicy", "volumes"),
}


@dataclass(frozen=True, kw_only=True)
class Step:
    """A request about one object: what was there, what was asked, what the real server answered, and when."""

    plural: str
    version: str
    operation: str
    manager: str
    force: bool
    subresource: str
    body: Any
    live: Json | None
    code: int
    answer: Json
    now: str
    is_fresh: bool = True
    """Whether it is no record."""


@cache
def _schema_names() -> dict[tuple[str, str, str], str]:
    names: dict[tuple[str, str, str], str] = {}
    for name in published().schema_names():
        for kind in published().schema(name).get("x-kubernetes-group-version-kind", ()):
            names.setdefault((kind["group"], kind["version"], kind["kind"]), name)
    return names


class _Schema:
    """Only the document and what an empty object has: the rest is the business of others."""

    def __init__(self, document: Json, name: str) -> None:
        self.document = document
        self._name = name

    def zero(self) -> Json:
        """What Go writes of an object in which nothing is set."""
        found: Json = struct_of(self._name).zero()
        return found


@cache
def resource(plural: str, version: str) -> ResourceType:
    """A kind of the tests, as far as patches need it."""
    is_custom = plural == widgets.PLURAL
    group, version, kind = (widgets.GROUP, version, widgets.KIND) if is_custom else BUILTINS[plural]
    name = "" if is_custom else _schema_names()[group, version, kind]
    document = {**widgets.SCHEMA} if is_custom else published().schema(name)
    nothing: Any = None
    schema: Any = _Schema(document, name)
    return ResourceType(
        group=group,
        version=version,
        kind=kind,
        plural=plural,
        singular=plural,
        namespaced=True,
        verbs=(),
        schema=schema,
        strategy=nothing,
        is_custom=is_custom,
        subresources={"status": nothing},
        reset_fields={} if is_custom else field_resets(group, kind),
    )


@cache
def _catalog() -> Catalog:
    """The kinds of the tests, and nothing else."""
    custom = [resource(widgets.PLURAL, version) for version in ("v1", "v1beta1")]
    return Catalog([*custom, *(resource(plural, "v1") for plural in BUILTINS)])


@cache
def shape(plural: str, version: str) -> KindShape:
    """The compiled shape of a kind of the tests."""
    return fields.shape_of(resource(plural, version), _catalog())


def differences(step: Step) -> Iterator[str]:
    """What differs between the real answer and ours."""
    if step.operation == "apply":
        yield from _differences_of_apply(step)
    elif step.code < 300:
        yield from _differences_of_update(step)


def _differences_of_apply(step: Step) -> Iterator[str]:
    try:
        ours = _applied(step)
    except StatusError as refusal:
        yield from _compared("refusal", _calm(refusal.status()), _calm(step.answer))
        return
    if step.code >= 300:
        if step.answer.get("reason") == "Conflict" and "FieldManagerConflict" in str(step.answer):
            yield f"expected {step.answer['message']}, got an object"
        return
    ours = fields.settled(step.live, ours) if step.live else ours
    yield from _compared_managed(step, ours)
    yield from _compared_objects(step, _plain(ours), _plain(step.answer))


def _applied(step: Step) -> Json:
    kind = shape(step.plural, step.version)
    return fields.applied(
        step.live,
        msgspec.json.decode(msgspec.json.encode(step.body)),
        kind,
        manager=step.manager,
        force=step.force,
        subresource=step.subresource,
        api_version=kind.api_version,
        now=step.now,
    )


def _differences_of_update(step: Step) -> Iterator[str]:
    kind = shape(step.plural, step.version)
    new = _before_admission(step)
    managed = fields.updated(
        step.live,
        new,
        kind,
        manager=step.manager,
        subresource=step.subresource,
        api_version=kind.api_version,
        now=step.now,
    )
    ours = {**step.answer, "metadata": {**step.answer["metadata"], "managedFields": managed}}
    if step.live is not None:
        ours = fields.settled(step.live, ours)
    yield from _compared_managed(step, ours)
    if step.operation in {"json", "merge", "strategic"}:
        yield from _differences_of_patch(step)


def _differences_of_patch(step: Step) -> Iterator[str]:
    assert step.live is not None
    body = msgspec.json.encode(step.body)
    ours = fields.patched(step.live, body, MEDIA_TYPES[step.operation], resource(step.plural, step.version))
    yield from _compared_objects(step, _plain(ours), _plain(step.answer))


def _compared_objects(step: Step, mine: Json, other: Json) -> Iterator[str]:
    if step.subresource:
        mine, other = {"status": mine.get("status")}, {"status": other.get("status")}
    if step.plural == widgets.PLURAL:
        yield from _compared("object", _with_defaults(mine), other)
    else:
        yield from _missing("", mine, other)


def compared_patch(plural: str, ours: Json, theirs: Json) -> Iterator[str]:
    """What differs between what a patch made here and what it made there."""
    # Controllers write the status whenever they like.
    mine, other = _plain({**ours, "status": None}), _plain({**theirs, "status": None})
    yield from _compared("object", _with_defaults(mine), other) if plural == "widgets" else _missing("", mine, other)


def _before_admission(step: Step) -> Json:
    """The new object when the real server looked at who owns what."""
    new: Json = msgspec.json.decode(msgspec.json.encode(step.answer))
    if step.live is None and step.plural in SET_LATER:
        given = step.body.get("spec", {})
        for name in SET_LATER[step.plural]:
            if name not in given:
                new["spec"].pop(name, None)
    if step.live is None and "finalizers" not in step.body["metadata"]:
        new["metadata"].pop("finalizers", None)
    given_entries = _given_entries(step)
    new["metadata"].pop("managedFields", None)
    if given_entries is not None:
        new["metadata"]["managedFields"] = given_entries
    return new


def _given_entries(step: Step) -> Any:
    if step.operation in {"create", "update"}:
        return step.body["metadata"].get("managedFields")
    assert step.live is not None
    before = step.live["metadata"].get("managedFields")
    if step.operation == "merge":
        return step.body.get("metadata", {}).get("managedFields", before)
    return before


def _compared_managed(step: Step, ours: Json) -> Iterator[str]:
    """For built-in kinds to the byte, where the order was not lost in recording it."""
    mine, other = _managed(ours), _managed(step.answer)
    yield from _compared("managed fields", mine, other)
    if step.is_fresh and step.plural != widgets.PLURAL and msgspec.json.encode(mine) != msgspec.json.encode(other):
        yield from _compared("order of managed fields", str(mine), str(other))


def _managed(value: Json) -> Any:
    return value["metadata"].get("managedFields") or []


def _plain(value: Json) -> Json:
    """Without what the server sets."""
    ignored = {"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "namespace"}
    meta = {name: member for name, member in value["metadata"].items() if name not in ignored}
    return {**value, "metadata": meta}


def _with_defaults(value: Any) -> Any:
    """What the schema of widgets fills in, and what reading an embedded object leaves out."""
    if isinstance(value, list):
        return [_with_defaults(item) for item in value]
    if not isinstance(value, dict):
        return value
    filled = {name: _with_defaults(member) for name, member in value.items()}
    if "port" in filled:
        filled.setdefault("protocol", "TCP")
    meta = (filled.get("embedded") or {}).get("metadata") or {}
    if meta.get("labels") in ({}, None):
        meta.pop("labels", None)
    return filled


def _calm(status: Json) -> Json:
    """Causes sorted: the real server lists them in any order."""
    if "causes" not in (status.get("details") or {}):
        return status
    causes = sorted(status["details"]["causes"], key=str)
    return {**status, "details": {**status["details"], "causes": causes}}


def _compared(what: str, ours: Any, theirs: Any) -> Iterator[str]:
    if ours != theirs:
        yield f"{what}:\n  ours   {msgspec.json.encode(ours).decode()}\n  theirs {msgspec.json.encode(theirs).decode()}"


def _missing(path: str, ours: Any, theirs: Any) -> Iterator[str]:
    """What we have and they have not; they have defaults in addition."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name, member in ours.items():
            if member not in (None, {}) or name in theirs:
                yield from _missing(f"{path}.{name}", member, theirs.get(name))
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from _missing(f"{path}[{index}]", mine, other)
    elif ours != theirs and (ours, theirs) != (None, None):
        yield f"{path}: ours {ours!r}, theirs {theirs!r}"
