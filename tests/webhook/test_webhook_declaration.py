"""Webhooks as they are declared: mistakes are told where they are made."""

from __future__ import annotations

from typing import Any

import pytest

from navarch import Operator
from navarch.api import Kind
from navarch.errors import DefinitionError
from navarch.k8s.admissionregistration.v1 import ValidatingWebhookConfiguration
from navarch.k8s.coordination.v1 import Lease
from navarch.k8s.core.v1 import Pod
from navarch.k8s.policy.v1 import Eviction
from webhook.caches import Webcache

EVERYTHING = Kind("*", "*", "*", plural="*")


def check(subject: Any, review: Any) -> None: ...


@pytest.mark.parametrize(
    ("what", "keywords", "message"),
    [
        (EVERYTHING, {}, "got one on all resources; name the kinds that it is for, or confirm it: may_lock_out=True"),
        (Lease, {}, "got one on Leases"),
        (ValidatingWebhookConfiguration, {}, "got one on webhook configurations"),
        (Webcache, {"operations": "CREATE"}, r"expected a tuple for operations, got 'CREATE'"),
        (
            Webcache,
            {"operations": ("PATCH",)},
            "expected operations to be of CREATE, UPDATE, DELETE, CONNECT, got 'PATCH'",
        ),
        (Webcache, {"operations": ()}, "expected one or more operations"),
        (Webcache, {"failure_policy": "fail"}, "expected failure_policy to be of Fail, Ignore, got 'fail'"),
        (Webcache, {"timeout": 31}, "expected a timeout of 1 to 30 seconds, got 31"),
        (Webcache, {"match_conditions": {"x": "object.spec.size >"}}, "match condition 'x': "),
        (Webcache, {"match_conditions": {"x": "1 + 1"}}, "match condition 'x': "),
        (Webcache, {"on": Pod}, "expected a subresource beside on=Pod"),
        (Webcache, {"subresource": "pods/exec"}, "expected the name of a subresource such as scale"),
        (Webcache, {"name": "Check_It"}, "check-it"),
        (Webcache, {"reads": Pod}, r"write reads=\(Pod,\)"),
    ],
)
def test_mistake_is_refused(what: Any, keywords: dict[str, Any], message: str) -> None:
    """Each mistake is one clear error at the declaration."""
    with pytest.raises((DefinitionError, ValueError), match=message):
        Operator("cache-operator").validate(what, **keywords)(check)


def test_lockout_can_be_confirmed() -> None:
    """A second parameter confirms a rule that can stop a cluster."""
    declared = Operator("cache-operator").validate(EVERYTHING, may_lock_out=True)(check)
    assert declared.name == "check.all.all"


def test_deletion_cannot_be_mutated() -> None:
    """A DELETE has no object to change."""
    with pytest.raises(DefinitionError, match="got DELETE; use validate for it"):
        Operator("cache-operator").mutate(Webcache, operations=("DELETE",))(check)


def test_function_with_other_parameters_is_refused() -> None:
    """A function that cannot take an object and a review is refused, with the remedy."""

    def alone(subject: Any) -> None: ...

    with pytest.raises(DefinitionError, match=r"got alone\(.*; write alone\(subject, review\)"):
        Operator("cache-operator").validate(Webcache)(alone)  # type: ignore[arg-type]  # as a mistake


def test_second_webhook_of_a_name_is_refused() -> None:
    """Two webhooks of one name and kind would share a path."""
    operator = Operator("cache-operator")
    operator.validate(Webcache)(check)
    operator.mutate(Webcache)(check)
    with pytest.raises(DefinitionError, match="got a second; give it a name="):
        operator.validate(Webcache)(check)


def test_subresource_of_another_class_is_declared_with_on() -> None:
    """An Eviction is posted to a subresource of pods."""
    declared = Operator("cache-operator").validate(Eviction, on=Pod, subresource="eviction", operations=("CREATE",))(
        check
    )
    assert declared.resource.plural == "pods"
    assert declared.name == "check.pods.core"
