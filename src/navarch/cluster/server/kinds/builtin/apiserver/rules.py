"""Rules of webhook configurations, admission policies, flow control and APIServices: defaults and columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from navarch.cluster.server.kinds.builtin.apiserver.policies import (
    check_mutating_binding,
    check_mutating_policy,
    check_validating_binding,
    check_validating_policy,
)
from navarch.cluster.server.kinds.builtin.apiserver.webhooks import check_mutating_webhooks, check_webhooks
from navarch.cluster.server.kinds.builtin.generic.columns import NONE, UNSET, Ages, count_of, go_selector, name_of, row
from navarch.cluster.server.kinds.builtin.generic.strategy import Rules, path_segment_faults
from navarch.cluster.server.wire.request import Json


def default_webhooks(value: Json) -> None:
    """A ValidatingWebhookConfiguration."""
    for webhook in value.get("webhooks") or ():
        webhook.setdefault("failurePolicy", "Fail")
        _default_matching(webhook)
        webhook.setdefault("timeoutSeconds", 10)
        _default_scopes(webhook.get("rules"))
        if (service := webhook["clientConfig"].get("service")) is not None:
            service.setdefault("port", 443)


def default_mutating_webhooks(value: Json) -> None:
    """A MutatingWebhookConfiguration."""
    default_webhooks(value)
    for webhook in value.get("webhooks") or ():
        webhook.setdefault("reinvocationPolicy", "Never")


def _default_matching(match: Json) -> None:
    match.setdefault("matchPolicy", "Equivalent")
    match.setdefault("namespaceSelector", {})
    match.setdefault("objectSelector", {})


def _default_scopes(rules: list[Json] | None) -> None:
    for rule in rules or ():
        rule.setdefault("scope", "*")


def default_policy(value: Json) -> None:
    """A ValidatingAdmissionPolicy or MutatingAdmissionPolicy."""
    value["spec"].setdefault("failurePolicy", "Fail")
    _default_match_resources(value["spec"].get("matchConstraints"))


def default_policy_binding(value: Json) -> None:
    """A binding of such a policy."""
    _default_match_resources(value["spec"].get("matchResources"))


def _default_match_resources(match: Json | None) -> None:
    if match is not None:
        _default_matching(match)
        _default_scopes(match.get("resourceRules"))
        _default_scopes(match.get("excludeResourceRules"))


def default_flow_schema(value: Json) -> None:
    """A FlowSchema."""
    spec = value["spec"]
    spec["matchingPrecedence"] = spec.get("matchingPrecedence") or 1000


def default_priority_level(value: Json) -> None:
    """A PriorityLevelConfiguration."""
    spec = value["spec"]
    if (exempt := spec.get("exempt")) is not None:
        exempt.setdefault("nominalConcurrencyShares", 0)
        exempt.setdefault("lendablePercent", 0)
    if (limited := spec.get("limited")) is not None:
        if limited.get("nominalConcurrencyShares") is None:
            limited["nominalConcurrencyShares"] = 30
        limited.setdefault("lendablePercent", 0)
        if (queuing := limited["limitResponse"].get("queuing")) is not None:
            for name, most in (("queues", 64), ("handSize", 8), ("queueLengthLimit", 50)):
                queuing[name] = queuing.get(name) or most


def default_api_service(value: Json) -> None:
    """An APIService."""
    if (service := value["spec"].get("service")) is not None:
        service.setdefault("port", 443)


def policy_cells(field: str) -> Callable[[Json, Ages], list[Any]]:
    """Name, how many of what it does, kind of its parameters, age."""
    return row(lambda value: len(value["spec"].get(field) or ()), _parameter_kind)


def _parameter_kind(value: Json) -> str:
    kind = value["spec"].get("paramKind")
    return f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else UNSET


def policy_binding_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, policy, parameters, age."""
    reference = value["spec"].get("paramRef")
    shown = UNSET
    if reference and reference.get("name"):
        shown = f"{reference.get('namespace') or '*'}/{reference['name']}"
    elif reference and reference.get("selector") is not None:
        shown = go_selector(reference["selector"])
    return [name_of(value), value["spec"].get("policyName", ""), shown, ages.of(value)]


