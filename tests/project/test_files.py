"""Files of a project are replaced as a whole, below its folder."""

from pathlib import Path

import pytest

from navarch.errors import ConfigError
from navarch.project.files import remove_files, write_files


def test_write_files_returns_the_paths_that_changed(tmp_path: Path) -> None:
    """A file with the wanted content is left alone."""
    assert write_files(tmp_path, {"a/b.txt": "one", "c.txt": "two"}) == ["a/b.txt", "c.txt"]
    assert write_files(tmp_path, {"a/b.txt": "one", "c.txt": "three"}) == ["c.txt"]
    assert (tmp_path / "c.txt").read_text() == "three"


def test_write_files_keeps_the_permissions_of_a_file(tmp_path: Path) -> None:
    """A script stays executable."""
    script = tmp_path / "run.sh"
    script.write_text("old")
    script.chmod(0o755)
    write_files(tmp_path, {"run.sh": "new"})
    assert script.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("path", ["../out.txt", "/out.txt", "a/../../out.txt", ""])
def test_write_files_refuses_a_path_outside_of_the_project(tmp_path: Path, path: str) -> None:
    """Nothing is written outside of the folder, and nothing inside of it either."""
    with pytest.raises(ConfigError, match="expected a path below"):
        write_files(tmp_path, {"in.txt": "", path: ""})
    assert list(tmp_path.iterdir()) == []


def test_write_files_refuses_a_link_that_leads_out(tmp_path: Path) -> None:
    """A symbolic link does not lead out of the folder."""
    root, outside = tmp_path / "project", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (root / "src").symlink_to(outside)
    with pytest.raises(ConfigError, match="symbolic link"):
        write_files(root, {"src/a.txt": ""})
    assert list(outside.iterdir()) == []


def test_write_files_leaves_nothing_behind_when_a_file_stands_in_the_way(tmp_path: Path) -> None:
    """The error names the file that is no folder."""
    (tmp_path / "src").write_text("a file")
    with pytest.raises(ConfigError, match="expected a folder, got a file"):
        write_files(tmp_path, {"src/a.txt": ""})
    assert [each.name for each in tmp_path.iterdir()] == ["src"]


def test_remove_files_removes_folders_that_become_empty(tmp_path: Path) -> None:
    """Folders with other files stay."""
    write_files(tmp_path, {"a/b/c.txt": "", "a/d.txt": ""})
    remove_files(tmp_path, ["a/b/c.txt", "a/gone.txt"])
    assert sorted(str(each.relative_to(tmp_path)) for each in tmp_path.rglob("*")) == ["a", "a/d.txt"]
