"""Kinds that decide what is let in, about a group that nobody serves; and nodes."""

from __future__ import annotations

from typing import Any, Final

from differential.kinds import GONE, Edits, Kind
from differential.steps import Json

__all__ = ["ADMITTING"]

_GROUP: Final = "admissionregistration.k8s.io"
_RULE: Json = {
    "apiGroups": ["none.example.com"],
    "apiVersions": ["v1"],
    "operations": ["CREATE"],
    "resources": ["nones"],
}
_HOOK: Json = {
    "name": "a.example.com",
    "clientConfig": {"url": "https://example.com/x"},
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "rules": [_RULE],
}
_SERVICE: Json = {"service": {"name": "s", "namespace": "n"}}
_RULES: list[Any] = [
    [{**_RULE, "operations": ["*"]}],
    [{**_RULE, "operations": ["CREATE", "ODD"]}],
    [{**_RULE, "resources": ["nones/status"]}],
    [{**_RULE, "resources": ["*", "nones"]}],
    [{**_RULE, "resources": ["nones", "nones/*"]}],
    [{**_RULE, "scope": "Namespaced"}],
    [{**_RULE, "scope": "Odd"}],
    [{**_RULE, "apiVersions": []}],
    [{**_RULE, "apiGroups": ["*", "x"]}],
    [{}],
    [],
]
_CONDITIONS: list[Any] = [
    [{"name": "c", "expression": "true"}],
    [{"name": "c", "expression": "object.metadata.name == 'x'"}],
    [{"name": "c", "expression": "1"}],
    [{"name": "c", "expression": "nothing.at.all"}],
    [{"name": "c", "expression": "true"}, {"name": "c", "expression": "false"}],
    [{"name": "", "expression": ""}],
    [{"name": "bad name", "expression": "true"}],
]
_SELECTORS: list[Any] = [
    {"matchLabels": {"a": "b"}},
    {"matchLabels": {"a": "not valid!"}},
    {"matchExpressions": [{"key": "a", "operator": "Odd"}]},
    {},
]
_OF_HOOKS: Edits = {
    "webhooks": [[_HOOK, {**_HOOK, "name": "b.example.com"}], [_HOOK, _HOOK], [], GONE, [{}]],
    "webhooks.0.name": ["b.example.com", "short", "", "BAD.example.com"],
    "webhooks.0.clientConfig": [
        _SERVICE,
        {"service": {"name": "s", "namespace": "n", "path": "/a//b", "port": 0}},
        {"service": {"name": "", "namespace": ""}},
        {"url": "http://example.com"},
        {"url": "https://u:p@example.com/?q=1#f"},
        {"url": "nothing"},
        {"url": "https://example.com", **_SERVICE},
        {},
        {"url": "https://example.com", "caBundle": "bm90IGEgY2VydA=="},
    ],
    "webhooks.0.rules": _RULES,
    "webhooks.0.failurePolicy": ["Ignore", "Fail", "Odd"],
    "webhooks.0.matchPolicy": ["Exact", "Odd"],
    "webhooks.0.sideEffects": ["NoneOnDryRun", "Some", "Unknown", "Odd", GONE],
    "webhooks.0.timeoutSeconds": [5, 0, 31, -1],
    "webhooks.0.admissionReviewVersions": [["v1", "v1beta1"], ["v2"], [], ["v1", "v1"], ["bad version"]],
    "webhooks.0.namespaceSelector": _SELECTORS,
    "webhooks.0.objectSelector": _SELECTORS,
    "webhooks.0.matchConditions": _CONDITIONS,
}
_OF_POLICIES: Edits = {
    "spec.matchConstraints": [{"resourceRules": [_RULE], "matchPolicy": "Exact"}, {"resourceRules": []}, {}, GONE],
    "spec.matchConstraints.resourceRules": [
        [{**_RULE, "resourceNames": ["a"]}],
        [{**_RULE, "resourceNames": [""]}],
        *_RULES,
    ],
    "spec.matchConstraints.namespaceSelector": _SELECTORS,
    "spec.failurePolicy": ["Ignore", "Odd"],
    "spec.paramKind": [
        {"apiVersion": "v1", "kind": "ConfigMap"},
        {"apiVersion": "", "kind": ""},
        {"apiVersion": "a/b/c", "kind": "K"},
    ],
    "spec.matchConditions": _CONDITIONS,
    "spec.variables": [
        [{"name": "v", "expression": "1 + 1"}],
        [{"name": "v", "expression": "variables.v"}],
        [{"name": "1v", "expression": ""}],
        [{"name": "v", "expression": "1"}, {"name": "v", "expression": "2"}],
    ],
}

