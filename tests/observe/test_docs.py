"""The page about observing is true."""

import json
import re
from pathlib import Path

import pytest

from navarch.observe import families

PAGE = (Path(__file__).parents[2] / "docs" / "observing.md").read_text()


def test_examples_run(capsys: pytest.CaptureFixture[str]) -> None:
    """The examples run from top to bottom, and print the log line that is shown."""
    source = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
    exec(compile(source, "observing.md", "exec", dont_inherit=True), {})
    (shown,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    written, expected = json.loads(capsys.readouterr().err), json.loads(shown)
    assert list(written) == list(expected)
    assert written | {"time": ""} == expected | {"time": ""}


def test_table_has_every_metric_with_its_labels() -> None:
    """The table has every metric, and no other."""
    section = PAGE[PAGE.index("## Metrics") : PAGE.index("## Traces")]
    rows = re.findall(r"^\| `(\w+)` \| ([\w, ]*)\|", section, re.MULTILINE)
    described = {name: tuple(labels.split(", ")) if labels.strip() else () for name, labels in rows}
    described = {name: tuple(label.strip() for label in labels) for name, labels in described.items()}
    known = {
        family.name: family.labels for family in vars(families).values() if isinstance(family, families.MetricFamily)
    }
    assert described == known
