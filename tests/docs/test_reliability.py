"""What docs/reliability.md refers to is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.pages import DOCS

PAGE = (DOCS / "reliability.md").read_text()
TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def source() -> str:
    return "\n".join(path.read_text() for path in TESTS.rglob("test_*.py"))


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(test_\w+)`", PAGE))))
def test_every_test_on_the_page_exists(name: str, source: str) -> None:
    """A promise whose proof has another name by now is no promise."""
    assert re.search(rf"^(async )?def {name}\(", source, re.MULTILINE), f"expected a test {name}"


@pytest.mark.parametrize("path", ["chaos/test_wire.py", "chaos/test_server.py", "conformance/test_election.py"])
def test_every_fault_is_on_the_page(path: str) -> None:
    """Whoever adds one tells users of it."""
    names = set(re.findall(r"^async def (test_\w+)\(", (TESTS / path).read_text(), re.MULTILINE))
    missing = sorted(name for name in names - {"test_hand_overs_go_back_and_forth"} if f"`{name}`" not in PAGE)
    assert not missing, f"expected a row in docs/reliability.md for each of {missing}"
