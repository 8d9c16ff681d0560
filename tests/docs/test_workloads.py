"""What docs/workloads.md says is so."""

from __future__ import annotations

from pathlib import Path

from docs.pages import module_of


def test_page_runs_from_top_to_bottom(tmp_path: Path) -> None:
    """It names the controllers that there are."""
    page = module_of("workloads.md", tmp_path)
    assert len(page.names) >= 6
