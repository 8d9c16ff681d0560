"""What Go's decoder would say, drop and write."""

from __future__ import annotations

from typing import Any

import pytest

from navarch.cluster.server.kinds.builtin.generic.schema import schema_of

Json = dict[str, Any]

DEPLOYMENT = schema_of("io.k8s.api.apps.v1.Deployment")
SECRET = schema_of("io.k8s.api.core.v1.Secret")
LEASE = schema_of("io.k8s.api.coordination.v1.Lease")
FIELD = "into Go struct field"
QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def _container(**fields: Any) -> Json:
    return {"spec": {"template": {"spec": {"containers": [{"name": "a", **fields}]}}}}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (
            {"spec": {"replicas": "1"}},
            f"json: cannot unmarshal string {FIELD} DeploymentSpec.spec.replicas of type int32",
        ),
        (
            {"spec": {"replicas": 1.5}},
            f"json: cannot unmarshal number 1.5 {FIELD} DeploymentSpec.spec.replicas of type int32",
        ),
        (
            {"spec": {"replicas": 99999999999}},
            f"json: cannot unmarshal number 99999999999 {FIELD} DeploymentSpec.spec.replicas of type int32",
        ),
        (
            {"spec": {"replicas": True}},
            f"json: cannot unmarshal bool {FIELD} DeploymentSpec.spec.replicas of type int32",
        ),
        (
            {"spec": {"strategy": []}},
            f"json: cannot unmarshal array {FIELD} DeploymentSpec.spec.strategy of type v1.DeploymentStrategy",
        ),
        (
            {"spec": {"selector": {"matchLabels": {"a": 1}}}},
            f"json: cannot unmarshal number {FIELD} LabelSelector.spec.selector.matchLabels of type string",
        ),
        (
            {"spec": {"selector": {"matchLabels": ["a"]}}},
            f"json: cannot unmarshal array {FIELD} LabelSelector.spec.selector.matchLabels of type map[string]string",
        ),
        (
            {"spec": {"selector": {"matchExpressions": {"a": 1}}}},
            (
                f"json: cannot unmarshal object {FIELD} LabelSelector.spec.selector.matchExpressions "
                "of type []v1.LabelSelectorRequirement"
            ),
        ),
        (
            _container(imagePullPolicy=1),
            (
                f"json: cannot unmarshal number {FIELD} Container.spec.template.spec.containers.imagePullPolicy "
                "of type v1.PullPolicy"
            ),
        ),
        (_container(resources={"limits": {"cpu": "abc"}}), QUANTITY),
        (_container(resources={"limits": {"cpu": {}}}), QUANTITY),
        (
            {"spec": {"strategy": {"rollingUpdate": {"maxSurge": True}}}},
            f"json: cannot unmarshal bool {FIELD} RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge of type int32",
        ),
        (
            {"spec": {"template": {"metadata": {"creationTimestamp": "x"}}}},
            'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"',
        ),
        (
            {"spec": {"template": {"metadata": {"creationTimestamp": 1}}}},
            f"json: cannot unmarshal number {FIELD} ObjectMeta.spec.template.metadata.creationTimestamp of type string",
        ),
    ],
)
def test_a_value_of_the_wrong_type_is_named_as_go_names_it(value: Json, said: str) -> None:
    """The decode errors are those recorded from the real server."""
    assert [cause.message for cause in DEPLOYMENT.faults(value)] == [said]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"data": {"a": "!!"}}, "illegal base64 data at input byte 0"),
        ({"data": {"a": "YQ"}}, "illegal base64 data at input byte 0"),
        ({"data": {"a": 1}}, f"json: cannot unmarshal number {FIELD} Secret.data of type []uint8"),
        ({"metadata": "a"}, f"json: cannot unmarshal string {FIELD} Secret.metadata of type v1.ObjectMeta"),
        ({"metadata": {"name": 1}}, f"json: cannot unmarshal number {FIELD} ObjectMeta.metadata.name of type string"),
    ],
)
def test_bytes_are_checked_as_go_checks_them(value: Json, said: str) -> None:
    """Faults of base64 name the position, and Go's types."""
    assert [cause.message for cause in SECRET.faults(value)] == [said]


def test_a_micro_time_needs_its_six_digits() -> None:
    """A MicroTime without six fractional digits is refused."""
    faults = LEASE.faults({"spec": {"renewTime": "2020-01-01T00:00:00Z"}})
    layout = "2006-01-02T15:04:05.000000Z07:00"
    assert [cause.message for cause in faults] == [
        f'parsing time "2020-01-01T00:00:00Z" as "{layout}": cannot parse "Z" as ".000000"'
    ]


def test_unknown_fields_are_dropped_and_named_in_their_order() -> None:
    """Unknown fields are dropped and returned as the paths of field validation."""
    value: Json = {
        "spec": {
            "template": {"foo": 1, "spec": {"containers": [{"name": "a", "zz": 1}, {"yy": 1}]}},
            "Replicas": 1,
        },
        "bar": {},
    }
    found = DEPLOYMENT.unknown_fields(value)
    assert found == [
        "spec.template.foo",
        "spec.template.spec.containers[0].zz",
        "spec.template.spec.containers[1].yy",
        "spec.Replicas",
        "bar",
    ]
    assert value == {"spec": {"template": {"spec": {"containers": [{"name": "a"}, {}]}}}}


def test_null_fits_everywhere_and_is_not_written() -> None:
    """Null is accepted for every type and never written."""
    value: Json = {"metadata": {"labels": None}, "spec": {"replicas": None, "selector": None, "template": None}}
    assert not DEPLOYMENT.faults(value)
    DEPLOYMENT.normalize(value)
    assert "replicas" not in value["spec"]
    assert value["metadata"] == {}


def test_the_document_resolves_references_and_keeps_merge_keys() -> None:
    """The document has resolved references and merge keys, for patches and managed fields."""
    containers = DEPLOYMENT.document["properties"]["spec"]["properties"]["template"]["properties"]["spec"][
        "properties"
    ]["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert "image" in containers["items"]["properties"]
