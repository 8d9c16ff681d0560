"""The words that requests about access are made of: paths, roles, bindings, reviews, and whom one acts as."""

from __future__ import annotations

from typing import Any

from cluster.access.asking import Headers, Json

RBAC = "/apis/rbac.authorization.k8s.io/v1"
RBAC_GROUP = "rbac.authorization.k8s.io"
ACCESS = "/apis/authorization.k8s.io/v1"
WHO = "/apis/authentication.k8s.io/v1"
ACCOUNTS = "/api/v1/namespaces/acc/serviceaccounts"
PODS = "/api/v1/namespaces/acc/pods"


def acting_as(user: str, *groups: str, uid: str = "", **extra: str) -> Headers:
    """The headers of whoever acts as somebody else."""
    headers = [("Impersonate-User", user)] if user else []
    headers += [("Impersonate-Group", group) for group in groups]
    headers += [("Impersonate-Uid", uid)] if uid else []
    return tuple(headers) + tuple((f"Impersonate-Extra-{key}", value) for key, value in extra.items())


def role(name: str, rules: list[Json], kind: str = "ClusterRole", **more: Any) -> Json:
    """A role without labels."""
    return {"apiVersion": f"{RBAC_GROUP}/v1", "kind": kind, "metadata": {"name": name}, "rules": rules, **more}


def binding(
    name: str, role_name: str, subject: Json, kind: str = "ClusterRoleBinding", of: str = "ClusterRole"
) -> Json:
    """A binding to one subject."""
    reference = {"apiGroup": RBAC_GROUP, "kind": of, "name": role_name}
    head = {"apiVersion": f"{RBAC_GROUP}/v1", "kind": kind, "metadata": {"name": name}}
    return {**head, "roleRef": reference, "subjects": [subject]}


def person(name: str) -> Json:
    """A user as a subject."""
    return {"kind": "User", "name": name, "apiGroup": RBAC_GROUP}


def rule(groups: list[str], resources: list[str], verbs: list[str], *names: str) -> Json:
    """A rule of a role, about these names or about all."""
    made: Json = {"apiGroups": groups, "resources": resources, "verbs": verbs}
    return {**made, "resourceNames": list(names)} if names else made


def review(kind: str, spec: Json | None, **more: Any) -> Json:
    """The body of a review."""
    group = "authentication" if kind in {"TokenReview", "SelfSubjectReview"} else "authorization"
    body: Json = {"apiVersion": f"{group}.k8s.io/v1", "kind": kind, **more}
    return body if spec is None else {**body, "spec": spec}
