"""The generated kinds hold every field that Kubernetes knows."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from example_counts import examples
from k8s.samples import KINDS, class_of, full, some
from kubernetes_api.naming import class_name
from kubernetes_api.structs import Catalogue
from navarch.api import Object, decode, encode, full_wire, to_builtins
from navarch.api.model import fields_of
from navarch.k8s.apiextensions.v1 import JSONSchemaProps
from navarch.k8s.apps.v1 import StatefulSet
from navarch.k8s.core.v1 import ConfigMap, Pod, Secret, Service
from navarch.k8s.events.v1 import Event
from navarch.k8s.published import published
from navarch.k8s.rbac.v1 import ClusterRole

CLASSES = Catalogue(published()).classes


@pytest.mark.parametrize("schema", KINDS, ids=class_name)
def test_kind_keeps_every_field_of_its_schema(schema: str) -> None:
    """An object with all fields set is the same JSON after it was decoded and encoded."""
    wire = full(schema)
    found = decode(class_of(schema), encode(wire))
    assert to_builtins(found) == wire


def test_classes_have_exactly_the_fields_of_their_schemas() -> None:
    """No field of a schema is missing and none is made up, also in structs that hold themselves."""
    for schema in CLASSES:
        names = {info.encode_name for info in fields_of(class_of(schema))}
        assert names == set(published().schema(schema).get("properties", {})), schema


@given(data=st.data())
@examples(300, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_any_object_survives_being_read_and_written(data: st.DataObject) -> None:
    """Whatever is missing, null or empty: what was read is what is written back."""
    schema = data.draw(st.sampled_from(KINDS), label="schema")
    wire = data.draw(some(schema), label="object")
    found: Object = class_of(schema).from_json(encode(wire))
    assert full_wire(found) == wire


@pytest.mark.parametrize("schema", KINDS, ids=class_name)
def test_kind_says_how_it_is_served(schema: str) -> None:
    """The path of a kind's objects is one that the API server publishes."""
    kind = class_of(schema).__kind__
    document = "apis/" + kind.api_version if kind.group else "api/v1"
    paths = published().document(document)["paths"]
    subresources = {"Eviction", "Scale", "TokenRequest"}
    assert (
        kind.kind in subresources
        or kind.path() in paths
        or kind.path(namespace="x").replace("/x/", "/{namespace}/") in paths
    )


def test_status_needs_no_none_check() -> None:
    """A new object has an empty status; what a server always sends has Go's zero value."""
    stateful = decode(StatefulSet, b'{"spec": {"selector": {}, "template": {}}}')
    assert stateful.status.replicas == 0
    assert stateful.status.ready_replicas is None
    assert Service(name="web").spec.cluster_ip is None


def test_bytes_are_base64_on_the_wire() -> None:
    """Secret data are bytes in Python."""
    secret = Secret(name="s", data={"password": b"hunter2"})
    assert to_builtins(secret)["data"] == {"password": "aHVudGVyMg=="}
    assert decode(Secret, encode(secret)) == secret


def test_null_is_taken_as_go_sends_it() -> None:
    """A nil slice or a zero time comes as null, also where the schema requires a value."""
    role = decode(ClusterRole, b'{"metadata": {"name": "r"}, "rules": null}')
    event = decode(Event, b'{"metadata": {"name": "e", "namespace": "n"}, "eventTime": null}')
    pod = decode(Pod, b'{"metadata": {"name": "p", "creationTimestamp": null}, "spec": {"containers": null}}')
    assert role.rules is None
    assert event.event_time is None
    assert pod.spec.containers == []


def test_unset_fields_are_not_sent() -> None:
    """Only what was given goes over the wire, beside the identity."""
    assert to_builtins(ConfigMap(name="c", data={"k": "v"})) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c"},
        "data": {"k": "v"},
    }


def test_times_are_datetimes() -> None:
    """A time of the API is an aware datetime."""
    pod = decode(Pod, b'{"spec": {"containers": []}, "status": {"startTime": "2026-01-02T03:04:05Z"}}')
    assert pod.status.start_time == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    "schema",
    [
        {"items": {"type": "string"}},
        {"items": [{"type": "string"}]},
        {"additionalProperties": False},
        {"additionalProperties": {"$ref": "#/x", "not": {}}},
        {"dependencies": {"a": ["b"], "c": {"type": "object"}}},
        {"default": 0, "example": "e", "enum": [1, "a", {}]},
        {"x-kubernetes-preserve-unknown-fields": True, "maximum": 1.5},
    ],
)
def test_json_schema_takes_every_form(schema: dict[str, Any]) -> None:
    """Where a JSON schema may be one of two forms, both are typed and kept."""
    assert to_builtins(decode(JSONSchemaProps, encode(schema))) == schema


def test_import_of_one_group_leaves_the_others_alone() -> None:
    """rbac does not need core, so an operator that reads roles does not pay for pods."""
    code = "import sys, navarch.k8s.rbac.v1; print(sorted(name for name in sys.modules if 'navarch.k8s.' in name))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "navarch.k8s.rbac.v1" in done.stdout
    assert "core" not in done.stdout
