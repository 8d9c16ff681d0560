"""Compiled shaping does what the schema's own functions do."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings

from navarch.cluster.server.kinds.custom.schema import CustomSchema
from navarch.schema.values.defaulting import drop_nulls, fill_defaults, prune_unknown
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
