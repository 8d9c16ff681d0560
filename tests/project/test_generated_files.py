"""Generated files are written, removed and compared; edited ones are left alone."""

from pathlib import Path

import pytest

from navarch.errors import ConfigError
from navarch.project.generated_files import RECORD, plan_generated, write_generated


def test_generated_file_is_written_once(tmp_path: Path) -> None:
    """The second run finds everything unchanged."""
    first = write_generated(tmp_path, {"config/a.yaml": "a"}, part="manifests")
    second = write_generated(tmp_path, {"config/a.yaml": "a"}, part="manifests")
    assert (first.written, second.written, second.unchanged) == (["config/a.yaml"], [], ["config/a.yaml"])


def test_edited_file_is_never_overwritten(tmp_path: Path) -> None:
    """It is reported by name in this run and in the next; the other files are written."""
    write_generated(tmp_path, {"a.yaml": "a", "b.yaml": "b"}, part="manifests")
    (tmp_path / "a.yaml").write_text("mine")
    for content in ("b2", "b3"):
        report = write_generated(tmp_path, {"a.yaml": "a2", "b.yaml": content}, part="manifests")
        assert (report.edited, report.written) == (["a.yaml"], ["b.yaml"])
    assert (tmp_path / "a.yaml").read_text() == "mine"


def test_foreign_file_is_never_overwritten(tmp_path: Path) -> None:
    """A file that no generator wrote counts as edited."""
    (tmp_path / "a.yaml").write_text("mine")
    assert write_generated(tmp_path, {"a.yaml": "a"}, part="manifests").edited == ["a.yaml"]
    assert (tmp_path / "a.yaml").read_text() == "mine"


def test_file_that_is_no_longer_wanted_is_removed(tmp_path: Path) -> None:
    """Unless somebody edited it, or another part wrote it."""
    write_generated(tmp_path, {"other.yaml": "o"}, part="chart")
    write_generated(tmp_path, {"a.yaml": "a", "b.yaml": "b"}, part="manifests")
    (tmp_path / "b.yaml").write_text("mine")
    report = write_generated(tmp_path, {}, part="manifests")
    assert (report.removed, report.edited) == (["a.yaml"], ["b.yaml"])
    assert sorted(each.name for each in tmp_path.glob("*.yaml")) == ["b.yaml", "other.yaml"]


def test_interrupted_run_is_completed_by_the_next(tmp_path: Path) -> None:
    """A file that was written before the record was is equal to what is wanted, not edited."""
    write_generated(tmp_path, {"a.yaml": "a", "b.yaml": "b"}, part="manifests")
    (tmp_path / "a.yaml").write_text("a2")
    report = write_generated(tmp_path, {"a.yaml": "a2", "b.yaml": "b2"}, part="manifests")
    assert (report.edited, report.written) == ([], ["b.yaml"])


def test_plan_changes_nothing(tmp_path: Path) -> None:
    """It reports what a run would write."""
    assert plan_generated(tmp_path, {"a.yaml": "a"}, part="manifests").written == ["a.yaml"]
    assert list(tmp_path.iterdir()) == []


def test_broken_record_is_named(tmp_path: Path) -> None:
    """The error says where to get it back from."""
    record = tmp_path / RECORD
    record.parent.mkdir()
    record.write_text("{")
    with pytest.raises(ConfigError, match="restore it from version control"):
        write_generated(tmp_path, {}, part="manifests")
