"""docs/etcd-guide.md: its commands print what it shows, and the demo's hints are among them."""

from __future__ import annotations

import pytest

import etcd_cluster
import etcd_guide


def test_the_page_shows_the_files_that_it_names() -> None:
    """As they are."""
    page = etcd_guide.PAGE.read_text()
    assert etcd_guide.with_files(page) == page


def test_what_the_demo_tells_to_type_is_on_the_page() -> None:
    """In the same order, so that the test below types it into a shell."""
    typed = iter(etcd_guide.commands(etcd_guide.PAGE.read_text()))
    missing = [hint for hint in etcd_cluster.HINTS if hint not in typed]
    assert not missing


@pytest.mark.real
@pytest.mark.timeout(960)
def test_commands_print_what_the_page_shows() -> None:
    """From a first member to a restore, in a real shell with the real kubectl and etcdctl."""
    page = etcd_guide.PAGE.read_text()
    different = "\n".join(etcd_guide.differences(page, etcd_guide.recorded(page)))
    assert not different, f"if that is meant, record the page anew with `python -m etcd_guide`:\n{different}"
