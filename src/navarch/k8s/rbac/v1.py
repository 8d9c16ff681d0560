"""rbac/v1 of Kubernetes v1.36.4. Generated: `python -m kubernetes_api generate`."""

from navarch.api import Model, Object, field
from navarch.k8s.meta.v1 import LabelSelector

__all__ = [
    "AggregationRule",
    "ClusterRole",
    "ClusterRoleBinding",
    "PolicyRule",
    "Role",
    "RoleBinding",
    "RoleRef",
    "Subject",
]


class AggregationRule(Model):
    cluster_role_selectors: list[LabelSelector] | None = None


class PolicyRule(Model):
    verbs: list[str]
    api_groups: list[str] | None = None
    non_resource_urls: list[str] | None = field(name="nonResourceURLs", default=None)
    resource_names: list[str] | None = None
    resources: list[str] | None = None


class ClusterRole(
    Object,
    group="rbac.authorization.k8s.io",
    version="v1",
    plural="clusterroles",
    namespaced=False,
    has_status=False,
):
    aggregation_rule: AggregationRule | None = None
    rules: list[PolicyRule] | None = None


class RoleRef(Model):
    kind: str
    name: str
    api_group: str | None = None


class Subject(Model):
    kind: str
    name: str
    api_group: str | None = None
    namespace: str | None = None


class ClusterRoleBinding(
    Object,
    group="rbac.authorization.k8s.io",
    version="v1",
    plural="clusterrolebindings",
    namespaced=False,
    has_status=False,
):
    role_ref: RoleRef
    subjects: list[Subject] | None = None


class Role(Object, group="rbac.authorization.k8s.io", version="v1", plural="roles", has_status=False):
    rules: list[PolicyRule] | None = None


class RoleBinding(Object, group="rbac.authorization.k8s.io", version="v1", plural="rolebindings", has_status=False):
    role_ref: RoleRef
    subjects: list[Subject] | None = None
