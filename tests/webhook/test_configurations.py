"""The webhook configurations that follow from the declarations."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import pytest

from navarch import Operator
from navarch.k8s.core.v1 import Namespace, Pod
from navarch.operator import configurations_of
from navarch.webhook.configurations import is_configured
from webhook.caches import Webcache, new_operator


def check(subject: Any, review: Any) -> None: ...


def only(operator: Operator, **keywords: Any) -> dict[str, Any]:
    """The entry of the operator's only webhook."""
    (configuration,) = configurations_of(operator, namespace="operators", **keywords)
    (entry,) = configuration["webhooks"]
    return dict(entry)


def test_configurations_follow_from_the_declarations() -> None:
    """There is one configuration of each kind, with everything that the functions declare."""
    mutating, validating = configurations_of(new_operator(), namespace="operators", ca_bundle=b"CA")
    assert (mutating["kind"], validating["kind"]) == ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    assert mutating["metadata"]["name"] == validating["metadata"]["name"] == "cache-operator"
    sizes, keeps = validating["webhooks"]
    assert keeps["rules"][0]["operations"] == ["DELETE"]
    assert sizes == {
        "name": "check-size.webcaches.cache.example.com",
        "clientConfig": {
            "service": {
                "namespace": "operators",
                "name": "cache-operator-webhook",
                "path": "/validate/check-size.webcaches.cache.example.com",
                "port": 443,
            },
            "caBundle": "Q0E=",
        },
        "rules": [
            {
                "apiGroups": ["cache.example.com"],
                "apiVersions": ["v1"],
                "operations": ["UPDATE"],
                "resources": ["webcaches"],
                "scope": "Namespaced",
            }
        ],
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
        "sideEffects": "None",
        "timeoutSeconds": 10,
        "admissionReviewVersions": ["v1"],
        "matchConditions": [{"name": "resized", "expression": "object.spec.size != oldObject.spec.size"}],
    }
    (label,) = mutating["webhooks"]
    assert label["failurePolicy"] == "Ignore"
    assert label["objectSelector"] == {"matchLabels": {"cache": "yes"}}
    assert label["reinvocationPolicy"] == "Never"


def test_url_takes_the_place_of_a_service() -> None:
    """A webhook on a laptop is reached by its URL."""
    operator = Operator("cache-operator")
    operator.validate(Webcache)(check)
    entry = only(operator, url="https://laptop.example.com:9443/", ca_bundle=b"CA")
    path = "/validate/check.webcaches.cache.example.com"
    assert entry["clientConfig"]["url"] == f"https://laptop.example.com:9443{path}"
    assert b64decode(entry["clientConfig"]["caBundle"]) == b"CA"


def test_kinds_of_the_operators_start_are_exempt_in_its_namespace() -> None:
    """A webhook for pods never sees those of kube-system and of the operator itself: both could not start without it."""
    operator = Operator("cache-operator")
    operator.validate(Pod, namespace_labels="team")(check)
    selector = only(operator)["namespaceSelector"]
    assert selector["matchExpressions"] == [
        {"key": "team", "operator": "Exists"},
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", "operators"]},
    ]


def test_cluster_scoped_kind_has_no_namespaces() -> None:
    """The operator's namespaces do not concern a cluster-scoped kind."""
    operator = Operator("cache-operator", namespaces=("a",))
    operator.validate(Namespace)(check)
    entry = only(operator)
    assert entry["namespaceSelector"] == {}
    assert entry["rules"][0]["scope"] == "Cluster"


def test_namespaces_of_the_operator_are_selected() -> None:
    """Names become a selector; patterns, which no selector can express, become a match condition."""
    named = Operator("cache-operator", namespaces=("b", "a"))
    named.validate(Webcache)(check)
    assert only(named)["namespaceSelector"]["matchExpressions"] == [
        {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["a", "b"]}
    ]
    patterns = Operator("cache-operator", namespaces=("team-*", "!team-x"))
    patterns.validate(Webcache)(check)
    assert only(patterns)["matchConditions"] == [
        {
            "name": "namespaces-of-the-operator",
            "expression": "request.namespace.matches('^(team-.*)$') && !request.namespace.matches('^(team-x)$')",
        }
    ]


def test_cert_manager_injects_the_authority() -> None:
    """The configurations carry cert-manager's annotation, and no bundle of their own."""
    operator = Operator("cache-operator")
    operator.validate(Webcache)(check)
    (configuration,) = configurations_of(operator, namespace="operators", cert_manager="operators/serving")
    assert configuration["metadata"]["annotations"] == {"cert-manager.io/inject-ca-from": "operators/serving"}
    found = {**configuration, "webhooks": [{**configuration["webhooks"][0]}]}
    found["webhooks"][0]["clientConfig"] = {**found["webhooks"][0]["clientConfig"], "caBundle": "aW5qZWN0ZWQ="}
    assert is_configured(found, configuration)


@pytest.mark.parametrize(
    "edit",
    [
        lambda entry: entry.update(failurePolicy="Ignore"),
        lambda entry: entry.update(matchConditions=[{"name": "never", "expression": "false"}]),
        lambda entry: entry["rules"].append({"operations": ["*"]}),
        lambda entry: entry.update(objectSelector={"matchLabels": {"a": "b"}}),
        lambda entry: entry["clientConfig"].update(caBundle="b3RoZXI="),
    ],
)
def test_edit_is_noticed(edit: Any) -> None:
    """Each change of an entry makes the configuration differ."""
    operator = Operator("cache-operator")
    operator.validate(Webcache)(check)
    (wanted,) = configurations_of(operator, namespace="operators", ca_bundle=b"CA")
    (found,) = configurations_of(operator, namespace="operators", ca_bundle=b"CA")
    assert is_configured(found, wanted)
    edit(found["webhooks"][0])
    assert not is_configured(found, wanted)
