"""docs/dependencies.md has a reason for each dependency."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.pages import DOCS

ROOT = DOCS.parent


def required(file: Path) -> Iterator[str]:
    """Everything that a project asks for, in production or elsewhere."""
    project = tomllib.loads(file.read_text())
    extras = project["project"].get("optional-dependencies", {}).values()
    groups = project.get("dependency-groups", {}).values()
    for wanted in (project["project"]["dependencies"], *extras, *groups):
        yield from (re.split(r"[^\w.-]", each)[0] for each in wanted if isinstance(each, str))


@pytest.mark.parametrize("file", ["pyproject.toml", "operators/etcd/pyproject.toml"])
def test_every_dependency_has_its_reason(file: str) -> None:
    """A row of the table names it."""
    rows = re.findall(r"^\| (.*?) \|", (DOCS / "dependencies.md").read_text(), re.MULTILINE)
    known = {name.strip().lower().replace("_", "-") for row in rows for name in row.split(",")}
    missing = {name for name in required(ROOT / file) if name.lower().replace("_", "-") not in known} - {"navarch"}
    assert not missing, f"expected a row in docs/dependencies.md for each of {sorted(missing)}"
