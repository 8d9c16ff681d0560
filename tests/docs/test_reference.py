"""The API reference has every public name, as its docstring describes it."""

from __future__ import annotations

from importlib import import_module

import pytest

import reference


@pytest.mark.parametrize("package", reference.PACKAGES)
def test_page_has_every_public_name(package: str) -> None:
    """In full, or with a link to the page that has it."""
    written = (reference.PAGES / f"{package}.md").read_text()
    public = [name for name in getattr(import_module(package), "__all__", ()) if not name.startswith("_")]
    assert [name for name in public if f"\n## {name}\n" not in written and f"[`{name}`](" not in written] == []


def test_reference_is_up_to_date() -> None:
    """Whoever changes a docstring writes the pages anew."""
    assert reference.main(["--check"]) == 0
