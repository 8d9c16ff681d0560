"""The pages whose code needs nothing but a cluster, executed from top to bottom."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import rig

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.real
async def test_client_page_runs_from_top_to_bottom(rig_cluster: rig.Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every function on docs/client.md does what it says on a real cluster."""
    monkeypatch.setenv("KUBECONFIG", str(rig_cluster.kubeconfig))
    source = "\n".join(re.findall(r"```python\n(.*?)```", (DOCS / "client.md").read_text(), re.DOTALL))
    names: dict[str, Any] = {}
    exec(compile(source, "client.md", "exec", dont_inherit=True), names)
    examples = [value for value in names.values() if inspect.iscoroutinefunction(value)]
    assert len(examples) == source.count("async def "), "expected every example to be a coroutine function"
    for example in examples:
        await example()
