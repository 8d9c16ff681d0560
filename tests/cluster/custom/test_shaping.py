"""Compiled shaping does what the schema's own functions do."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings

from navarch.cluster.server.kinds.custom import schema as schemas
from navarch.cluster.server.kinds.custom.schema import CustomSchema
from navarch.schema.values.defaulting import drop_nulls, fill_defaults, prune_unknown
from navarch.schema.values.rules import RuleNode, compile_rules
from schema.shapes import SHAPES
from schema.strategies import values


@pytest.mark.parametrize("name", SHAPES)
def test_compiled_shaping_is_that_of_the_schema(name: str) -> None:
    """Defaults, dropped nulls and unknown fields are the same for generated values, good and bad."""
    schema = {"type": "object", "properties": {"spec": SHAPES[name]}}
    compiled = CustomSchema(schema)

    @settings(max_examples=50)
    @given(values(SHAPES[name]))
    def check(value: object) -> None:
        mine = {"apiVersion": "ex.dev/v1", "kind": "Thing", "spec": copy.deepcopy(value)}
        theirs = copy.deepcopy(mine)
        assert sorted(compiled.unknown_fields(mine)) == prune_unknown(theirs, schema)
        assert mine == theirs
        compiled.default(mine)
        fill_defaults(theirs, schema)
        drop_nulls(theirs, schema)
        assert mine == theirs

    check()


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The schemas that are compiled from now on."""
    found: list[object] = []

    def counted(document: dict[str, Any], *, is_object: bool) -> RuleNode | None:
        found.append(document)
        return compile_rules(document, is_object=is_object)

    monkeypatch.setattr(schemas, "compile_rules", counted)
    monkeypatch.setattr(schemas, "_compiled_schemas", {})
    return found


def _document(least: int) -> dict[str, Any]:
    return {"type": "object", "properties": {"spec": {"type": "integer", "minimum": least}}}


def test_equal_schemas_are_compiled_once(compilations: list[object]) -> None:
    """Each keeps its own document, and another schema is compiled anew."""
    first, second, other = CustomSchema(_document(1)), CustomSchema(_document(1)), CustomSchema(_document(2))
    assert len(compilations) == 2
    assert first.document is not second.document
    assert second.shape_faults({"spec": 1}, None) == []
    assert [fault.field for fault in other.shape_faults({"spec": 1}, None)] == ["spec"]


def test_few_compiled_schemas_are_kept(compilations: list[object]) -> None:
    """The least recently used one is dropped first, and a very large one is not kept at all."""
    for least in range(17):
        CustomSchema(_document(least))
        CustomSchema(_document(1000))
    assert len(compilations) == 18
    CustomSchema(_document(0))
    assert len(compilations) == 19, "expected the oldest schema to be dropped"
    large = {**_document(5000), "description": "x" * 300_000}
    CustomSchema(large)
    CustomSchema(large)
    assert len(compilations) == 21
