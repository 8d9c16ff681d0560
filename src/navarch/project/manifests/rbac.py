"""`config/rbac`: the ServiceAccount of the operator, its roles, and roles for people who use its kinds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from navarch.operator.roles import Permission, roles_of
from navarch.project.manifests.model import DeploymentModel, Json, ManifestObject

OPERATOR_ROLES: Final = {
    "role": "manager-role",
    "leader_election_role": "leader-election-role",
    "metrics_auth_role": "metrics-auth-role",
}
"""The roles of the operator itself, by the names of their files."""
_API_VERSION: Final = "rbac.authorization.k8s.io/v1"
_REVIEWS: Final = frozenset(
    {("authentication.k8s.io", "tokenreviews"), ("authorization.k8s.io", "subjectaccessreviews")}
)
_LEASES: Final = ("coordination.k8s.io", "leases")
_READ: Final = ("get", "list", "watch")
_EDIT: Final = ("create", "delete", "get", "list", "patch", "update", "watch")


def rbac(
    model: DeploymentModel, permissions: Iterable[Permission], optional: Mapping[str, Sequence[Permission]]
) -> Iterator[ManifestObject]:
    """Yields the roles that grant the operator exactly these permissions, and those for its users.

    `optional` are permissions by the name of a role that nothing binds: administrators do, in the namespaces that they choose.
    """
    yield ManifestObject(
        "rbac/service_account.yaml",
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": model.metadata(model.named("controller-manager"))},
    )
    by_role: dict[str, list[Permission]] = {file: [] for file in OPERATOR_ROLES}
    for each in permissions:
        by_role[_role_file(each)].append(each)
    for file, granted in by_role.items():
        for manifest in roles_of(model.named(OPERATOR_ROLES[file]), granted, model.account):
            is_binding = "roleRef" in manifest
            yield ManifestObject(f"rbac/{file}{'_binding' if is_binding else ''}.yaml", _labelled(manifest, model))
    for role, unbound in optional.items():
        for manifest in roles_of(model.named(role), unbound):
            yield ManifestObject(f"rbac/{role.replace('-', '_')}_role.yaml", _labelled(manifest, model))
    yield ManifestObject("rbac/metrics_reader_role.yaml", _metrics_reader(model))
    yield from _roles_of_users(model)


def _role_file(permission: Permission) -> str:
    resource = (permission.group, permission.resource)
    if resource in _REVIEWS:
        return "metrics_auth_role"
    return "leader_election_role" if resource == _LEASES and permission.namespace else "role"


def _labelled(manifest: Json, model: DeploymentModel) -> Json:
    """Returns the role with labels; a binding is named after its role, as kubebuilder's are."""
    metadata = {**manifest["metadata"], "labels": model.labels}
    if "roleRef" in manifest:
        metadata["name"] = f"{metadata['name']}binding"
    return {**manifest, "metadata": metadata}


def _metrics_reader(model: DeploymentModel) -> Json:
    """Bind it to whoever scrapes the metrics."""
    return {
        "apiVersion": _API_VERSION,
        "kind": "ClusterRole",
        "metadata": model.metadata(model.named("metrics-reader"), namespaced=False),
        "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
    }


def _roles_of_users(model: DeploymentModel) -> Iterator[ManifestObject]:
    """Yields the roles of people; Kubernetes adds their rules to its own roles view, edit and admin."""
    kinds = {each.__kind__.resource: each.__kind__ for each in model.kinds}
    often = Counter(kind.kind for kind in kinds.values())
    for _, kind in sorted(kinds.items()):
        group, lower = kind.group.partition(".")[0], kind.kind.lower()
        name = f"{group}-{lower}" if often[kind.kind] > 1 else lower
        for role, verbs, target in (("admin", ("*",), "admin"), ("editor", _EDIT, "edit"), ("viewer", _READ, "view")):
            labels = {f"rbac.authorization.k8s.io/aggregate-to-{target}": "true"}
            manifest = {
                "apiVersion": _API_VERSION,
                "kind": "ClusterRole",
                "metadata": model.metadata(model.named(f"{name}-{role}-role"), labels, namespaced=False),
                "rules": [
                    {"apiGroups": [kind.group], "resources": [kind.plural], "verbs": list(verbs)},
                    {"apiGroups": [kind.group], "resources": [f"{kind.plural}/status"], "verbs": ["get"]},
                ],
            }
            yield ManifestObject(f"rbac/{group}_{lower}_{role}_role.yaml", manifest)
