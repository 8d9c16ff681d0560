"""The page about CRDs is true."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest
import yaml

PAGE = Path(__file__).parents[2] / "docs" / "crd.md"


def blocks(language: str) -> list[str]:
    """The code blocks of the page."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_the_page_runs_and_shows_what_it_makes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one module, in the order of the page; the YAML is that of its first kind."""
    file = tmp_path / "crd_page.py"
    file.write_text("\n".join(blocks("python")))
    spec = importlib.util.spec_from_file_location("crd_page", file)
    assert spec is not None
    assert spec.loader is not None
    page = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "crd_page", page)
    spec.loader.exec_module(page)
    assert blocks("yaml") == [yaml.safe_dump(page.manifest, sort_keys=False)]
