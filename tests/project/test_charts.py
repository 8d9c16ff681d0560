"""The chart has the objects of the installation: Helm's verdicts on the charts in `golden`, replayed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from project.charts import CASES, DATA, GOLDEN, objects


def verdict(name: str) -> Any:
    return json.loads((DATA / f"chart_{name}.json").read_text())


@pytest.mark.parametrize("case", CASES)
def test_chart_equals_the_installation_object_by_object(case: str) -> None:
    """`make judge NAME=charts` asks Helm again."""
    assert verdict("objects")[case] == objects((GOLDEN / case / "dist/install.yaml").read_text())


@pytest.mark.parametrize("case", CASES)
def test_chart_by_default_leaves_the_namespace_out_and_keeps_crds(case: str) -> None:
    """All other objects are there."""
    wanted = objects((GOLDEN / case / "dist/install.yaml").read_text())
    names = [f"{each['kind']} {each['metadata']['name']}" for each in wanted if each["kind"] != "Namespace"]
    kept = [f"{name} (kept)" if name.startswith("CustomResourceDefinition") else name for name in names]
    assert verdict("defaults")[case] == kept


@pytest.mark.parametrize("case", CASES)
def test_helm_finds_no_fault_in_the_chart(case: str) -> None:
    """Not even a warning; that there is no icon is only an information."""
    assert [line for line in verdict("lint")[case] if not line.startswith("[INFO]")] == [
        "1 chart(s) linted, 0 chart(s) failed"
    ]


def test_release_is_installed_upgraded_rolled_back_and_uninstalled() -> None:
    """On a real API server; the CRD outlives the release."""
    before, after = {"replicas": 2, "metrics": True}, {"replicas": 3, "metrics": False}
    assert verdict("release") == {
        "install": {"deployment": before, "crd": True},
        "upgrade": {"deployment": after, "crd": True},
        "rollback": {"deployment": before, "crd": True},
        "uninstall": {"deployment": None, "crd": True},
        "releases": [],
    }
