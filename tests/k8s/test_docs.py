"""The documentation of the built-in kinds runs."""

from __future__ import annotations

import re
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "builtin-kinds.md"


def test_example_in_the_guide_runs() -> None:
    """What the guide shows is true."""
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, str(GUIDE), "exec"), {})
