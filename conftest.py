"""Which files are collected: tests, and modules with examples in docstrings. Importing all others would only take time."""

from __future__ import annotations

from pathlib import Path


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Returns True for a module that has neither tests nor examples; None leaves the decision to pytest."""
    name = collection_path.name
    if collection_path.suffix != ".py" or name.startswith("test_") or name == "conftest.py":
        return None
    return True if b">>>" not in collection_path.read_bytes() else None
