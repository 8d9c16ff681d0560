"""authorization/v1 of Kubernetes v1.36.4. Generated: `python -m kubernetes_api generate`."""

from navarch.api import Model, Object, field
from navarch.k8s.meta.v1 import FieldSelectorRequirement, LabelSelectorRequirement

__all__ = [
    "FieldSelectorAttributes",
    "LabelSelectorAttributes",
    "LocalSubjectAccessReview",
    "NonResourceAttributes",
    "NonResourceRule",
    "ResourceAttributes",
    "ResourceRule",
    "SelfSubjectAccessReview",
    "SelfSubjectAccessReviewSpec",
    "SelfSubjectRulesReview",
    "SelfSubjectRulesReviewSpec",
    "SubjectAccessReview",
    "SubjectAccessReviewSpec",
    "SubjectAccessReviewStatus",
    "SubjectRulesReviewStatus",
]


class FieldSelectorAttributes(Model):
    raw_selector: str | None = None
    requirements: list[FieldSelectorRequirement] | None = None


class LabelSelectorAttributes(Model):
    raw_selector: str | None = None
    requirements: list[LabelSelectorRequirement] | None = None


class NonResourceAttributes(Model):
    path: str | None = None
    verb: str | None = None


class ResourceAttributes(Model):
    field_selector: FieldSelectorAttributes | None = None
    group: str | None = None
    label_selector: LabelSelectorAttributes | None = None
    name: str | None = None
    namespace: str | None = None
    resource: str | None = None
    subresource: str | None = None
    verb: str | None = None
    version: str | None = None


class SubjectAccessReviewSpec(Model):
    extra: dict[str, list[str]] | None = None
    groups: list[str] | None = None
    non_resource_attributes: NonResourceAttributes | None = None
    resource_attributes: ResourceAttributes | None = None
    uid: str | None = None
    user: str | None = None


class SubjectAccessReviewStatus(Model):
    allowed: bool = False
    denied: bool | None = None
    evaluation_error: str | None = None
    reason: str | None = None


class LocalSubjectAccessReview(
    Object,
    group="authorization.k8s.io",
    version="v1",
    plural="localsubjectaccessreviews",
    has_status=False,
):
    spec: SubjectAccessReviewSpec = field(default_factory=SubjectAccessReviewSpec)
    status: SubjectAccessReviewStatus = field(default_factory=SubjectAccessReviewStatus)


class NonResourceRule(Model):
    verbs: list[str]
    non_resource_urls: list[str] | None = field(name="nonResourceURLs", default=None)


class ResourceRule(Model):
    verbs: list[str]
    api_groups: list[str] | None = None
    resource_names: list[str] | None = None
    resources: list[str] | None = None


class SelfSubjectAccessReviewSpec(Model):
    non_resource_attributes: NonResourceAttributes | None = None
    resource_attributes: ResourceAttributes | None = None


class SelfSubjectAccessReview(
    Object,
    group="authorization.k8s.io",
    version="v1",
    plural="selfsubjectaccessreviews",
    namespaced=False,
    has_status=False,
):
    spec: SelfSubjectAccessReviewSpec = field(default_factory=SelfSubjectAccessReviewSpec)
    status: SubjectAccessReviewStatus = field(default_factory=SubjectAccessReviewStatus)


class SelfSubjectRulesReviewSpec(Model):
    namespace: str | None = None


class SubjectRulesReviewStatus(Model):
    evaluation_error: str | None = None
    incomplete: bool = False
    non_resource_rules: list[NonResourceRule] = field(default_factory=list)
    resource_rules: list[ResourceRule] = field(default_factory=list)


class SelfSubjectRulesReview(
    Object,
    group="authorization.k8s.io",
    version="v1",
    plural="selfsubjectrulesreviews",
    namespaced=False,
    has_status=False,
):
    spec: SelfSubjectRulesReviewSpec = field(default_factory=SelfSubjectRulesReviewSpec)
    status: SubjectRulesReviewStatus = field(default_factory=SubjectRulesReviewStatus)


class SubjectAccessReview(
    Object,
    group="authorization.k8s.io",
    version="v1",
    plural="subjectaccessreviews",
    namespaced=False,
    has_status=False,
):
    spec: SubjectAccessReviewSpec = field(default_factory=SubjectAccessReviewSpec)
    status: SubjectAccessReviewStatus = field(default_factory=SubjectAccessReviewStatus)
