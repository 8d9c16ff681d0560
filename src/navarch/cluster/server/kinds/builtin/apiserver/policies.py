"""Checks of admission policies and their bindings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from navarch.api.names import DNS_1035_LABEL, DNS_SUBDOMAIN, LABEL_KEY
from navarch.cluster.server.kinds.builtin.apiserver.expressions import mutating_policy_faults, validating_policy_faults
from navarch.cluster.server.kinds.builtin.apiserver.webhooks import check_conditions, check_rule
from navarch.cluster.server.kinds.builtin.generic.checks import choice, unique
from navarch.cluster.server.kinds.builtin.generic.strategy import path_segment_faults
from navarch.cluster.server.objects.metadata import selector_faults
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_causes import duplicate, forbidden, invalid, required, unsupported
from navarch.errors import Cause

_REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized")
_TOLD_REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_ACTIONS: Final = ("Audit", "Deny", "Warn")
_ONE_OF_BOTH: Final = "validations or auditAnnotations must contain at least one item"
_TWICE: Final = (
    "must not contain both Deny and Warn (repeating the same validation failure information in the API response and "
    "headers serves no purpose)"
)
_CHANGES: Final = ("CREATE", "UPDATE")
_MUTATIONS: Final = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}
_IDENTIFIER: Final = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")


def check_validating_policy(value: Json) -> Iterator[Cause]:
    """A ValidatingAdmissionPolicy."""
    spec, name = value["spec"], value["metadata"].get("name", "")
    yield from choice(spec.get("failurePolicy"), "spec.failurePolicy", ("Fail", "Ignore"))
    yield from _check_parameter_kind(spec.get("paramKind"))
    yield from _check_constraints(spec.get("matchConstraints"), "spec.matchConstraints", needs_rules=True)
    yield from _check_variables(spec.get("variables") or [])
    if not spec.get("validations") and not spec.get("auditAnnotations"):
        yield required("spec.validations", _ONE_OF_BOTH)
        yield required("spec.auditAnnotations", _ONE_OF_BOTH)
    for index, validation in enumerate(spec.get("validations") or ()):
        yield from _check_validation(validation, f"spec.validations[{index}]")
    annotations = spec.get("auditAnnotations") or []
    yield from unique((each.get("key", ""), f"spec.auditAnnotations[{at}].key") for at, each in enumerate(annotations))
    for index, annotation in enumerate(annotations):
        yield from _check_annotation(annotation, f"spec.auditAnnotations[{index}]", name)
    yield from check_conditions(spec.get("matchConditions") or [], "spec.matchConditions")
    yield from validating_policy_faults(spec)


def check_mutating_policy(value: Json) -> Iterator[Cause]:
    """A MutatingAdmissionPolicy."""
    spec = value["spec"]
    yield from choice(spec.get("failurePolicy"), "spec.failurePolicy", ("Fail", "Ignore"))
    yield from _check_parameter_kind(spec.get("paramKind"))
    yield from _check_constraints(spec.get("matchConstraints"), "spec.matchConstraints", needs_rules=True)
    for rule in (spec.get("matchConstraints") or {}).get("resourceRules") or ():
        for operation in rule.get("operations") or ():
            if operation not in _CHANGES:
                yield unsupported("spec.matchConstraints.resourceRules.operations", operation, _CHANGES)
    yield from _check_variables(spec.get("variables") or [])
    yield from check_conditions(spec.get("matchConditions") or [], "spec.matchConditions")
    if not spec.get("mutations"):
        yield required("spec.mutations", "mutations must contain at least one item")
    for index, mutation in enumerate(spec.get("mutations") or ()):
        yield from _check_mutation(mutation, f"spec.mutations[{index}]")
    if not spec.get("reinvocationPolicy"):
        yield required("spec.reinvocationPolicy")
    else:
        yield from choice(spec["reinvocationPolicy"], "spec.reinvocationPolicy", ("IfNeeded", "Never"))
    yield from mutating_policy_faults(spec)


def _check_mutation(mutation: Json, path: str) -> Iterator[Cause]:
    kind = mutation.get("patchType", "")
    if not kind:
        yield required(f"{path}.patchType")
        return
    if kind not in _MUTATIONS:
        yield unsupported(f"{path}.patchType", kind, [*_MUTATIONS])
        return
    for other, name in _MUTATIONS.items():
        given = mutation.get(name)
        if other != kind and given is not None:
            yield invalid(f"{path}.{name}", f"{{{name}}}", f"must not be specified when patchType is {kind}")
        elif other == kind and given is None:
            yield required(f"{path}.{name}", f"must be specified when patchType is {kind}")
        elif other == kind and not (given or {}).get("expression", "").strip():
            yield required(f"{path}.{name}.expression", "expression is not specified")


def _check_parameter_kind(kind: Json | None) -> Iterator[Cause]:
    if kind is None:
        return
    path = "spec.paramKind"
    yield from _check_group_version(kind.get("apiVersion", ""), f"{path}.apiVersion")
    name = kind.get("kind", "")
    if not name:
        yield required(f"{path}.kind")
    elif faults := DNS_1035_LABEL.faults(name.lower()):
        said = f"may have mixed case, but should otherwise match: {','.join(faults)}"
        yield invalid(f"{path}.kind", name, said)


def _check_group_version(text: str, field: str) -> Iterator[Cause]:
    group, _, version = text.rpartition("/")
    if not text:
        yield required(field)
    elif "/" in group:
        yield invalid(field, text, f"unexpected GroupVersion string: {text}")
    else:
        if group and (faults := DNS_SUBDOMAIN.faults(group)):
            yield invalid(field, group, ",".join(faults))
        if not version:
            yield invalid(field, text, "version must be specified")
        elif faults := DNS_1035_LABEL.faults(version):
            yield invalid(field, version, ",".join(faults))


def _check_constraints(constraints: Json | None, path: str, *, needs_rules: bool) -> Iterator[Cause]:
    if constraints is None:
        if needs_rules:
            yield required(path)
        return
    rules = constraints.get("resourceRules") or ()
    if needs_rules and not rules:
        yield required(f"{path}.resourceRules")
    for index, rule in enumerate(rules):
        yield from check_rule(rule, f"{path}.resourceRules[{index}]")
    yield from choice(constraints.get("matchPolicy"), f"{path}.matchPolicy", ("Equivalent", "Exact"))
    for name in ("namespaceSelector", "objectSelector"):
        yield from selector_faults(constraints.get(name), f"{path}.{name}")


def _check_variables(variables: list[Json]) -> Iterator[Cause]:
    for index, variable in enumerate(variables):
        name, path = variable.get("name", ""), f"spec.variables[{index}]"
        if not variable.get("expression", "").strip():
            yield required(f"{path}.expression", "expression is not specified")
        if not name:
            yield required(f"{path}.name", "name is not specified")
        elif not _IDENTIFIER.fullmatch(name):
            yield invalid(f"{path}.name", name, "must be a valid CEL identifier")


def _check_validation(validation: Json, path: str) -> Iterator[Cause]:
    message = validation.get("message", "")
    if not validation.get("expression", "").strip():
        yield required(f"{path}.expression", "expression is not specified")
    if "\n" in message:
        yield invalid(f"{path}.message", message, "must not contain line breaks")
    reason = validation.get("reason")
    if reason is not None and reason not in _REASONS:
        yield unsupported(f"{path}.reason", reason, _TOLD_REASONS)


def _check_annotation(annotation: Json, path: str, policy: str) -> Iterator[Cause]:
    key = annotation.get("key", "")
    if not policy:
        yield invalid(f"{path}.key", key, "requires metadata.name be non-empty")
    else:
        whole = f"{policy}/{key}"
        yield from (invalid(f"{path}.key", whole, said) for said in LABEL_KEY.faults(whole))
    if not annotation.get("valueExpression", "").strip():
        yield required(f"{path}.valueExpression", "valueExpression is not specified")


def check_validating_binding(value: Json) -> Iterator[Cause]:
    """A ValidatingAdmissionPolicyBinding."""
    yield from check_mutating_binding(value)
    yield from _check_actions(value["spec"].get("validationActions") or [])


def check_mutating_binding(value: Json) -> Iterator[Cause]:
    """A MutatingAdmissionPolicyBinding."""
    spec = value["spec"]
    if not spec.get("policyName"):
        yield required("spec.policyName")
    else:
        yield from (
            invalid("spec.policyName", spec["policyName"], said) for said in DNS_SUBDOMAIN.faults(spec["policyName"])
        )
    yield from _check_parameters(spec.get("paramRef"))
    yield from _check_constraints(spec.get("matchResources"), "spec.matchResources", needs_rules=False)


def _check_parameters(reference: Json | None) -> Iterator[Cause]:
    if reference is None:
        return
    path = "spec.paramRef"
    name, selector = reference.get("name"), reference.get("selector")
    if name:
        yield from (invalid(f"{path}.name", name, said) for said in path_segment_faults(name))
    yield from selector_faults(selector, f"{path}.selector")
    if name and selector is not None:
        yield forbidden(f"{path}.name", "name and selector are mutually exclusive")
        yield forbidden(f"{path}.selector", "name and selector are mutually exclusive")
    elif not name and selector is None:
        yield required(path, "one of name or selector must be specified")
    action = reference.get("parameterNotFoundAction")
    if action is None:
        yield required(f"{path}.parameterNotFoundAction")
    else:
        yield from choice(action, f"{path}.parameterNotFoundAction", ("Deny", "Allow"))


def _check_actions(actions: list[str]) -> Iterator[Cause]:
    path, seen = "spec.validationActions", set[str]()
    if not actions:
        yield required(path, "at least one validation action is required")
    for index, action in enumerate(actions):
        if action not in _ACTIONS:
            yield unsupported(f"{path}[{index}]", action, _ACTIONS)
        elif action in seen:
            yield duplicate(f"{path}[{index}]", action)
        seen.add(action)
    if {"Deny", "Warn"} <= seen:
        yield invalid(path, actions, _TWICE)
