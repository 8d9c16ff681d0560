"""apiextensions/v1 of Kubernetes v1.36.4. Generated: `python -m kubernetes_api generate`."""

from datetime import datetime
from typing import Annotated, Any

from navarch.api import ListMap, Model, Object, field

__all__ = [
    "CustomResourceColumnDefinition",
    "CustomResourceConversion",
    "CustomResourceDefinition",
    "CustomResourceDefinitionCondition",
    "CustomResourceDefinitionNames",
    "CustomResourceDefinitionSpec",
    "CustomResourceDefinitionStatus",
    "CustomResourceDefinitionVersion",
    "CustomResourceSubresourceScale",
    "CustomResourceSubresourceStatus",
    "CustomResourceSubresources",
    "CustomResourceValidation",
    "ExternalDocumentation",
    "JSONSchemaProps",
    "SelectableField",
    "ServiceReference",
    "ValidationRule",
    "WebhookClientConfig",
    "WebhookConversion",
]


class CustomResourceColumnDefinition(Model):
    json_path: str
    name: str
    type: str
    description: str | None = None
    format: str | None = None
    priority: int | None = None


class ServiceReference(Model):
    name: str
    namespace: str
    path: str | None = None
    port: int | None = None


class WebhookClientConfig(Model):
    ca_bundle: bytes | None = None
    service: ServiceReference | None = None
    url: str | None = None


class WebhookConversion(Model):
    conversion_review_versions: list[str]
    client_config: WebhookClientConfig | None = None


class CustomResourceConversion(Model):
    strategy: str
    webhook: WebhookConversion | None = None


class CustomResourceDefinitionNames(Model):
    kind: str
    plural: str
    categories: list[str] | None = None
    list_kind: str | None = None
    short_names: list[str] | None = None
    singular: str | None = None


class CustomResourceSubresourceScale(Model):
    spec_replicas_path: str
    status_replicas_path: str
    label_selector_path: str | None = None


class CustomResourceSubresourceStatus(Model):
    pass


class CustomResourceSubresources(Model):
    scale: CustomResourceSubresourceScale | None = None
    status: CustomResourceSubresourceStatus | None = None


class ExternalDocumentation(Model):
    description: str | None = None
    url: str | None = None


class ValidationRule(Model):
    rule: str
    field_path: str | None = None
    message: str | None = None
    message_expression: str | None = None
    optional_old_self: bool | None = None
    reason: str | None = None


class JSONSchemaProps(Model):
    ref: str | None = field(name="$ref", default=None)
    schema: str | None = field(name="$schema", default=None)
    additional_items: "JSONSchemaProps | bool | None" = None
    additional_properties: "JSONSchemaProps | bool | None" = None
    all_of: "list[JSONSchemaProps] | None" = None
    any_of: "list[JSONSchemaProps] | None" = None
    default: Any = None
    definitions: "dict[str, JSONSchemaProps] | None" = None
    dependencies: "dict[str, JSONSchemaProps | list[str]] | None" = None
    description: str | None = None
    enum: list[Any] | None = None
    example: Any = None
    exclusive_maximum: bool | None = None
    exclusive_minimum: bool | None = None
    external_docs: ExternalDocumentation | None = None
    format: str | None = None
    id: str | None = None
    items: "JSONSchemaProps | list[JSONSchemaProps] | None" = None
    max_items: int | None = None
    max_length: int | None = None
    max_properties: int | None = None
    maximum: float | None = None
    min_items: int | None = None
    min_length: int | None = None
    min_properties: int | None = None
    minimum: float | None = None
    multiple_of: float | None = None
    not_: "JSONSchemaProps | None" = None
    nullable: bool | None = None
    one_of: "list[JSONSchemaProps] | None" = None
    pattern: str | None = None
    pattern_properties: "dict[str, JSONSchemaProps] | None" = None
    properties: "dict[str, JSONSchemaProps] | None" = None
    required: list[str] | None = None
    title: str | None = None
    type: str | None = None
    unique_items: bool | None = None
    x_kubernetes_embedded_resource: bool | None = field(name="x-kubernetes-embedded-resource", default=None)
    x_kubernetes_int_or_string: bool | None = field(name="x-kubernetes-int-or-string", default=None)
    x_kubernetes_list_map_keys: list[str] | None = field(name="x-kubernetes-list-map-keys", default=None)
    x_kubernetes_list_type: str | None = field(name="x-kubernetes-list-type", default=None)
    x_kubernetes_map_type: str | None = field(name="x-kubernetes-map-type", default=None)
    x_kubernetes_preserve_unknown_fields: bool | None = field(name="x-kubernetes-preserve-unknown-fields", default=None)
    x_kubernetes_validations: Annotated[list[ValidationRule], ListMap("rule")] | None = field(
        name="x-kubernetes-validations", default=None
    )


class CustomResourceValidation(Model):
    open_api_v3_schema: JSONSchemaProps | None = field(name="openAPIV3Schema", default=None)


class SelectableField(Model):
    json_path: str


class CustomResourceDefinitionVersion(Model):
    name: str
    served: bool
    storage: bool
    additional_printer_columns: list[CustomResourceColumnDefinition] | None = None
    deprecated: bool | None = None
    deprecation_warning: str | None = None
    schema: CustomResourceValidation | None = None
    selectable_fields: list[SelectableField] | None = None
    subresources: CustomResourceSubresources | None = None


class CustomResourceDefinitionSpec(Model):
    group: str
    names: CustomResourceDefinitionNames
    scope: str
    versions: list[CustomResourceDefinitionVersion]
    conversion: CustomResourceConversion | None = None
    preserve_unknown_fields: bool | None = None


class CustomResourceDefinitionCondition(Model):
    status: str
    type: str
    last_transition_time: datetime | None = None
    message: str | None = None
    observed_generation: int | None = None
    reason: str | None = None


class CustomResourceDefinitionStatus(Model):
    accepted_names: CustomResourceDefinitionNames | None = None
    conditions: Annotated[list[CustomResourceDefinitionCondition], ListMap("type")] | None = None
    observed_generation: int | None = None
    stored_versions: list[str] | None = None


class CustomResourceDefinition(
    Object,
    group="apiextensions.k8s.io",
    version="v1",
    plural="customresourcedefinitions",
    namespaced=False,
    short_names=("crd", "crds"),
    categories=("api-extensions",),
):
    spec: CustomResourceDefinitionSpec
    status: CustomResourceDefinitionStatus = field(default_factory=CustomResourceDefinitionStatus)
