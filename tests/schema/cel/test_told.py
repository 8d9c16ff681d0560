"""What the API server says of a rule that does not compile."""

from __future__ import annotations

import pytest

from navarch.schema import cel
from schema.cel.tables import told

_SELF = cel.type_of_schema(told.SCHEMA)


def _said(rule: str) -> str:
    with pytest.raises(cel.CelError) as refused:
        cel.compile(rule, {"self": _SELF, "oldSelf": _SELF}, result=cel.BOOL)
    return refused.value.told


@pytest.mark.parametrize(("rule", "faults"), told.RULES)
def test_rule_is_told_as_the_server_tells_it(rule: str, faults: list[str]) -> None:
    """All its faults, in their order; what follows each is its line."""
    assert told.heads(_said(rule)) == faults


def test_fault_is_shown_in_its_line() -> None:
    """With a mark below, which is as wide as what it stands below."""
    assert _said("true &&\n\tself.名 + 'é' + 1") == (
        "compilation failed: ERROR: <input>:2:7: Syntax error: token recognition error at: '名'\n"
        " |  self.名 + 'é' + 1\n"
        " | ......\N{FULLWIDTH CIRCUMFLEX ACCENT}\n"
        "ERROR: <input>:2:9: Syntax error: no viable alternative at input '. +'\n"
        " |  self.名 + 'é' + 1\n"
        " | ......\N{FULLWIDTH FULL STOP}.^"
    )
