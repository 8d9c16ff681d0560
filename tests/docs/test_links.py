"""Links of the pages lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    str(page.relative_to(ROOT))
    for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md", "operators/**/*.md")
    for page in ROOT.glob(pattern)
)


def prose(page: Path) -> str:
    """Without its code, in which brackets and hashes mean something else."""
    return re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)


def anchors(page: Path) -> set[str]:
    """What GitHub makes of its headings."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_to_files_and_headings_that_exist(name: str) -> None:
    """Those inside the repository."""
    page = ROOT / name
    for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", prose(page)):
        path, _, anchor = link.partition("#")
        target = (page.parent / path) if path else page
        assert target.exists(), f"{name} links to {link}, which is not there"
        assert not anchor or anchor in anchors(target), f"{name} links to {link}, and {target.name} has no such heading"


def test_every_page_is_in_the_readme() -> None:
    """Nobody finds a page that no list has."""
    readme = (ROOT / "README.md").read_text()
    missing = [str(page.relative_to(ROOT)) for page in ROOT.glob("docs/*.md") if f"(docs/{page.name})" not in readme]
    assert not missing, f"expected the README to link to {missing}"
