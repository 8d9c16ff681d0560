"""meta/v1 of Kubernetes v1.36.4. Generated: `python -m kubernetes_api generate`."""

from navarch.api import Model

__all__ = [
    "DeleteOptions",
    "FieldSelectorRequirement",
    "LabelSelector",
    "LabelSelectorRequirement",
    "Preconditions",
]


class Preconditions(Model):
    resource_version: str | None = None
    uid: str | None = None


class DeleteOptions(Model):
    api_version: str | None = None
    dry_run: list[str] | None = None
    grace_period_seconds: int | None = None
    ignore_store_read_error_with_cluster_breaking_potential: bool | None = None
    kind: str | None = None
    orphan_dependents: bool | None = None
    preconditions: Preconditions | None = None
    propagation_policy: str | None = None


class FieldSelectorRequirement(Model):
    key: str
    operator: str
    values: list[str] | None = None


class LabelSelectorRequirement(Model):
    key: str
    operator: str
    values: list[str] | None = None


class LabelSelector(Model):
    match_expressions: list[LabelSelectorRequirement] | None = None
    match_labels: dict[str, str] | None = None
