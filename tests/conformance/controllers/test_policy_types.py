"""What the status of a policy tells of its expressions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from conformance.controllers.watching import until
from navarch.api import Dynamic
from navarch.client import Client, MergePatch
from navarch.k8s.admissionregistration.v1 import ValidatingAdmissionPolicy

_RULE = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]}


def _policy(name: str, *rules: dict[str, Any], **spec: Any) -> Dynamic:
    head = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy"}
    body = {"matchConstraints": {"resourceRules": [*rules]}, **spec}
    return Dynamic({**head, "metadata": {"name": name}, "spec": body})


@pytest.fixture
async def name(client: Client) -> AsyncIterator[str]:
    """Of a policy that is gone afterwards."""
    made = f"typed-{client.options.namespace}"
    yield made
    await client.delete(ValidatingAdmissionPolicy, made)


async def _told(client: Client, name: str, generation: int) -> dict[str, str] | None:
    """By field; None if nothing is said, not even that nothing is wrong."""
    found = await until(
        lambda: client.get(ValidatingAdmissionPolicy, name),
        lambda policy: policy.status.observed_generation == generation,
        f"generation {generation} of the policy to be looked at",
    )
    checked = found.status.type_checking
    return None if checked is None else {each.field_ref: each.warning for each in checked.expression_warnings or ()}


async def test_expressions_that_do_not_fit_the_types_are_told(client: Client, name: str) -> None:
    """With the kind they do not fit, and until they do."""
    expression, message = "object.spec.replicas > '1' && variables.count > 0", "'replicas: ' + object.spec.replicas"
    wrong = {"expression": expression, "messageExpression": message}
    fine = {"expression": "object.spec.replicas > 1 || namespaceObject.metadata.name == 'a'"}
    counted = [{"name": "count", "expression": "object.spec.template.spec.containers.size()"}]
    await client.create(_policy(name, _RULE, validations=[wrong, fine], variables=counted))
    assert await _told(client, name, 1) == {
        "spec.validations[0].expression": "apps/v1, Kind=Deployment: ERROR: <input>:1:22: found no matching overload for "
        f"'_>_' applied to '(int, string)'\n | {expression}\n | {'.' * 21}^\n",
        "spec.validations[0].messageExpression": "apps/v1, Kind=Deployment: ERROR: <input>:1:14: found no matching overload "
        f"for '_+_' applied to '(string, int)'\n | {message}\n | {'.' * 13}^\n",
    }
    await client.patch(ValidatingAdmissionPolicy, name, MergePatch({"spec": {"validations": [fine]}}))
    assert not await _told(client, name, 2)


async def test_expressions_that_fit_are_told_as_well(client: Client, name: str) -> None:
    """There is nothing to warn of then."""
    await client.create(_policy(name, _RULE, validations=[{"expression": "object.spec.replicas > 1"}]))
    assert await _told(client, name, 1) == {}


async def test_expressions_are_looked_at_for_each_kind(client: Client, name: str) -> None:
    """One that no rule names by itself has no types."""
    pods = {**_RULE, "apiGroups": [""], "resources": ["pods", "pods/status"]}
    asked = {"expression": "object.spec.replicas > 1"}
    await client.create(_policy(name, pods, {**_RULE, "apiVersions": ["*"]}, validations=[asked]))
    text = asked["expression"]
    assert await _told(client, name, 1) == {
        "spec.validations[0].expression": "/v1, Kind=Pod: ERROR: <input>:1:12: undefined field 'replicas'\n"
        f" | {text}\n | {'.' * 11}^\n"
    }