def flow_schema_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, level, precedence, distinguisher, age, whether its level is missing."""
    spec = value["spec"]
    conditions = value.get("status", {}).get("conditions") or ()
    missing = next((each.get("status", "") for each in conditions if each.get("type") == "Dangling"), "?")
    return [
        name_of(value),
        spec.get("priorityLevelConfiguration", {}).get("name", ""),
        spec.get("matchingPrecedence", 0),
        (spec.get("distinguisherMethod") or {}).get("type", NONE),
        ages.of(value),
        missing,
    ]


def priority_level_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, type, shares, queues, hand size, length of queues, age."""
    limited = value["spec"].get("limited") or {}
    queuing = (limited.get("limitResponse") or {}).get("queuing") or {}
    return [
        name_of(value),
        value["spec"].get("type", ""),
        limited.get("nominalConcurrencyShares", NONE),
        *(queuing.get(field, NONE) for field in ("queues", "handSize", "queueLengthLimit")),
        ages.of(value),
    ]


def api_service_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, service, availability, age."""
    service = value["spec"].get("service")
    shown = f"{service.get('namespace', '')}/{service.get('name', '')}" if service else "Local"
    conditions = value.get("status", {}).get("conditions") or ()
    available = next((each for each in conditions if each.get("type") == "Available"), None)
    said = "Unknown" if available is None else available.get("status", "")
    if available is not None and said != "True":
        said = f"{said} ({available.get('reason', '')})"
    return [name_of(value), shown, said, ages.of(value)]


_POLICY: Final = Rules(
    default=default_policy,
    counts_generation=True,
    allows_unconditional_update=False,
    qualifies_finalizers=False,
)
_POLICY_BINDING: Final = Rules(
    default=default_policy_binding,
    counts_generation=True,
    allows_unconditional_update=False,
    qualifies_finalizers=False,
)

RULES: Final[dict[tuple[str, str], Rules]] = {
    ("admissionregistration.k8s.io/v1", "validatingwebhookconfigurations"): Rules(
        default=default_webhooks,
        check=check_webhooks,
        counts_generation=True,
        allows_unconditional_update=False,
        qualifies_finalizers=False,
        cells=row(count_of("webhooks")),
    ),
    ("admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations"): Rules(
        default=default_mutating_webhooks,
        check=check_mutating_webhooks,
        counts_generation=True,
        allows_unconditional_update=False,
        qualifies_finalizers=False,
        cells=row(count_of("webhooks")),
    ),
    ("admissionregistration.k8s.io/v1", "validatingadmissionpolicies"): replace(
        _POLICY,
        check=check_validating_policy,
        cells=policy_cells("validations"),
    ),
    ("admissionregistration.k8s.io/v1", "mutatingadmissionpolicies"): replace(
        _POLICY,
        check=check_mutating_policy,
        cells=policy_cells("mutations"),
        stored_as=("admissionregistration.k8s.io", "v1beta1"),
    ),
    ("admissionregistration.k8s.io/v1", "validatingadmissionpolicybindings"): replace(
        _POLICY_BINDING,
        check=check_validating_binding,
        cells=policy_binding_cells,
    ),
    ("admissionregistration.k8s.io/v1", "mutatingadmissionpolicybindings"): replace(
        _POLICY_BINDING,
        check=check_mutating_binding,
        cells=policy_binding_cells,
        stored_as=("admissionregistration.k8s.io", "v1beta1"),
    ),
    ("flowcontrol.apiserver.k8s.io/v1", "flowschemas"): Rules(
        default=default_flow_schema,
        counts_generation=True,
        cells=flow_schema_cells,
    ),
    ("flowcontrol.apiserver.k8s.io/v1", "prioritylevelconfigurations"): Rules(
        default=default_priority_level,
        counts_generation=True,
        cells=priority_level_cells,
    ),
    ("apiregistration.k8s.io/v1", "apiservices"): Rules(
        default=default_api_service,
        name_faults=path_segment_faults,
        qualifies_finalizers=False,
        cells=api_service_cells,
        storage_prefix="apiregistration.k8s.io/apiservices",
    ),
    ("apiextensions.k8s.io/v1", "customresourcedefinitions"): Rules(
        storage_prefix="apiextensions.k8s.io/customresourcedefinitions",
        stored_as=("apiextensions.k8s.io", "v1beta1"),
    ),
}
