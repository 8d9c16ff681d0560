"""PodSecurity as a part of admission: refuses pods, and warns of workloads and of labels of namespaces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from navarch.cluster.server.pipeline.admission.attributes import Attributes, Warnings
from navarch.cluster.server.pipeline.admission.matching import internal_error
from navarch.cluster.server.pipeline.admission.namespaces import FindNamespace
from navarch.cluster.server.pipeline.admission.pod_security.controls import violations
from navarch.cluster.server.pipeline.admission.pod_security.existing_pods import ExistingPods
from navarch.cluster.server.pipeline.admission.pod_security.levels import (
    LABEL_PREFIX,
    PRIVILEGED,
    Level,
    LevelVersion,
    Policy,
    policy_of,
)
from navarch.cluster.server.pipeline.admission.pod_security.violations import told
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_errors import forbidden, invalid
from navarch.errors import Cause

__all__ = ["PodSecurity"]

_OPERATIONS: Final = frozenset({"CREATE", "UPDATE"})
_IGNORED_PARTS: Final = frozenset(
    {"exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"}
)  # subresources of pods that cannot change what a container may do
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
"""Where workloads have the template of their pods."""


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
    """Whether pods that were admitted may violate what is enforced from now on."""
    if wanted.level == Level.PRIVILEGED or wanted == before:
        return False
    return wanted.minor != before.minor or wanted.level > before.level


def _is_significant(spec: Json, old: Json) -> bool:
    """Whether an update of a pod runs something that was not checked before: another image, or another container."""
    for field in ("containers", "initContainers"):
        images, before = ([each.get("image") for each in pod.get(field) or ()] for pod in (spec, old))
        if images != before:
            return True
    known = {each["name"]: each.get("image") for each in old.get("ephemeralContainers") or ()}
    return any(
        each["name"] not in known or each.get("image") != known[each["name"]]
        for each in spec.get("ephemeralContainers") or ()
    )


def _inform(attributes: Attributes, policy: Policy, pod: Json, warnings: Warnings) -> None:
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
