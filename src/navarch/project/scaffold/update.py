"""Moves a project to newer templates: `navarch update`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from navarch.project.files import read_text, remove_files, write_files
from navarch.project.project import Project
from navarch.project.scaffold.merge import merge
from navarch.project.scaffold.record import NEW, pristine, refuse_open_conflicts
from navarch.project.scaffold.render import render
from navarch.project.scaffold.scaffolds import PRISTINE, RECORD, Scaffolds

__all__ = ["UpdateReport", "update"]

Action = Literal["written", "merged", "removed", "conflicts", "kept"]


@dataclass(slots=True)
class UpdateReport:
    """What became of the scaffolded files whose templates changed, by path; each list is sorted."""

    written: list[str] = field(default_factory=list)
    """New, or not edited by the user."""
    merged: list[str] = field(default_factory=list)
    """Edited by the user: they have both changes now."""
    removed: list[str] = field(default_factory=list)
    """No longer scaffolded, and not edited by the user."""
    conflicts: list[str] = field(default_factory=list)
    """Both changed the same lines: the user's file is as it was, the new one is beside it."""
    kept: list[str] = field(default_factory=list)
    """Removed by the user, or no longer scaffolded and edited by the user: left as they are."""


@dataclass(frozen=True, slots=True)
class _FileUpdate:
    """What happens to one file; `content` is what is written."""

    path: str
    action: Action | None
    content: str = ""


def update(project: Project, *, dry_run: bool = False) -> UpdateReport:
    """Merges newer templates into the scaffolded files; with `dry_run`, only tells what would happen.

    Each file is followed by its pristine copy, so an interrupted update can be repeated. Raises `ConfigError` while a
    conflict of an earlier update is open.
    """
    refuse_open_conflicts(project.root)
    scaffolds = Scaffolds.read(project.root)
    base, theirs = pristine(project.root), render(scaffolds)
    report = UpdateReport()
    for step in list(_steps(project.root, base, theirs)):
        if step.action is not None:
            getattr(report, step.action).append(step.path)
        if not dry_run:
            _execute(project.root, step, theirs.get(step.path))
    if not dry_run:
        write_files(project.root, {RECORD: scaffolds.text()})
    return report


def _steps(root: Path, base: dict[str, str], theirs: dict[str, str]) -> Iterator[_FileUpdate]:
    """Yields a step for each file that differs from its pristine copy in the new templates."""
    for path in sorted(base.keys() | theirs.keys()):
        old, new = base.get(path), theirs.get(path)
        if old != new:
            yield _step(path, old, read_text(root / path), new)


def _step(path: str, base: str | None, ours: str | None, theirs: str | None) -> _FileUpdate:
    if theirs is None:
        return _FileUpdate(path, "removed" if ours == base else "kept" if ours is not None else None)
    if ours == theirs:
        return _FileUpdate(path, None)
    if ours is None:
        return _FileUpdate(path, "written", theirs) if base is None else _FileUpdate(path, "kept")
    if ours == base:
        return _FileUpdate(path, "written", theirs)
    merged = None if base is None else merge(base, ours, theirs)
    return _FileUpdate(path, "conflicts", theirs) if merged is None else _FileUpdate(path, "merged", merged)


def _execute(root: Path, step: _FileUpdate, theirs: str | None) -> None:
    match step.action:
        case "written" | "merged":
            write_files(root, {step.path: step.content})
        case "conflicts":
            write_files(root, {f"{step.path}{NEW}": step.content})
        case "removed":
            remove_files(root, [step.path])
        case _:
            pass
    copy = f"{PRISTINE}/{step.path}"
    if theirs is None:
        remove_files(root, [copy])
    else:
        write_files(root, {copy: theirs})
