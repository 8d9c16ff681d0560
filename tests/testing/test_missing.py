"""The fixtures name the packages that are not installed."""

from __future__ import annotations

import importlib.util
import sys

import pytest

pytest_plugins = ["pytester"]


@pytest.mark.parametrize(
    ("module", "remedy"), [("pytest_asyncio", "pip install pytest-asyncio"), ("cryptography", "navarch[cluster]")]
)
def test_plugin_says_what_is_missing(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, module: str, remedy: str
) -> None:
    """The fixture fails with the package's name, not with an ImportError."""
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == module else found(name))
    monkeypatch.delitem(sys.modules, "navarch.testing.plugin")
    pytester.makepyfile("def test_it(cluster): ...")
    outcome = pytester.runpytest_inprocess(
        "-p", "no:navarch", "-o", "asyncio_default_fixture_loop_scope=function", "-p", "navarch.testing.plugin"
    )
    outcome.assert_outcomes(errors=1)
    outcome.stdout.fnmatch_lines([f"*{remedy.replace('[', '[[]')}*"])


def test_type_of_the_fixture_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """An annotation with the type fails at collection with the package's name."""
    from navarch import testing

    monkeypatch.delitem(sys.modules, "navarch.testing.cluster", raising=False)
    monkeypatch.setitem(sys.modules, "navarch.cluster.embedded.credentials", None)
    with pytest.raises(ImportError, match=r"which is not installed: pip install 'navarch\[cluster\]'"):
        getattr(testing, "Cluster")  # noqa: B009 - the import is what fails
