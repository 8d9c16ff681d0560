"""docs/embedded-server.md: what it shows of other clients."""

from __future__ import annotations

import gc
import inspect
from pathlib import Path
from typing import Any

import pytest

from docs.pages import blocks
from navarch.testing import Cluster

leaving_connections_behind = pytest.mark.filterwarnings(
    "ignore:Kubernetes version:UserWarning",
    "ignore::ResourceWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
)
"""As kr8s does, which also says that it does not know this Kubernetes yet."""


@leaving_connections_behind
async def test_other_clients_work_as_the_page_shows_them(http_cluster: Cluster, tmp_path: Path) -> None:
    """Every test on the page passes."""
    (shown,) = (block for block in blocks("embedded-server.md", "python") if "kubeconfig" in block)
    page: dict[str, Any] = {}
    exec(shown, page)
    kubeconfig = page["kubeconfig"]._get_wrapped_function()(http_cluster, tmp_path)
    tests = [value for name, value in page.items() if name.startswith("test_")]
    assert len(tests) == 4
    for test in tests:
        result = test(kubeconfig)
        if inspect.isawaitable(result):
            await result
    gc.collect()
