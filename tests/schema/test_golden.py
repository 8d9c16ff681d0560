"""CRDs as files: one for each kind of `kinds.py`. `NAVARCH_GOLDEN=update` writes them anew."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from navarch.schema import Webhook, crd
from schema import kinds

GOLDEN = Path(__file__).parent / "golden"
CASES = {
    "plain": lambda: crd(kinds.Plain),
    "everything": lambda: crd(kinds.Everything),
    "everything-short": lambda: crd(kinds.Everything, description_limit=30),
    "gauge": lambda: crd(
        kinds.OldGauge,
        kinds.Gauge,
        conversion=Webhook(service="convert", namespace="gauges", path="/convert", ca_bundle=b"PEM"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_class_gives_the_crd_of_its_golden_file(name: str) -> None:
    """A change of the generator shows in a file that can be read, not in an assertion."""
    file = GOLDEN / f"{name}.yaml"
    made = yaml.safe_dump(CASES[name](), sort_keys=False, allow_unicode=True, width=120)
    if os.environ.get("NAVARCH_GOLDEN") == "update":
        file.write_text(made)
    assert made == file.read_text()
