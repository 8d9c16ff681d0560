"""Whatever fits the types of a kind is judged, never an exception."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.builtin.preparing import OPERATION
from example_counts import examples
from k8s.samples import full
from navarch.cluster.server.kinds.builtin import builtin_types
from navarch.cluster.server.kinds.builtin.catalog import _schema_names
from navarch.cluster.server.objects.types import ResourceType

Json = dict[str, Any]
STORED = [each for each in builtin_types() if "update" in each.verbs]


def _run(resource: ResourceType, value: Json) -> None:
    strategy = resource.strategy
    metadata = value.get("metadata") or {}
    value |= {"apiVersion": resource.api_version, "kind": resource.kind}
    value["metadata"] = {**metadata, "name": "x", "uid": "u", "creationTimestamp": "2026-01-02T03:04:05Z"}
    assert not resource.schema.faults(value)
    strategy.default(value)
    strategy.prepare_create(value, OPERATION)
    strategy.validate_create(value)
    strategy.warnings(value, None)
    strategy.selectable_fields(value)
    strategy.grace_seconds(value, None)
    strategy.cells(value)
    for part in (strategy, *(each.strategy for each in resource.subresources.values() if each.strategy)):
        changed = copy.deepcopy(value)
        part.default(changed)
        part.prepare_update(changed, value, OPERATION)
        part.validate_update(changed, value)


@pytest.mark.parametrize("resource", STORED, ids=[f"{each.api_version}-{each.plural}" for each in STORED])
def test_an_empty_object_is_judged(resource: ResourceType) -> None:
    """The checks need nothing but the metadata."""
    _run(resource, {})


@pytest.mark.parametrize("resource", STORED, ids=[f"{each.api_version}-{each.plural}" for each in STORED])
def test_an_object_with_every_field_is_judged(resource: ResourceType) -> None:
    """The checks handle all fields at once, most of them invalid together."""
    name = _schema_names()[resource.group, resource.version, resource.kind]
    _run(resource, full(name))


PRUNED = [
    each for each in STORED if each.plural in {"pods", "deployments", "statefulsets", "jobs", "cronjobs", "services"}
]


def _pruned(value: Any, draw: st.DrawFn) -> Any:
    if isinstance(value, dict):
        return {key: _pruned(part, draw) for key, part in value.items() if draw(st.integers(0, 9)) > 1}
    if isinstance(value, list):
        return [_pruned(part, draw) for part in value for _ in range(draw(st.integers(0, 2)))]
    return None if draw(st.integers(0, 9)) == 0 else value


@st.composite
def _part_of(draw: st.DrawFn, resource: ResourceType) -> Json:
    name = _schema_names()[resource.group, resource.version, resource.kind]
    found: Json = _pruned(full(name), draw)
    return found


@pytest.mark.parametrize("resource", PRUNED, ids=[each.plural for each in PRUNED])
@examples(30)
@given(data=st.data())
def test_an_object_with_some_fields_is_judged(resource: ResourceType, data: st.DataObject) -> None:
    """The checks handle missing fields, empty and repeated lists, and nulls."""
    _run(resource, data.draw(_part_of(resource)))
