"""Small CRDs and the modules that are generated from them. `NAVARCH_GOLDEN=update` writes these anew."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from navarch.cli.manifests import documents
from navarch.project.models import kinds_in, model_files, write_models
from project.models.sameness import GeneratedModels, differences, imported

GOLDEN = Path(__file__).parent / "golden"
CASES = {
    "shop.yaml": ["store_example_com/__init__.py", "store_example_com/v1.py", "store_example_com/v1beta1.py"],
    "unusual.yaml": ["class_example_com/__init__.py", "class_example_com/v1.py"],
}


def manifests(file: Path) -> list[tuple[str, Any]]:
    """The objects of a file, with its name."""
    return [(file.name, found.object) for found in documents([str(file)])]


def crds(file: Path) -> list[Any]:
    """The CRDs of a file."""
    return [found for _, found in manifests(file) if found.kind == "CustomResourceDefinition"]


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Path:
    """A file with CRDs."""
    return GOLDEN / str(request.param)


@pytest.fixture
def models(case: Path, tmp_path: Path) -> Iterator[GeneratedModels]:
    """The classes that were generated from it."""
    write_models(tmp_path, model_files(kinds_in(manifests(case))))
    with imported(tmp_path) as found:
        yield found


def test_a_crd_gives_the_modules_of_its_golden_files(case: Path) -> None:
    """A change of the generator shows in files that can be read, and that mypy and ruff check with all others."""
    made = model_files(kinds_in(manifests(case)))
    if os.environ.get("NAVARCH_GOLDEN") == "update":
        for path in CASES[case.name]:
            (GOLDEN / path).parent.mkdir(exist_ok=True)
            (GOLDEN / path).write_text(made[path])
    assert made == {path: (GOLDEN / path).read_text() for path in CASES[case.name]}


def test_generated_classes_have_the_schema_of_their_crd(case: Path, models: GeneratedModels) -> None:
    """Every keyword, name, version, column and subresource."""
    for manifest in crds(case):
        assert differences(manifest, models.classes_of(manifest)) == []


def test_the_order_of_kinds_does_not_matter(case: Path) -> None:
    """The same CRDs in other files, or in another order, are the same bytes."""
    kinds = kinds_in(manifests(case))
    assert model_files(reversed(kinds)) == model_files(kinds)
