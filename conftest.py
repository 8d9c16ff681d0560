"""Which files are collected: tests, and modules with examples in docstrings. Importing all others would only take time."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Returns True for a module that has neither tests nor examples; None leaves the decision to pytest."""
    name = collection_path.name
    if collection_path.suffix != ".py" or name.startswith("test_") or name == "conftest.py":
        return None
    return True if not _has_examples(collection_path) else None


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Leaves out the search for examples in a test module that has none: it would read every docstring of the suite."""
    found = yield
    if any(isinstance(each, DoctestModule) for each in found) and not _has_examples(file_path):
        return [each for each in found if not isinstance(each, DoctestModule)]
    return found


def _has_examples(module: Path) -> bool:
    return b">>>" in module.read_bytes()
