"""The files of generated classes: written as a whole, and left alone once somebody has edited them."""

from __future__ import annotations

from pathlib import Path

import pytest

from navarch.errors import ConfigError
from navarch.project.models import kinds_in, model_files, plan_models, write_models
from project.models.test_golden import GOLDEN, manifests

SHOP = model_files(kinds_in(manifests(GOLDEN / "shop.yaml")))
MODULE = "store_example_com/v1.py"


def test_written_files_are_up_to_date(tmp_path: Path) -> None:
    """A second run has nothing to do."""
    assert write_models(tmp_path, SHOP).written == sorted(SHOP)
    assert plan_models(tmp_path, SHOP).unchanged == sorted(SHOP)


def test_a_stale_file_is_replaced(tmp_path: Path) -> None:
    """Nobody has edited it: its digest fits."""
    write_models(tmp_path, model_files(kinds_in([("old.yaml", found) for _, found in manifests(GOLDEN / "shop.yaml")])))
    assert plan_models(tmp_path, SHOP).written == [MODULE, "store_example_com/v1beta1.py"]
    write_models(tmp_path, SHOP)
    assert (tmp_path / MODULE).read_text() == SHOP[MODULE]


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text + "\n",
        lambda text: text.replace("city: Annotated[str,", "city: Annotated[str | None,"),
        lambda text: text.replace("# sha256:", "# sha256:0"),
        lambda _: "",
        lambda _: '"""My own module."""\n',
    ],
    ids=["appended", "changed", "digest", "empty", "own"],
)
def test_an_edited_file_is_reported_and_left_alone(edit: object, tmp_path: Path) -> None:
    """The other files are written."""
    assert callable(edit)
    write_models(tmp_path, SHOP)
    mine = edit(SHOP[MODULE])
    (tmp_path / MODULE).write_text(mine)
    (tmp_path / "store_example_com/v1beta1.py").unlink()
    report = write_models(tmp_path, SHOP)
    assert (report.edited, report.written) == ([MODULE], ["store_example_com/v1beta1.py"])
    assert (tmp_path / MODULE).read_text() == mine


def test_a_package_keeps_its_own_init(tmp_path: Path) -> None:
    """Users may export names there."""
    write_models(tmp_path, SHOP)
    (tmp_path / "store_example_com/__init__.py").write_text("from .v1 import Shop\n")
    assert "store_example_com/__init__.py" in write_models(tmp_path, SHOP).unchanged


def test_a_module_loses_no_kind(tmp_path: Path) -> None:
    """Whoever generates one CRD of a group must not remove the classes of the others."""
    whole = kinds_in(manifests(GOLDEN / "unusual.yaml"))
    write_models(tmp_path, model_files(whole))
    part = model_files([each for each in whole if each.kind == "Rule"])
    with pytest.raises(ConfigError, match=r"v1\.py: expected the CRDs of all kinds that it has, got none of EmptyRule"):
        write_models(tmp_path, part)
    assert "class EmptyRule" in (tmp_path / "class_example_com/v1.py").read_text()
