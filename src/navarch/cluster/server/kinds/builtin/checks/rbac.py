"""Checks of roles and their bindings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from navarch.cluster.server.kinds.builtin.checks.common import named
from navarch.cluster.server.kinds.builtin.rules import path_segment_faults
from navarch.cluster.server.objects.metadata import selector_faults
from navarch.cluster.server.wire.causes import invalid, required, unsupported
from navarch.cluster.server.wire.request import Json
from navarch.errors import Cause

__all__ = ["check_binding", "check_binding_update", "check_cluster_binding", "check_cluster_role", "check_role"]

_GROUP: Final = "rbac.authorization.k8s.io"
_SUBJECTS: Final = ("ServiceAccount", "User", "Group")


def check_role(value: Json) -> Iterator[Cause]:
    """A Role."""
    for index, rule in enumerate(value.get("rules") or ()):
        yield from _check_rule(rule, f"rules[{index}]", namespaced=True)


def check_cluster_role(value: Json) -> Iterator[Cause]:
    """A ClusterRole."""
    for index, rule in enumerate(value.get("rules") or ()):
        yield from _check_rule(rule, f"rules[{index}]", namespaced=False)
    aggregation = value.get("aggregationRule")
    if aggregation is None:
        return
    selectors = aggregation.get("clusterRoleSelectors") or ()
    if not selectors:
        yield required(
            "aggregationRule.clusterRoleSelectors",
            "at least one clusterRoleSelector required if aggregationRule is non-nil",
        )
    for index, selector in enumerate(selectors):
        yield from selector_faults(selector, f"aggregationRule.clusterRoleSelectors[{index}]")


def _check_rule(rule: Json, path: str, *, namespaced: bool) -> Iterator[Cause]:
    if not rule.get("verbs"):
        yield required(f"{path}.verbs", "verbs must contain at least one value")
    urls = rule.get("nonResourceURLs")
    if urls:
        if namespaced:
            yield invalid(f"{path}.nonResourceURLs", urls, "namespaced rules cannot apply to non-resource URLs")
        if any(rule.get(name) for name in ("apiGroups", "resources", "resourceNames")):
            said = "rules cannot apply to both regular resources and non-resource URLs"
            yield invalid(f"{path}.nonResourceURLs", urls, said)
        return
    if not rule.get("apiGroups"):
        yield required(f"{path}.apiGroups", "resource rules must supply at least one api group")
    if not rule.get("resources"):
        yield required(f"{path}.resources", "resource rules must supply at least one resource")


def check_binding(value: Json) -> Iterator[Cause]:
    """A RoleBinding."""
    yield from _check_binding(value, ("Role", "ClusterRole"), namespaced=True)


def check_cluster_binding(value: Json) -> Iterator[Cause]:
    """A ClusterRoleBinding."""
    yield from _check_binding(value, ("ClusterRole",), namespaced=False)


def _check_binding(value: Json, kinds: tuple[str, ...], *, namespaced: bool) -> Iterator[Cause]:
    role = value["roleRef"]
    if role.get("apiGroup") != _GROUP:
        yield unsupported("roleRef.apiGroup", role.get("apiGroup", ""), (_GROUP,))
    if role.get("kind") not in kinds:
        yield unsupported("roleRef.kind", role.get("kind", ""), kinds)
    if not role.get("name"):
        yield required("roleRef.name")
    else:
        yield from named(role["name"], "roleRef.name", path_segment_faults)
    for index, subject in enumerate(value.get("subjects") or ()):
        yield from _check_subject(subject, f"subjects[{index}]", namespaced=namespaced)


def _check_subject(subject: Json, path: str, *, namespaced: bool) -> Iterator[Cause]:
    kind, name, group = subject.get("kind", ""), subject.get("name"), subject.get("apiGroup", "")
    if not name:
        yield required(f"{path}.name")
    if kind not in _SUBJECTS:
        yield unsupported(f"{path}.kind", kind, _SUBJECTS)
        return
    wanted = "" if kind == "ServiceAccount" else _GROUP
    if group != wanted:
        yield unsupported(f"{path}.apiGroup", group, (wanted,))
    if kind == "ServiceAccount":
        if name:
            yield from named(name, f"{path}.name")
        if not namespaced and not subject.get("namespace"):
            yield required(f"{path}.namespace")


def check_binding_update(value: Json, old: Json) -> Iterator[Cause]:
    """Which role is bound never changes."""
    role = value["roleRef"]
    if role != old["roleRef"]:
        shown = {"APIGroup": role.get("apiGroup", ""), "Kind": role.get("kind", ""), "Name": role.get("name", "")}
        yield invalid("roleRef", shown, "cannot change roleRef")
