"""CRDs looked at as the API server would; the same tables are put to a real one by the conformance tests."""

from __future__ import annotations

import pytest

from navarch.schema import definition_faults
from schema.definitions import BAD, BAD_BUT_TAKEN, GOOD


@pytest.mark.parametrize("case", BAD)
def test_a_bad_definition_has_a_fault_with_a_remedy(case: str) -> None:
    """The message says what was expected and what came, the remedy what to do."""
    faults = definition_faults(BAD[case])
    assert faults
    for fault in faults:
        assert fault.field.split(".")[0] in {"spec", "metadata"}
        assert fault.message.startswith("expected ")
        assert ", got " in fault.message
        assert fault.remedy


@pytest.mark.parametrize("case", [*GOOD, *BAD_BUT_TAKEN])
def test_a_definition_that_a_server_takes_has_no_fault(case: str) -> None:
    """However odd it is."""
    assert definition_faults((GOOD | BAD_BUT_TAKEN)[case]) == []
