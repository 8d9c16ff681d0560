"""admissionregistration/v1 of Kubernetes v1.36.4. Generated: `python -m kubernetes_api generate`."""

from typing import Annotated

from navarch.api import Condition, ListMap, ListSet, Model, Object, field
from navarch.k8s.meta.v1 import LabelSelector

__all__ = [
    "ApplyConfiguration",
    "AuditAnnotation",
    "ExpressionWarning",
    "JSONPatch",
    "MatchCondition",
    "MatchResources",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicyBindingSpec",
    "MutatingAdmissionPolicySpec",
    "MutatingWebhook",
    "MutatingWebhookConfiguration",
    "Mutation",
    "NamedRuleWithOperations",
    "ParamKind",
    "ParamRef",
    "RuleWithOperations",
    "ServiceReference",
    "TypeChecking",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingAdmissionPolicyBindingSpec",
    "ValidatingAdmissionPolicySpec",
    "ValidatingAdmissionPolicyStatus",
    "ValidatingWebhook",
    "ValidatingWebhookConfiguration",
    "Validation",
    "Variable",
    "WebhookClientConfig",
]


class ApplyConfiguration(Model):
    expression: str | None = None


class AuditAnnotation(Model):
    key: str
    value_expression: str


class ExpressionWarning(Model):
    field_ref: str
    warning: str


class JSONPatch(Model):
    expression: str | None = None


class MatchCondition(Model):
    expression: str
    name: str


class NamedRuleWithOperations(Model):
    api_groups: list[str] | None = None
    api_versions: list[str] | None = None
    operations: list[str] | None = None
    resource_names: list[str] | None = None
    resources: list[str] | None = None
    scope: str | None = None


class MatchResources(Model):
    exclude_resource_rules: list[NamedRuleWithOperations] | None = None
    match_policy: str | None = None
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    resource_rules: list[NamedRuleWithOperations] | None = None


class Mutation(Model):
    patch_type: str
    apply_configuration: ApplyConfiguration | None = None
    json_patch: JSONPatch | None = None


class ParamKind(Model):
    api_version: str | None = None
    kind: str | None = None


class Variable(Model):
    expression: str
    name: str


class MutatingAdmissionPolicySpec(Model):
    failure_policy: str | None = None
    match_conditions: Annotated[list[MatchCondition], ListMap("name")] | None = None
    match_constraints: MatchResources | None = None
    mutations: list[Mutation] | None = None
    param_kind: ParamKind | None = None
    reinvocation_policy: str | None = None
    variables: list[Variable] | None = None


class MutatingAdmissionPolicy(
    Object,
    group="admissionregistration.k8s.io",
    version="v1",
    plural="mutatingadmissionpolicies",
    namespaced=False,
    has_status=False,
    categories=("api-extensions",),
):
    spec: MutatingAdmissionPolicySpec = field(default_factory=MutatingAdmissionPolicySpec)


class ParamRef(Model):
    name: str | None = None
    namespace: str | None = None
    parameter_not_found_action: str | None = None
    selector: LabelSelector | None = None


class MutatingAdmissionPolicyBindingSpec(Model):
    match_resources: MatchResources | None = None
    param_ref: ParamRef | None = None
    policy_name: str | None = None


class MutatingAdmissionPolicyBinding(
    Object,
    group="admissionregistration.k8s.io",
    version="v1",
    plural="mutatingadmissionpolicybindings",
    namespaced=False,
    has_status=False,
    categories=("api-extensions",),
):
    spec: MutatingAdmissionPolicyBindingSpec = field(default_factory=MutatingAdmissionPolicyBindingSpec)


class RuleWithOperations(Model):
    api_groups: list[str] | None = None
    api_versions: list[str] | None = None
    operations: list[str] | None = None
    resources: list[str] | None = None
    scope: str | None = None


class ServiceReference(Model):
    name: str
    namespace: str
    path: str | None = None
    port: int | None = None


class WebhookClientConfig(Model):
    ca_bundle: bytes | None = None
    service: ServiceReference | None = None
    url: str | None = None


class MutatingWebhook(Model):
    admission_review_versions: list[str]
    client_config: WebhookClientConfig
    name: str
    side_effects: str
    failure_policy: str | None = None
    match_conditions: Annotated[list[MatchCondition], ListMap("name")] | None = None
    match_policy: str | None = None
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    reinvocation_policy: str | None = None
    rules: list[RuleWithOperations] | None = None
    timeout_seconds: int | None = None


class MutatingWebhookConfiguration(
    Object,
    group="admissionregistration.k8s.io",
    version="v1",
    plural="mutatingwebhookconfigurations",
    namespaced=False,
    has_status=False,
    categories=("api-extensions",),
):
    webhooks: Annotated[list[MutatingWebhook], ListMap("name")] | None = None


class TypeChecking(Model):
    expression_warnings: list[ExpressionWarning] | None = None


class Validation(Model):
    expression: str
    message: str | None = None
    message_expression: str | None = None
    reason: str | None = None


class ValidatingAdmissionPolicySpec(Model):
    audit_annotations: list[AuditAnnotation] | None = None
    failure_policy: str | None = None
    match_conditions: Annotated[list[MatchCondition], ListMap("name")] | None = None
    match_constraints: MatchResources | None = None
    param_kind: ParamKind | None = None
    validations: list[Validation] | None = None
    variables: Annotated[list[Variable], ListMap("name")] | None = None


class ValidatingAdmissionPolicyStatus(Model):
    conditions: Annotated[list[Condition], ListMap("type")] | None = None
    observed_generation: int | None = None
    type_checking: TypeChecking | None = None


class ValidatingAdmissionPolicy(
    Object,
    group="admissionregistration.k8s.io",
    version="v1",
    plural="validatingadmissionpolicies",
    namespaced=False,
    categories=("api-extensions",),
):
    spec: ValidatingAdmissionPolicySpec = field(default_factory=ValidatingAdmissionPolicySpec)
    status: ValidatingAdmissionPolicyStatus = field(default_factory=ValidatingAdmissionPolicyStatus)


class ValidatingAdmissionPolicyBindingSpec(Model):
    policy_name: str
    validation_actions: Annotated[list[str], ListSet()]
    match_resources: MatchResources | None = None
    param_ref: ParamRef | None = None


class ValidatingAdmissionPolicyBinding(
    Object,
    group="admissionregistration.k8s.io",
    version="v1",
    plural="validatingadmissionpolicybindings",
    namespaced=False,
    has_status=False,
    categories=("api-extensions",),
):
    spec: ValidatingAdmissionPolicyBindingSpec


class ValidatingWebhook(Model):
    admission_review_versions: list[str]
    client_config: WebhookClientConfig
    name: str
    side_effects: str
    failure_policy: str | None = None
    match_conditions: Annotated[list[MatchCondition], ListMap("name")] | None = None
    match_policy: str | None = None
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    rules: list[RuleWithOperations] | None = None
    timeout_seconds: int | None = None


class ValidatingWebhookConfiguration(
    Object,
    group="admissionregistration.k8s.io",
    version="v1",
    plural="validatingwebhookconfigurations",
    namespaced=False,
    has_status=False,
    categories=("api-extensions",),
):
    webhooks: Annotated[list[ValidatingWebhook], ListMap("name")] | None = None
