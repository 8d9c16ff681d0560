"""PodSecurity: checks pods, pod templates, and the existing pods of a relabelled namespace."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from navarch._base.clock import Clock
from navarch.cluster.server.objects.registry import Registry, value_of
from navarch.cluster.server.objects.types import Catalog
from navarch.cluster.server.pipeline.admission.attributes import Attributes, Warnings
from navarch.cluster.server.pipeline.admission.matching import internal_error
from navarch.cluster.server.pipeline.admission.plugins.guards import FindNamespace
from navarch.cluster.server.pipeline.admission.pod_security.baseline import told
from navarch.cluster.server.pipeline.admission.pod_security.controls import (
    LABEL_PREFIX,
    PRIVILEGED,
    Level,
    LevelPolicy,
    LevelVersion,
    policy_of,
    violations,
)
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_errors import forbidden, invalid
from navarch.cluster.storage import Stored
from navarch.errors import Cause

_MOST_PODS: Final = 3000
_MOST_SECONDS: Final = 1.0
_AT_ONCE: Final = 50
"""So many pods are checked before other requests get their turn."""


class _CheckedPodOwner(msgspec.Struct):
    uid: str = ""
    controller: bool | None = None


class _CheckedPodMetadata(msgspec.Struct):
    ownerReferences: list[_CheckedPodOwner] | None = None  # noqa: N815 - as it is stored


class _OwnedPod(msgspec.Struct):
    """The part of a pod that names its controller."""

    metadata: _CheckedPodMetadata


_OWNED: Final = msgspec.json.Decoder(_OwnedPod)


class ExistingPods:
    """Checks the pods of a namespace: one of each controller first, at most 3000 of them, and for at most a second."""

    def __init__(self, registry: Registry, catalog: Catalog, clock: Clock) -> None:
        self._registry = registry
        self._catalog = catalog
        self._clock = clock

    async def warnings(self, namespace: str, enforced: LevelVersion) -> list[str]:
        """Returns the warnings for a newly enforced level; pods with the same violations share one line."""
        pods = self._catalog.find("", "v1", "pods")
        assert pods is not None, "expected the server to serve pods"
        stored = _prioritized((await self._registry.storage.page(pods.prefix(namespace))).items)
        found: dict[str, list[str]] = {}
        deadline = self._clock.monotonic() + _MOST_SECONDS
        checked = 0
        for each in stored[:_MOST_PODS]:
            pod = await value_of(pods, each)
            if reasons := [violated.reason for violated in violations(enforced, pod)]:
                found.setdefault(", ".join(reasons), []).append(pod["metadata"]["name"])
            checked += 1
            if self._clock.monotonic() > deadline:
                break
            if checked % _AT_ONCE == 0:
                await self._clock.sleep(0)
        return [*_summary(namespace, enforced, found, checked, len(stored)), *sorted(map(_line, found.values(), found))]


def _summary(
    namespace: str, enforced: LevelVersion, found: dict[str, list[str]], checked: int, total: int
) -> Iterable[str]:
    if checked < total:
        yield f"new PodSecurity enforce level only checked against the first {checked} of {total} existing pods"
    if found:
        yield f'existing pods in namespace "{namespace}" violate the new PodSecurity enforce level "{enforced}"'


def _line(names: list[str], reasons: str) -> str:
    others = len(names) - 1
    more = f" (and {others} other pod{'' if others == 1 else 's'})" if others else ""
    return f"{min(names)}{more}: {reasons}"


def _prioritized(pods: list[Stored]) -> list[Stored]:
    """Pods of controllers that have had one already come last: they are most likely the same."""
    first: list[Stored] = []
    again: list[Stored] = []
    seen: set[str] = set()
    for pod in pods:
        owners = _OWNED.decode(pod.value).metadata.ownerReferences or ()
        controller = next((each.uid for each in owners if each.controller), "")
        (again if controller in seen else first).append(pod)
        if controller:
            seen.add(controller)
    return [*first, *again]


_OPERATIONS: Final = frozenset({"CREATE", "UPDATE"})
_IGNORED_PARTS: Final = frozenset({"exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"})
"""Subresources of pods whose writes cannot change what a container may do."""
_LONGEST_ANNOTATION: Final = 4096
_PODS: Final = ("", "pods")
_NAMESPACES: Final = ("", "namespaces")


def _spec_template(value: Json) -> Json | None:
    return (value.get("spec") or {}).get("template")


_TEMPLATES: Final[dict[tuple[str, str], Callable[[Json], Json | None]]] = {
    ("", "podtemplates"): lambda value: value.get("template"),
    ("", "replicationcontrollers"): _spec_template,
    ("apps", "daemonsets"): _spec_template,
    ("apps", "deployments"): _spec_template,
    ("apps", "replicasets"): _spec_template,
    ("apps", "statefulsets"): _spec_template,
    ("batch", "jobs"): _spec_template,
    ("batch", "cronjobs"): lambda value: _spec_template((value.get("spec") or {}).get("jobTemplate") or {}),
}
"""The pod template of each workload kind."""


class PodSecurity:
    """Enforces the level that the labels of a namespace name on its pods; workloads are only warned of and recorded."""

    def __init__(self, find_namespace: FindNamespace, existing: ExistingPods) -> None:
        self._find_namespace = find_namespace
        self._existing = existing

    async def validate(self, attributes: Attributes, warnings: Warnings) -> None:
        """See `Admission.validate`."""
        resource, value = (attributes.resource.group, attributes.resource.plural), attributes.value
        if attributes.operation not in _OPERATIONS or value is None:
            return
        if resource == _PODS:
            await self._validate_pod(attributes, value, warnings)
        elif attributes.subresource:
            return
        elif resource == _NAMESPACES:
            await self._validate_namespace(attributes, value, warnings)
        elif resource in _TEMPLATES:
            await self._validate_workload(attributes, _TEMPLATES[resource](value), warnings)

    async def _validate_pod(self, attributes: Attributes, pod: Json, warnings: Warnings) -> None:
        if attributes.subresource in _IGNORED_PARTS:
            return
        namespace = await self._find_namespace(attributes.namespace)
        if namespace is None:
            raise internal_error(f'failed to lookup namespace "{attributes.namespace}"')
        policy, causes = policy_of(namespace["metadata"].get("labels"))
        if policy.is_privileged and not causes:
            _annotate(attributes, "enforce-policy", str(PRIVILEGED))
            return
        if attributes.old is not None and not _is_significant(pod["spec"], attributes.old["spec"]):
            return
        _annotate_error(attributes, causes)
        _annotate(attributes, "enforce-policy", str(policy.enforce))
        found = violations(policy.enforce, pod)
        if not found:
            _inform(attributes, policy, pod, warnings)
            return
        _audit(attributes, policy.audit, pod)
        why = f'violates PodSecurity "{policy.enforce}": {told(found)}'
        raise forbidden(attributes.resource.group, attributes.resource.plural, attributes.told_name, why)

    async def _validate_workload(self, attributes: Attributes, template: Json | None, warnings: Warnings) -> None:
        namespace = await self._find_namespace(attributes.namespace)
        if namespace is None:
            _annotate(attributes, "error", f'failed to lookup namespace "{attributes.namespace}"')
            return
        policy, causes = policy_of(namespace["metadata"].get("labels"))
        if template is not None:
            _annotate_error(attributes, causes)
            _inform(attributes, policy, template, warnings)

    async def _validate_namespace(self, attributes: Attributes, value: Json, warnings: Warnings) -> None:
        policy, causes = policy_of(value["metadata"].get("labels"))
        before, known = policy_of((attributes.old or {"metadata": {}})["metadata"].get("labels"))
        if causes and causes != known:
            raise invalid(attributes.resource.group, attributes.resource.kind, attributes.told_name, causes)
        if attributes.old is not None and _is_stricter(policy.enforce, before.enforce):
            warnings += await self._existing.warnings(attributes.name, policy.enforce)


def _is_stricter(wanted: LevelVersion, before: LevelVersion) -> bool:
    """Tells whether admitted pods may violate the newly enforced level."""
    if wanted.level == Level.PRIVILEGED or wanted == before:
        return False
    return wanted.minor != before.minor or wanted.level > before.level


def _is_significant(spec: Json, old: Json) -> bool:
    """Tells whether an update of a pod adds an image or a container that was not checked."""
    for field in ("containers", "initContainers"):
        images, before = ([each.get("image") for each in pod.get(field) or ()] for pod in (spec, old))
        if images != before:
            return True
    known = {each["name"]: each.get("image") for each in old.get("ephemeralContainers") or ()}
    return any(
        each["name"] not in known or each.get("image") != known[each["name"]]
        for each in spec.get("ephemeralContainers") or ()
    )


def _inform(attributes: Attributes, policy: LevelPolicy, pod: Json, warnings: Warnings) -> None:
    """Records and warns of what a pod that is admitted, or a template, violates."""
    _audit(attributes, policy.audit, pod)
    if found := violations(policy.warn, pod):
        warnings.append(f'would violate PodSecurity "{policy.warn}": {told(found)}')


def _audit(attributes: Attributes, wanted: LevelVersion, pod: Json) -> None:
    if found := violations(wanted, pod):
        _annotate(attributes, "audit-violations", f'would violate PodSecurity "{wanted}": {told(found)}')


def _annotate_error(attributes: Attributes, causes: list[Cause]) -> None:
    if causes:
        faults = ", ".join(f"{cause.field}: {cause.message}" for cause in causes)
        _annotate(attributes, "error", f"Failed to parse policy: {faults}")


def _annotate(attributes: Attributes, name: str, text: str) -> None:
    """Adds to the audit record, which is kept: a large pod must not make it large."""
    short = text if len(text) <= _LONGEST_ANNOTATION else f"{text[:_LONGEST_ANNOTATION]}...TRUNCATED"
    attributes.annotations[f"{LABEL_PREFIX}{name}"] = short
