"""Roles and role bindings: rules, defaults, checks and columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from navarch.cluster.server.kinds.builtin.generic.checks import named
from navarch.cluster.server.kinds.builtin.generic.columns import Ages, name_of
from navarch.cluster.server.kinds.builtin.generic.strategy import Rules, path_segment_faults
from navarch.cluster.server.objects.metadata import selector_faults
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_causes import invalid, required, unsupported
from navarch.errors import Cause

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
    """Refuses a changed roleRef."""
    role = value["roleRef"]
    if role != old["roleRef"]:
        shown = {"APIGroup": role.get("apiGroup", ""), "Kind": role.get("kind", ""), "Name": role.get("name", "")}
        yield invalid("roleRef", shown, "cannot change roleRef")


RBAC: Final = "rbac.authorization.k8s.io"
_SUBJECT_GROUPS: Final = {"User": RBAC, "Group": RBAC}


def default_binding(value: Json) -> None:
    """A RoleBinding or ClusterRoleBinding."""
    role = value["roleRef"]
    role["apiGroup"] = role.get("apiGroup") or RBAC
    for subject in value.get("subjects") or ():
        if not subject.get("apiGroup") and (group := _SUBJECT_GROUPS.get(subject.get("kind", ""))):
            subject["apiGroup"] = group


def binding_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, role, age; users, groups, service accounts."""
    role = value.get("roleRef") or {}
    subjects = value.get("subjects") or ()
    users = [each.get("name", "") for each in subjects if each.get("kind") == "User"]
    groups = [each.get("name", "") for each in subjects if each.get("kind") == "Group"]
    accounts = [
        f"{each.get('namespace', '')}/{each.get('name', '')}"
        for each in subjects
        if each.get("kind") == "ServiceAccount"
    ]
    shown = (", ".join(each) for each in (users, groups, accounts))
    return [name_of(value), f"{role.get('kind', '')}/{role.get('name', '')}", ages.of(value), *shown]


RULES: Final[dict[tuple[str, str], Rules]] = {
    ("rbac.authorization.k8s.io/v1", "roles"): Rules(
        check=check_role,
        name_faults=path_segment_faults,
        empty_lists=(("rules",),),
        creates_on_update=True,
    ),
    ("rbac.authorization.k8s.io/v1", "clusterroles"): Rules(
        check=check_cluster_role,
        name_faults=path_segment_faults,
        empty_lists=(("rules",),),
        creates_on_update=True,
    ),
    ("rbac.authorization.k8s.io/v1", "rolebindings"): Rules(
        default=default_binding,
        check=check_binding,
        check_update=check_binding_update,
        name_faults=path_segment_faults,
        cells=binding_cells,
        creates_on_update=True,
    ),
    ("rbac.authorization.k8s.io/v1", "clusterrolebindings"): Rules(
        default=default_binding,
        check=check_cluster_binding,
        check_update=check_binding_update,
        name_faults=path_segment_faults,
        cells=binding_cells,
        creates_on_update=True,
    ),
}
