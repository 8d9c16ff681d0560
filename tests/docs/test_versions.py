"""The test on docs/versions.md; `tests/conformance/test_versions_page.py` executes the page itself, on both engines."""

from __future__ import annotations

from types import ModuleType

import pytest

from docs.pages import blocks, module_from


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> list[ModuleType]:
    """The page up to each of its operators, as a module."""
    found, source, folder = [], "", tmp_path_factory.mktemp("versions")
    for number, block in enumerate(blocks("versions.md", "python")):
        source += block
        if "Operator(" in block:
            file = folder / f"page_versions_{number}.py"
            file.write_text(source)
            found.append(module_from(file))
    return found


def test_conversions_survive_the_test_of_the_page(releases: list[ModuleType]) -> None:
    """The line of the page gives a test for each pair of versions."""
    test = releases[2].test_conversions
    (mark,) = test.pytestmark
    assert list(map(str, mark.args[1])) == ["Server v1alpha1 to v1beta1", "Server v1beta1 to v1alpha1"]
    for case in mark.args[1]:
        test(case)
