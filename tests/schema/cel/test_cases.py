"""The rules of `cases.py`, compiled and evaluated here; a real API server must agree with every row."""

from __future__ import annotations

from typing import Any

import pytest

from navarch.schema import cel
from schema.cel.cases import CASES, SCHEMA, TRANSITIONS

SELF = cel.type_of_schema(SCHEMA)
CONVERT = cel.converter_of(SCHEMA)


def accepts(expression: str, spec: dict[str, Any], old: dict[str, Any] | None = None) -> bool:
    """What the API server would say; a rule that gives no value refuses the object."""
    rule = cel.compile(expression, {"self": SELF, "oldSelf": SELF}, result=cel.BOOL)
    try:
        return rule.evaluate({"self": CONVERT(spec), "oldSelf": None if old is None else CONVERT(old)}) is True
    except cel.CelEvaluationError:
        return False


@pytest.mark.parametrize(("expression", "compiles", "spec", "accepted"), CASES)
def test_rule_of_a_crd_accepts_what_the_server_accepts(
    expression: str, compiles: bool, spec: dict[str, Any], accepted: bool
) -> None:
    """A rule compiles here if it does there, and gives the same verdict."""
    if compiles:
        assert accepts(expression, spec) is accepted
        return
    with pytest.raises(cel.CelError):
        accepts(expression, spec)


@pytest.mark.parametrize(("expression", "old", "new", "accepted"), TRANSITIONS)
def test_transition_rule_compares_with_the_old_object(
    expression: str, old: dict[str, Any], new: dict[str, Any], accepted: bool
) -> None:
    """Lists that are sets or maps compare regardless of order, atomic ones do not."""
    assert accepts(expression, new, old) is accepted


def test_transition_rules_are_known_by_their_variable() -> None:
    """The server runs a rule that uses oldSelf on updates only."""
    rule = cel.compile("self.name == oldSelf.name", {"self": SELF, "oldSelf": SELF})
    assert rule.uses_variable("oldSelf")
    shadowed = cel.compile("self.tags.all(oldSelf, oldSelf != '')", {"self": SELF, "oldSelf": SELF})
    assert shadowed.uses_variable("self")
    assert not shadowed.uses_variable("oldSelf")
