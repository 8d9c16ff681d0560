"""Begins a project: `navarch init`."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from navarch.errors import ConfigError
from navarch.project.files import read_text
from navarch.project.project import PROJECT_FILE, STATE_FOLDER, Project
from navarch.project.project_file import LAYOUT, ProjectFile
from navarch.project.scaffold.names import check_domain, check_project_name
from navarch.project.scaffold.record import write_scaffolded
from navarch.project.scaffold.render import LINKS, render
from navarch.project.scaffold.scaffolds import ProjectScaffold, Scaffolds

__all__ = ["ScaffoldReport", "init_project"]

_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class ScaffoldReport:
    """The project after a command, and the files of the user that the command wrote, sorted."""

    project: Project
    files: list[str]


def init_project(folder: Path, scaffold: ProjectScaffold, *, namespaced: bool) -> ScaffoldReport:
    """Writes a project into the folder, which may be missing, or have nothing but files that would be written anyway.

    A missing folder appears at once, with everything in it. Raises `ConfigError` for names that cannot be, and for a
    folder with other files.
    """
    check_project_name(scaffold.name)
    check_domain(scaffold.domain)
    scaffolds = Scaffolds(project=scaffold)
    file = ProjectFile(
        domain=scaffold.domain,
        layout=[LAYOUT],
        namespaced=namespaced,
        project_name=scaffold.name,
        repo=scaffold.repo,
        version="3",
    )
    files = render(scaffolds)
    if folder.exists():
        _refuse_others(folder, files)
        written = _write(folder, files, scaffolds, file)
    else:
        written = _write_at_once(folder, files, scaffolds, file)
    return ScaffoldReport(Project.of(folder, file), written)


def _write(folder: Path, files: dict[str, str], scaffolds: Scaffolds, file: ProjectFile) -> list[str]:
    links = []
    for name, target in LINKS.items():
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(target)
            links.append(name)
    return sorted([*links, *write_scaffolded(folder, files, scaffolds, file)])


def _write_at_once(folder: Path, files: dict[str, str], scaffolds: Scaffolds, file: ProjectFile) -> list[str]:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise ConfigError(f"expected a folder, got a file: {folder.parent}; name another folder") from None
    for leftover in folder.parent.glob(f".{folder.name}.*.unfinished"):  # of a process that was killed
        shutil.rmtree(leftover, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", suffix=".unfinished", dir=folder.parent) as holder:
        unfinished = Path(holder) / folder.name
        unfinished.mkdir()
        written = _write(unfinished, files, scaffolds, file)
        try:
            unfinished.rename(folder)
        except OSError:
            raise ConfigError(f"expected no folder {folder}, but one has come meanwhile; begin again") from None
    return written


def _refuse_others(folder: Path, files: dict[str, str]) -> None:
    """Raises `ConfigError` for files in the folder that are not of this project, or differ from what would be written."""
    if not folder.is_dir():
        raise ConfigError(f"expected a folder, got a file: {folder}; name another folder")
    found = read_text(folder / PROJECT_FILE)
    if found is not None:
        ProjectFile.parse(found, PROJECT_FILE)  # of another tool, perhaps: that is the better error
    others = sorted(path for path in _paths(folder) if not _is_expected(folder, path, files))
    if others:
        shown = ", ".join(others[:_SHOWN]) + (", …" if len(others) > _SHOWN else "")
        raise ConfigError(
            f"expected an empty folder, got {folder} with other files: {shown}; move them away, or name a folder: "
            f"navarch init NAME --domain example.com"
        )


def _paths(folder: Path) -> Iterator[str]:
    """Yields the files below the folder, without what is hidden at its top and what commands were about to write."""
    for top in folder.iterdir():
        if top.name in {STATE_FOLDER, ".venv"} or (top.is_dir() and top.name == ".git"):
            continue
        below = top.rglob("*") if top.is_dir() and not top.is_symlink() else [top]
        for each in below:
            if each.is_symlink() or not each.is_dir():
                yield each.relative_to(folder).as_posix()


def _is_expected(folder: Path, path: str, files: dict[str, str]) -> bool:
    name = path.rpartition("/")[2]
    if name.endswith(".unfinished") or path == PROJECT_FILE or name.upper().startswith("LICENSE"):
        return True
    if path in LINKS:
        return (folder / path).is_symlink() and (folder / path).readlink() == Path(LINKS[path])
    return path in files and read_text(folder / path) == files[path]