ADMITTING: Final = (
    Kind(
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        {"webhooks": [_HOOK]},
        _OF_HOOKS,
        group=_GROUP,
        namespaced=False,
    ),
    Kind(
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        {"webhooks": [_HOOK]},
        {**_OF_HOOKS, "webhooks.0.reinvocationPolicy": ["IfNeeded", "Odd"]},
        group=_GROUP,
        namespaced=False,
    ),
    Kind(
        "ValidatingAdmissionPolicy",
        "validatingadmissionpolicies",
        {"spec": {"matchConstraints": {"resourceRules": [_RULE]}, "validations": [{"expression": "true"}]}},
        {
            **_OF_POLICIES,
            "spec.validations": [
                [{"expression": "object.spec.x > 1", "message": "m", "reason": "Invalid"}],
                [{"expression": "object.spec.x > 1", "messageExpression": "'a' + string(object.spec.x)"}],
                [{"expression": "true", "messageExpression": "1"}],
                [{"expression": "true", "message": "a\nb", "reason": "Odd"}],
                [{"expression": "1 + "}],
                [{"expression": "'text'"}],
                [{"expression": "unheardOf == 1"}],
                [{"expression": ""}],
                [],
                GONE,
            ],
            "spec.auditAnnotations": [
                [{"key": "k", "valueExpression": "'v'"}],
                [{"key": "bad key", "valueExpression": "1"}],
                [{"key": "k", "valueExpression": "'v'"}, {"key": "k", "valueExpression": "'w'"}],
                [{}],
            ],
        },
        group=_GROUP,
        namespaced=False,
        status={
            "observedGeneration": [1],
            "typeChecking": [{"expressionWarnings": [{"fieldRef": "a", "warning": "w"}]}],
        },
    ),
    Kind(
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
        {"spec": {"policyName": "none", "validationActions": ["Deny"]}},
        {
            "spec.policyName": ["other", "", "BAD NAME"],
            "spec.validationActions": [["Warn", "Audit"], ["Deny", "Warn"], ["Odd"], [], ["Deny", "Deny"]],
            "spec.paramRef": [
                {"name": "n", "parameterNotFoundAction": "Deny"},
                {"selector": {}, "parameterNotFoundAction": "Allow", "namespace": "n"},
                {"name": "n", "selector": {}, "parameterNotFoundAction": "Odd"},
                {"parameterNotFoundAction": "Deny"},
                {"name": "n"},
                {"name": "BAD NAME", "parameterNotFoundAction": "Deny"},
            ],
            "spec.matchResources": [
                {"resourceRules": [_RULE]},
                {"namespaceSelector": {"matchLabels": {"a": "not valid!"}}},
                {"matchPolicy": "Odd"},
                {},
            ],
        },
        group=_GROUP,
        namespaced=False,
    ),
    Kind(
        "Node",
        "nodes",
        {"spec": {"unschedulable": True}},
        {
            "spec.taints": [
                [{"key": "a", "effect": "NoSchedule"}],
                [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule", "value": "b"}],
                [{"key": "bad key", "effect": "Odd"}],
                [{"key": "a", "value": "not valid!", "effect": "NoExecute"}],
                [],
            ],
            "spec.podCIDR": ["10.1.0.0/24", "bad", ""],
            "spec.podCIDRs": [["10.1.0.0/24"], ["10.1.0.0/24", "10.2.0.0/24"], ["bad"], ["fd00::/64"]],
            "spec.providerID": ["x://1", "x://2"],
            "spec.unschedulable": [False, True],
        },
        namespaced=False,
        status={
            "capacity": [{"cpu": "1", "pods": "10"}, {"cpu": "-1"}, {"cpu": "x"}],
            "conditions": [[{"type": "Ready", "status": "True"}]],
            "addresses": [
                [{"type": "InternalIP", "address": "10.0.0.1"}],
                [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "InternalIP", "address": "10.0.0.1"}],
            ],
        },
        fields=("metadata.name=a", "spec.unschedulable=true"),
    ),
)
