"""Projects whose code is imported, and forgotten after the test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from project.small_project import forgotten_code


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """The next test imports its own project."""
    with forgotten_code():
        yield
