"""The CRDs of cert-manager, prometheus-operator and gateway-api."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from navarch.project.models import kinds_in, model_files, write_models
from project.models.sameness import imported
from project.models.third_party import SOURCES, checked_crds, crds_of, examples_of

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("go") is None, reason="their CRDs come as Go modules: install Go"),
]


@pytest.mark.timeout(900)
def test_all_classes_are_typed_and_have_the_schema_of_their_crd(tmp_path: Path) -> None:
    """Forty CRDs, with 59 versions and 20,000 schemas."""
    found = list(checked_crds(tmp_path))
    wrong = [each for each in found if not (each.has_same_schema and each.is_typed)]
    assert wrong == []
    assert len(found) == 40
    ruff = [sys.executable, "-m", "ruff", "format", "--check", "--isolated", "--line-length", "120", str(tmp_path)]
    told = subprocess.run(ruff, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout[-2000:]


def test_examples_survive_decoding_and_encoding(tmp_path: Path) -> None:
    """The objects that the projects show to their users: no field is lost, renamed or changed."""
    lost, count = [], 0
    for source in (each for each in SOURCES if each.examples):
        kinds = kinds_in(crds_of(source))
        write_models(tmp_path / source.name, model_files(kinds))
        known = {(each.api_version, each.kind) for each in kinds}
        with imported(tmp_path / source.name, source.name.replace("-", "_")) as models:
            for name, is_whole in examples_of(source, models, known):
                count += 1
                lost += [] if is_whole else [name]
    assert lost == []
    assert count > 100
