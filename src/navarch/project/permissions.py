"""The permissions of a project's operator: what it declares and what its tests recorded, with the source of each.

`granted_permissions` is what `navarch generate rbac` grants, `role_text` renders a role with the sources as comments, and
`granted_to` reads the permissions back from manifests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from navarch.operator import Operator, needed_by
from navarch.operator.permission_sources import PermissionSource, sources_of
from navarch.operator.permissions import optional_roles
from navarch.operator.roles import Permission
from navarch.project.recorded_calls import RecordedCall, Recording
from navarch.project.yaml_text import dump

__all__ = [
    "GrantedPermission",
    "count_verbs",
    "covers",
    "declared_permissions",
    "granted_permissions",
    "granted_to",
    "optional_permissions",
    "required_by",
    "role_text",
]

_ROLES = frozenset({"ClusterRole", "Role"})
_ANY = "*"


@dataclass(frozen=True, slots=True)
class GrantedPermission:
    """A permission and its sources: declarations of the operator, and calls that tests recorded."""

    permission: Permission
    declared: tuple[PermissionSource, ...] = ()
    recorded: tuple[RecordedCall, ...] = ()

    @property
    def comment(self) -> str:
        """Returns the sources in one line."""
        called = dict.fromkeys(
            f"{call.place} ({call.test})" for call in self.recorded if call.line or not self.declared
        )
        return "; ".join([*dict.fromkeys(map(str, self.declared)), *called])


def granted_permissions(
    operator: Operator, recording: Recording | None, *, own_namespace: str
) -> list[GrantedPermission]:
    """Returns the permissions that the operator declares or that its tests recorded, sorted, each with all sources.

    `operator` has the namespaces and endpoints with which it is deployed. `own_namespace` is that of the operator, its
    Lease and its webhooks. Permissions of optional roles are included if the operator has namespaces by name.
    """
    optional = [permission for found in optional_roles(operator).values() for permission in found]
    wanted = set(declared_permissions(operator, own_namespace))
    if operator.namespaces.names:
        wanted.update(optional)
    calls = recording.calls if recording is not None else ()
    for call in calls:
        required = required_by(call, operator, own_namespace, wanted)
        wanted.update(each for each in required if not covers([*wanted, *optional], each))
    return _with_sources(operator, wanted, calls, own_namespace)


def optional_permissions(
    operator: Operator, recording: Recording | None, *, own_namespace: str
) -> dict[str, list[GrantedPermission]]:
    """Returns the permissions that administrators grant namespace by namespace, by their role: `Uses(..., role=...)`.

    An operator of some namespaces has none: they are among `granted_permissions`.
    """
    roles = {} if operator.namespaces.names else optional_roles(operator)
    calls = recording.calls if recording is not None else ()
    return {role: _with_sources(operator, found, calls, own_namespace) for role, found in roles.items()}


def _with_sources(
    operator: Operator, permissions: Iterable[Permission], calls: Iterable[RecordedCall], own_namespace: str
) -> list[GrantedPermission]:
    return [
        GrantedPermission(
            permission,
            sources_of(operator, permission, own_namespace=own_namespace),
            tuple(call for call in calls if call.permission == replace(permission, namespace=None)),
        )
        for permission in sorted(permissions, key=Permission.order)
    ]


def declared_permissions(operator: Operator, own_namespace: str) -> tuple[Permission, ...]:
    """Returns what follows from the declarations of an operator that is deployed in that namespace."""
    election = (operator.election.namespace or own_namespace) if operator.election else None
    return needed_by(operator, election_namespace=election, webhook_namespace=own_namespace)


def required_by(
    call: RecordedCall, operator: Operator, own_namespace: str, declared: Iterable[Permission]
) -> list[Permission]:
    """Returns the permissions that the call needs once the operator is deployed.

    The namespaces of a test mean nothing there: a call in some namespace needs the permission in all namespaces of the
    operator. For a call of the runtime itself the declared permission is enough.
    """
    permission = call.permission
    if not call.line and any(replace(each, namespace=None) == permission for each in declared):
        return []
    if call.where == "own":
        return [replace(permission, namespace=own_namespace)]
    names = sorted(operator.namespaces.names or ()) if call.where == "namespace" else []
    return [replace(permission, namespace=name) for name in names] or [permission]


def covers(granted: Iterable[Permission], wanted: Permission) -> bool:
    """Returns whether one of the granted permissions is enough: `*` stands for anything, the cluster for all namespaces."""
    return any(
        each.namespace in {None, wanted.namespace}
        and each.group in {_ANY, wanted.group}
        and each.verb in {_ANY, wanted.verb}
        and (each.rbac_resource in {_ANY, wanted.rbac_resource})
        for each in granted
    )


def granted_to(manifests: Iterable[Mapping[str, Any]], account: str) -> dict[Permission, str]:
    """Returns the permissions that these roles and bindings grant to a ServiceAccount, with the role of each.

    The account is named as the API server names it: `system:serviceaccount:<namespace>:<name>`. A ClusterRole that a
    RoleBinding binds counts in the namespace of the binding; a role that nothing binds to the account does not count.
    """
    known = list(manifests)
    roles = {_key(each["kind"], each): each for each in known if each.get("kind") in _ROLES}
    found: dict[Permission, str] = {}
    for binding in known:
        if binding.get("kind") not in {"ClusterRoleBinding", "RoleBinding"} or not _binds(binding, account):
            continue
        namespace = binding["metadata"].get("namespace") if binding["kind"] == "RoleBinding" else None
        reference = binding["roleRef"]
        place = (namespace or "") if reference["kind"] == "Role" else ""
        role = roles.get((reference["kind"], place, reference["name"]))
        for permission in _permissions(role, namespace) if role is not None else ():
            found.setdefault(permission, f"{reference['kind']} {reference['name']}")
    return found


def _key(kind: str, manifest: Mapping[str, Any]) -> tuple[str, str, str]:
    metadata = manifest["metadata"]
    return kind, metadata.get("namespace", "") if kind == "Role" else "", metadata["name"]


def _binds(binding: Mapping[str, Any], account: str) -> bool:
    return any(
        subject["kind"] == "ServiceAccount"
        and f"system:serviceaccount:{subject.get('namespace', '')}:{subject['name']}" == account
        for subject in binding.get("subjects") or ()
    )


def _permissions(role: Mapping[str, Any], namespace: str | None) -> Iterator[Permission]:
    for rule in role.get("rules") or ():
        for group, name, verb in product(rule.get("apiGroups", ()), rule.get("resources", ()), rule.get("verbs", ())):
            resource, _, subresource = name.partition("/")
            yield Permission(verb, group, resource, subresource, namespace)


def count_verbs(manifests: Iterable[Mapping[str, Any]]) -> int:
    """Returns how many verbs the roles among the manifests grant: each verb of each resource of each group once.

    >>> count_verbs([{"kind": "Role", "rules": [{"apiGroups": ["apps"], "resources": ["a", "b"], "verbs": ["get", "list"]}]}])
    4
    """
    roles = (each for each in manifests if each.get("kind") in _ROLES)
    return len({permission for role in roles for permission in _permissions(role, None)})


def role_text(manifest: Mapping[str, Any], granted: Sequence[GrantedPermission]) -> str:
    """Returns a role as YAML, with the sources of each rule as comments above it; any other manifest as it is.

    A permission of the role that is not in `granted`, such as one of a patch, has no comment.
    """
    if manifest.get("kind") not in _ROLES or not manifest.get("rules"):
        return dump(dict(manifest))
    namespace = manifest["metadata"].get("namespace") if manifest["kind"] == "Role" else None
    comments = {each.permission: each.comment for each in granted}
    head = dump({name: value for name, value in manifest.items() if name != "rules"})
    rules = (
        "".join(f"# {line}\n" for line in _rule_comment(rule, namespace, comments)) + dump([rule])
        for rule in manifest["rules"]
    )
    return f"{head}rules:\n{''.join(rules)}"


def _rule_comment(rule: Mapping[str, Any], namespace: str | None, comments: Mapping[Permission, str]) -> Iterator[str]:
    """Yields each resource of the rule, and below it the verbs that have the same sources."""
    by_resource: dict[str, dict[str, list[str]]] = {}
    for permission in _permissions({"rules": [rule]}, namespace):
        comment = comments.get(permission, "")
        if comment:
            by_resource.setdefault(permission.name, {}).setdefault(comment, []).append(permission.verb)
    for name, by_comment in by_resource.items():
        yield name
        yield from (f"  {', '.join(verbs)}: {comment}" for comment, verbs in by_comment.items())
