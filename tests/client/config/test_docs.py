"""The examples of docs/configuration.md run."""

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "configuration.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda text: text.strip().splitlines()[-1][:40])
def test_the_example_runs(example: str, write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a kubeconfig that has the contexts and files it names."""
    contexts = [{"name": name, "context": {"cluster": "c", "user": "u"}} for name in ("dev", "staging")]
    for name in ("home/.kube/config", "kubeconfigs/other.yaml"):
        write(name, user={"token": "abc"}, contexts=contexts)
    monkeypatch.chdir(tmp_path)
    exec(compile(example, str(PAGE), "exec"), {"__name__": "example"})


def test_the_page_has_examples() -> None:
    """A guard against a pattern that finds none."""
    assert len(EXAMPLES) == 5
