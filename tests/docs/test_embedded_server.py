"""docs/embedded-server.md: what it shows of other clients."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import kr8s
import pytest

from docs.pages import blocks
from navarch.testing import Cluster


async def connections_of_kr8s_ended() -> None:
    """It has no way to close them, and remembers the last client that it made."""
    for made in kr8s.Api._instances.values():
        for api in list(made.values()):
            if api._session is not None:
                await api._session.aclose()


@pytest.mark.filterwarnings("ignore:Kubernetes version:UserWarning")  # kr8s says how new it is
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
    await connections_of_kr8s_ended()
