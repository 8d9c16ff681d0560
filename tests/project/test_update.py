"""`navarch update` carries a project with the user's changes across changed templates."""

import shutil
from pathlib import Path

import pytest

from navarch.errors import ConfigError
from navarch.project.project import Project
from navarch.project.scaffold import render as rendering
from navarch.project.scaffold.create_api import create_api
from navarch.project.scaffold.delete import plan_delete_api
from navarch.project.scaffold.record import pristine
from navarch.project.scaffold.update import UpdateReport, update
from project.scaffolded import MEMCACHED, PLAIN, cache_project, files_of

MAKEFILE, DOCKERFILE, CONTROLLER = "Makefile", "Dockerfile", "src/cache_operator/controllers/memcached.py"


class Templates:
    """The templates of a newer version: copies that a test changes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def replace(self, name: str, old: str, new: str) -> None:
        """Replaces a text in the template of that name."""
        file = self.folder / f"{name}.j2"
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with one kind."""
    return cache_project(tmp_path / "project", MEMCACHED)


@pytest.fixture
def templates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Templates:
    """Templates that later commands of the test render."""
    shutil.copytree(rendering._TEMPLATES, tmp_path / "templates")
    monkeypatch.setattr(rendering, "_TEMPLATES", tmp_path / "templates")
    return Templates(tmp_path / "templates")


def edit(project: Project, path: str, old: str, new: str) -> str:
    """Changes a file as a user would, and returns its text."""
    file = project.root / path
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    return file.read_text()


def test_update_without_news_changes_nothing(project: Project) -> None:
    """Also the user's changes stay."""
    edit(project, MAKEFILE, "PYTHON ?= python3", "PYTHON ?= python3.13")
    before = files_of(project.root)
    assert update(project) == UpdateReport()
    assert files_of(project.root) == before


def test_update_keeps_the_changes_of_the_user(project: Project, templates: Templates) -> None:
    """Both changes are in the file; files that the user has not touched are the new ones, removed ones stay removed."""
    edit(project, MAKEFILE, "PYTHON ?= python3", "PYTHON ?= python3.13")
    edit(project, CONTROLLER, "PodsNotReady", "Starting")
    (project.root / ".github/workflows/ci.yml").unlink()
    templates.replace("project/Makefile", "bin/mypy", "bin/mypy --pretty")
    templates.replace("project/Dockerfile", "python:3.13-slim", "python:3.14-slim")
    templates.replace("project/ci.yml", "3.13", "3.14")
    templates.replace("api/controller_image.py", "period_seconds=1", "period_seconds=2")
    planned = update(project, dry_run=True)
    assert pristine(project.root)[DOCKERFILE] == (project.root / DOCKERFILE).read_text()
    report = update(project)
    assert report == planned
    assert report.merged == [MAKEFILE, CONTROLLER]
    assert report.written == [DOCKERFILE]
    assert report.kept == [".github/workflows/ci.yml"]
    makefile = (project.root / MAKEFILE).read_text()
    assert "python3.13" in makefile
    assert "mypy --pretty" in makefile
    controller = (project.root / CONTROLLER).read_text()
    assert "Starting" in controller
    assert "period_seconds=2" in controller
    assert "python:3.14" in (project.root / DOCKERFILE).read_text()
    assert not (project.root / ".github/workflows/ci.yml").exists()
    assert update(project) == UpdateReport()


def test_conflict_leaves_the_file_alone(project: Project, templates: Templates) -> None:
    """The new file is beside it; every command that writes refuses until it is gone. Other files are updated."""
    mine = edit(project, MAKEFILE, "bin/mypy", "bin/pyright")
    templates.replace("project/Makefile", "bin/mypy", "bin/mypy --pretty")
    templates.replace("project/Dockerfile", "python:3.13-slim", "python:3.14-slim")
    report = update(project)
    assert report.conflicts == [MAKEFILE]
    assert report.written == [DOCKERFILE]
    assert (project.root / MAKEFILE).read_text() == mine
    assert "mypy --pretty" in (project.root / "Makefile.new").read_text()
    before = files_of(project.root)
    for command in (
        lambda: update(project),
        lambda: create_api(project, PLAIN),
        lambda: plan_delete_api(project, "cache", "v1alpha1", "Memcached"),
    ):
        with pytest.raises(ConfigError, match=r"1 of the last navarch update: Makefile; for each of them .* \.new"):
            command()
    assert files_of(project.root) == before
    (project.root / "Makefile.new").unlink()
    assert update(project) == UpdateReport()
    assert (project.root / MAKEFILE).read_text() == mine


def test_new_and_removed_templates(project: Project, templates: Templates, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new file is written, unless the user has one; one that is no longer scaffolded goes, unless the user changed it."""
    mine = edit(project, "README.md", "An operator", "My operator")
    (project.root / "tox.ini").write_text("mine")
    changed = {path: name for path, name in rendering._PROJECT.items() if path not in {"README.md", ".dockerignore"}}
    changed |= {"NEWS.md": "empty", "tox.ini": "project/gitignore"}
    monkeypatch.setattr(rendering, "_PROJECT", changed)
    report = update(project)
    assert (report.written, report.removed, report.kept) == (["NEWS.md"], [".dockerignore"], ["README.md"])
    assert report.conflicts == ["tox.ini"]
    assert (project.root / "README.md").read_text() == mine
    assert (project.root / "tox.ini").read_text() == "mine"
    assert not (project.root / ".dockerignore").exists()


def test_broken_record_is_refused(project: Project) -> None:
    """The error names the record and the remedy."""
    record = project.root / ".navarch/scaffolds.json"
    record.write_text("{")
    with pytest.raises(ConfigError, match=r"\.navarch/scaffolds\.json: expected the scaffolds .* restore it"):
        update(project)
    record.unlink()
    with pytest.raises(ConfigError, match="restore it from version control"):
        update(project)
