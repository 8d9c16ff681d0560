"""flowcontrol/v1 of Kubernetes v1.36.4. Generated: `python -m kubernetes_api generate`."""

from datetime import datetime
from typing import Annotated

from navarch.api import ListMap, ListSet, Model, Object, field

__all__ = [
    "ExemptPriorityLevelConfiguration",
    "FlowDistinguisherMethod",
    "FlowSchema",
    "FlowSchemaCondition",
    "FlowSchemaSpec",
    "FlowSchemaStatus",
    "GroupSubject",
    "LimitResponse",
    "LimitedPriorityLevelConfiguration",
    "NonResourcePolicyRule",
    "PolicyRulesWithSubjects",
    "PriorityLevelConfiguration",
    "PriorityLevelConfigurationCondition",
    "PriorityLevelConfigurationReference",
    "PriorityLevelConfigurationSpec",
    "PriorityLevelConfigurationStatus",
    "QueuingConfiguration",
    "ResourcePolicyRule",
    "ServiceAccountSubject",
    "Subject",
    "UserSubject",
]


class ExemptPriorityLevelConfiguration(Model):
    lendable_percent: int | None = None
    nominal_concurrency_shares: int | None = None


class FlowDistinguisherMethod(Model):
    type: str


class NonResourcePolicyRule(Model):
    non_resource_urls: Annotated[list[str], ListSet()] = field(name="nonResourceURLs")
    verbs: Annotated[list[str], ListSet()]


class ResourcePolicyRule(Model):
    api_groups: Annotated[list[str], ListSet()]
    resources: Annotated[list[str], ListSet()]
    verbs: Annotated[list[str], ListSet()]
    cluster_scope: bool | None = None
    namespaces: Annotated[list[str], ListSet()] | None = None


class GroupSubject(Model):
    name: str


class ServiceAccountSubject(Model):
    name: str
    namespace: str


class UserSubject(Model):
    name: str


class Subject(Model):
    kind: str
    group: GroupSubject | None = None
    service_account: ServiceAccountSubject | None = None
    user: UserSubject | None = None


class PolicyRulesWithSubjects(Model):
    subjects: list[Subject]
    non_resource_rules: list[NonResourcePolicyRule] | None = None
    resource_rules: list[ResourcePolicyRule] | None = None


class PriorityLevelConfigurationReference(Model):
    name: str


class FlowSchemaSpec(Model):
    priority_level_configuration: PriorityLevelConfigurationReference
    distinguisher_method: FlowDistinguisherMethod | None = None
    matching_precedence: int | None = None
    rules: list[PolicyRulesWithSubjects] | None = None


class FlowSchemaCondition(Model):
    last_transition_time: datetime | None = None
    message: str | None = None
    reason: str | None = None
    status: str | None = None
    type: str | None = None


class FlowSchemaStatus(Model):
    conditions: Annotated[list[FlowSchemaCondition], ListMap("type")] | None = None


class FlowSchema(Object, group="flowcontrol.apiserver.k8s.io", version="v1", plural="flowschemas", namespaced=False):
    spec: FlowSchemaSpec
    status: FlowSchemaStatus = field(default_factory=FlowSchemaStatus)


class QueuingConfiguration(Model):
    hand_size: int | None = None
    queue_length_limit: int | None = None
    queues: int | None = None


class LimitResponse(Model):
    type: str
    queuing: QueuingConfiguration | None = None


class LimitedPriorityLevelConfiguration(Model):
    borrowing_limit_percent: int | None = None
    lendable_percent: int | None = None
    limit_response: LimitResponse | None = None
    nominal_concurrency_shares: int | None = None


class PriorityLevelConfigurationSpec(Model):
    type: str
    exempt: ExemptPriorityLevelConfiguration | None = None
    limited: LimitedPriorityLevelConfiguration | None = None


class PriorityLevelConfigurationCondition(Model):
    last_transition_time: datetime | None = None
    message: str | None = None
    reason: str | None = None
    status: str | None = None
    type: str | None = None


class PriorityLevelConfigurationStatus(Model):
    conditions: Annotated[list[PriorityLevelConfigurationCondition], ListMap("type")] | None = None


class PriorityLevelConfiguration(
    Object,
    group="flowcontrol.apiserver.k8s.io",
    version="v1",
    plural="prioritylevelconfigurations",
    namespaced=False,
):
    spec: PriorityLevelConfigurationSpec
    status: PriorityLevelConfigurationStatus = field(default_factory=PriorityLevelConfigurationStatus)
