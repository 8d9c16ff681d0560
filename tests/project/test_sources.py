"""Changes of sources are found, once they have settled."""

from __future__ import annotations

import os
from pathlib import Path

from navarch.project.dev.sources import SourceWatcher


def test_changes_are_reported_once_they_have_settled(tmp_path: Path) -> None:
    """Added, changed and removed files are one change, which is reported when a further look finds no more."""
    old, removed, new = tmp_path / "old.py", tmp_path / "removed.py", tmp_path / "deep" / "new.py"
    old.write_text("1")
    removed.write_text("")
    watcher = SourceWatcher(tmp_path)
    assert watcher.changes() == []
    old.write_text("10")
    assert watcher.changes() == []
    assert watcher.is_unsettled
    new.parent.mkdir()
    new.write_text("")
    removed.unlink()
    assert watcher.changes() == []
    assert watcher.changes() == [new, old, removed]
    assert watcher.changes() == []


def test_file_of_the_same_size_and_time_is_another_one(tmp_path: Path) -> None:
    """Editors replace files: the new one is told by its inode."""
    file, other = tmp_path / "a.py", tmp_path / ".a.py.new"
    file.write_text("1")
    watcher = SourceWatcher(tmp_path)
    other.write_text("2")
    found = file.stat()
    os.utime(other, ns=(found.st_atime_ns, found.st_mtime_ns))
    other.rename(file)
    watcher.changes()
    assert watcher.changes() == [file]


def test_caches_and_files_of_editors_do_not_count(tmp_path: Path) -> None:
    """Neither do links that lead nowhere, or in a circle."""
    watcher = SourceWatcher(tmp_path)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "a.pyc").write_text("")
    (tmp_path / ".a.py.swp").write_text("")
    (tmp_path / "a.py~").write_text("")
    (tmp_path / "b.py").symlink_to("nowhere")
    (tmp_path / "circle").symlink_to(tmp_path)
    watcher.changes()
    assert watcher.changes() == []


def test_moved_folder_is_noticed(tmp_path: Path) -> None:
    """It is no change of the sources."""
    folder = tmp_path / "src"
    folder.mkdir()
    watcher = SourceWatcher(folder)
    assert not watcher.is_gone
    folder.rename(tmp_path / "moved")
    assert watcher.is_gone
