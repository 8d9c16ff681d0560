"""What is refused of webhook configurations, admission policies and definitions, and in which fields."""

from __future__ import annotations

from typing import Any

import pytest

from navarch.api import Dynamic
from navarch.client import Client
from navarch.errors import Invalid

_ADMISSION = "admissionregistration.k8s.io/v1"
_RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}


def _webhook(**changes: Any) -> Dynamic:
    hook = {
        "name": "hook.example.com",
        "clientConfig": {"url": "https://example.com"},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "rules": [_RULE],
    }
    head = {"apiVersion": _ADMISSION, "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "refused"}}
    return Dynamic({**head, "webhooks": [{**hook, **changes}]})


def _policy(**spec: Any) -> Dynamic:
    head = {"apiVersion": _ADMISSION, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "refused"}}
    return Dynamic({**head, "spec": spec})


def _binding(**spec: Any) -> Dynamic:
    head = {"apiVersion": _ADMISSION, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "refused"}}
    return Dynamic({**head, "spec": spec})


@pytest.mark.parametrize(
    ("refused", "fields"),
    [
        (_webhook(name="short"), {"webhooks[0].name"}),
        (_webhook(rules=[{**_RULE, "resources": ["*", "pods"]}]), {"webhooks[0].rules[0].resources"}),
        (_webhook(rules=[{**_RULE, "apiVersions": [""]}]), {"webhooks[0].rules[0].apiVersions[0]"}),
        (_webhook(matchConditions=[{"name": "", "expression": "true"}]), {"webhooks[0].matchConditions[0].name"}),
        (_policy(), {"spec.matchConstraints", "spec.validations", "spec.auditAnnotations"}),
        (
            _policy(matchConstraints={"resourceRules": [_RULE]}, validations=[{"expression": "true", "reason": "Odd"}]),
            {"spec.validations[0].reason"},
        ),
        (_binding(), {"spec.policyName", "spec.validationActions"}),
        (_binding(policyName="p", validationActions=["Deny", "Warn"]), {"spec.validationActions"}),
    ],
)
async def test_what_makes_no_sense_is_refused(client: Client, refused: Dynamic, fields: set[str]) -> None:
    """By the fields in which it makes none."""
    with pytest.raises(Invalid) as error:
        await client.create(refused)
    assert {cause.field for cause in error.value.causes} == fields
