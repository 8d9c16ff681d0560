"""Estimated costs: a rule that the API server would find too expensive is known to be before it gets there."""

from __future__ import annotations

import pytest

from navarch.schema import cel
from schema.cel.cases import CASES, SCHEMA
from schema.cel.tables import costs, runtime_costs

OBJECT = cel.type_of_schema(costs.SCHEMA)
LIST = cel.type_of_schema(costs.LIST_SCHEMA)


@pytest.mark.parametrize(("expression", "cost"), costs.COSTS)
def test_rule_about_an_object_has_the_cost_the_server_estimates(expression: str, cost: int) -> None:
    """To the unit, since the limit is exact too."""
    assert cel.compile(expression, {"self": OBJECT, "oldSelf": OBJECT}).estimated_cost == cost


@pytest.mark.parametrize(("expression", "cost"), costs.LIST_COSTS)
def test_rule_about_a_list_has_the_cost_the_server_estimates(expression: str, cost: int) -> None:
    """Where the root itself has a size, values from elsewhere are taken to have it too."""
    assert cel.compile(expression, {"self": LIST}).estimated_cost == cost


def test_limits_of_the_schema_make_a_rule_affordable() -> None:
    """The remedy for a rule that costs too much: maxItems and maxLength."""
    unlimited = {"type": "array", "items": {"type": "string"}}
    limited = {"type": "array", "maxItems": 50, "items": {"type": "string", "maxLength": 63}}
    rule = "self.all(x, self.exists_one(y, x == y))"
    costs_of = [
        cel.compile(rule, {"self": cel.type_of_schema(schema)}).estimated_cost for schema in (unlimited, limited)
    ]
    assert costs_of[0] > cel.RULE_COST_LIMIT > costs_of[1]


def test_rule_of_the_case_table_stays_below_the_limit() -> None:
    """Those rows are meant for a real server, which must not refuse them for their cost."""
    self_type = cel.type_of_schema(SCHEMA)
    for expression, compiles, *_ in CASES:
        if compiles:
            assert cel.compile(expression, {"self": self_type}).estimated_cost < cel.RULE_COST_LIMIT


def test_cardinality_is_how_often_a_value_fits_one_request() -> None:
    """An empty object takes three bytes with its comma, and a request three mebibytes."""
    assert cel.cardinality_of(cel.type_of_schema({"type": "object"})) == 1_048_576
    assert cel.cardinality_of(cel.type_of_schema({"type": "integer"})) == 1_572_864


def test_cost_without_a_schema_is_that_of_the_worst_case() -> None:
    """Nothing is known of a dynamic variable's size."""
    assert cel.compile("x.all(y, y)", {"x": cel.DYN}).estimated_cost == 2**64 - 1
    assert cel.compile("1 + 1 == 2", {}).estimated_cost == 2


@pytest.mark.parametrize(("expression", "cost"), runtime_costs.COSTS)
def test_evaluation_costs_what_the_server_counts(expression: str, cost: int) -> None:
    """To the unit: it is stopped one unit before, and not at its cost."""
    program = cel.compile(expression, {"self": cel.DYN})
    program.evaluate({"self": runtime_costs.SELF}, cel.CostTracker(cost))
    with pytest.raises(cel.CelCostError):
        program.evaluate({"self": runtime_costs.SELF}, cel.CostTracker(cost - 1))
