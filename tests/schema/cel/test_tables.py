"""Several hundred small expressions, each with its type and value, its failure, or its refusal."""

from __future__ import annotations

from typing import Any

import pytest

from navarch.schema import cel
from schema.cel.tables import conversions, kubernetes, language, lists, macros, optionals, strings, times

TABLES = (language, macros, conversions, strings, times, lists, optionals, kubernetes)
VALUES = [row for table in TABLES for row in table.VALUES]
FAILING = [expression for table in TABLES for expression in table.FAILING]
REJECTED = [expression for table in TABLES for expression in table.REJECTED]


def exact(value: Any) -> object:
    """A form in which 1, 1u, 1.0 and true differ, and NaN is equal to itself."""
    if isinstance(value, list):
        return [exact(item) for item in value]
    if isinstance(value, dict):
        return sorted((repr(exact(key)), repr(exact(item))) for key, item in value.items())
    if isinstance(value, cel.Optional):
        return ("optional", value.present, exact(value.value))
    if isinstance(value, cel.Timestamp):
        return ("timestamp", value.nanos)
    return (type(value).__name__, repr(value))


@pytest.mark.parametrize(("expression", "type_name", "value"), VALUES)
def test_expression_has_its_type_and_value(expression: str, type_name: str, value: Any) -> None:
    """The checker gives the type the server gives, the evaluator its value."""
    program = cel.compile(expression, {})
    assert str(program.result_type) == type_name
    assert exact(program.evaluate({})) == exact(value)


@pytest.mark.parametrize("expression", FAILING)
def test_expression_without_a_value_fails(expression: str) -> None:
    """It compiles, and raises when it is evaluated."""
    program = cel.compile(expression, {})
    with pytest.raises(cel.CelEvaluationError):
        program.evaluate({})


@pytest.mark.parametrize("expression", REJECTED)
def test_expression_that_cannot_be_meant_is_rejected(expression: str) -> None:
    """Syntax, names, types and literals that can only fail are found before anything runs."""
    with pytest.raises(cel.CelError) as caught:
        cel.compile(expression, {})
    assert caught.value.line == 1
    assert 1 <= caught.value.column <= len(expression) + 1
