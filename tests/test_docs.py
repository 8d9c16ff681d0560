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
@pytest.mark.parametrize("page", ["client.md", "objects.md"])
async def test_page_runs_from_top_to_bottom(
    page: str, rig_cluster: rig.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every function on the page does what it says on a real cluster."""
    monkeypatch.setenv("KUBECONFIG", str(rig_cluster.kubeconfig))
    source = "\n".join(re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL))
    names: dict[str, Any] = {"__name__": page}
    exec(compile(source, page, "exec", dont_inherit=True), names)
    examples = [value for value in names.values() if getattr(value, "__module__", "") == page]
    for example in filter(inspect.isfunction, examples):
        result = example()
        if inspect.isawaitable(result):
            await result
