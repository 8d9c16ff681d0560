"""Packages that import their parts when they are asked for."""

import subprocess
import sys

import pytest

import navarch
from navarch._base.lazy_exports import lazy_exports


def test_name_is_that_of_its_part() -> None:
    """And is then found in the package itself."""
    find = lazy_exports("navarch", {"_base.backoff": ("Backoff",)})
    try:
        assert find("Backoff") is vars(navarch)["Backoff"]
        assert find("Backoff").__module__ == "navarch._base.backoff"
    finally:
        del vars(navarch)["Backoff"]


def test_name_that_nobody_has_is_an_attribute_error() -> None:
    """In Python's own words."""
    with pytest.raises(AttributeError, match="module 'navarch' has no attribute 'Nothing'"):
        lazy_exports("navarch", {})("Nothing")


def test_embedded_server_waits_for_nothing_that_it_does_not_need() -> None:
    """A cluster starts for every test run and every `navarch cluster up`: what few use is imported when they do."""
    program = "import sys, navarch.cluster.embedded.program; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    rarely_used = {
        "navarch.client",
        "navarch.controller",
        "navarch.operator",
        "navarch.schema.cel.library",
        "navarch.schema.cel.program",
        "navarch.schema.generation",
        "navarch.schema.inspection",
        "yaml",
    }
    assert not rarely_used & set(found.stdout.split())
