"""Removes kinds and webhooks from a project: `navarch delete api`, `navarch delete webhook`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from navarch.errors import ConfigError
from navarch.project.files import read_text, remove_files, write_files
from navarch.project.project import PROJECT_FILE, Project
from navarch.project.scaffold.create_api import api_group, similar_kind
from navarch.project.scaffold.record import project_file_with, refuse_open_conflicts
from navarch.project.scaffold.render import render, render_part
from navarch.project.scaffold.scaffolds import (
    PRISTINE,
    RECORD,
    ConversionScaffold,
    KindScaffold,
    Scaffolds,
    TypesScaffold,
    WebhookScaffold,
    WebhookType,
)

__all__ = ["ScaffoldDeletion", "plan_delete_api", "plan_delete_webhooks"]


@dataclass(frozen=True, slots=True)
class ScaffoldDeletion:
    """Scaffolds that can be removed, and their files that exist."""

    project: Project
    parts: Sequence[KindScaffold]
    files: list[str]
    kept: list[str]
    """Modules of `create api --crd` that stay, each with the reason."""

    def execute(self) -> Project:
        """Removes the files, their pristine copies and, last, the records, so that an interrupted run can be repeated."""
        root = self.project.root
        before = Scaffolds.read(root)
        after = before.without(*self.parts)
        file = project_file_with(self.project.file, after, {part.key for part in self.parts})
        remove_files(root, [*self.files, *_bytecode(root, self.files)])
        gone = render(before).keys() - render(after).keys()
        remove_files(root, [f"{PRISTINE}/{path}" for path in sorted(gone)])
        write_files(root, {PROJECT_FILE: file.text(), RECORD: after.text()})
        return self.project.with_file(file)


def plan_delete_api(project: Project, group: str, version: str, kind: str) -> ScaffoldDeletion:
    """Returns what belongs to that version of the kind: class, sample, reconcilers, webhooks, conversions and tests.

    Raises `ConfigError` for an unknown kind, for files that the user changed, and while other files import the class.
    """
    refuse_open_conflicts(project.root)
    scaffolds = Scaffolds.read(project.root)
    keys = _keys(project, scaffolds, group, version, kind)
    return _plan(project, scaffolds, [part for part in scaffolds.parts if part.key in keys or _is_hub(part, keys)])


def plan_delete_webhooks(
    project: Project, group: str, version: str, kind: str, *, types: Iterable[WebhookType], conversion: bool
) -> ScaffoldDeletion:
    """Returns these webhooks of the kind, with their tests. Raises `ConfigError` as `plan_delete_api` does."""
    refuse_open_conflicts(project.root)
    scaffolds = Scaffolds.read(project.root)
    keys = _keys(project, scaffolds, group, version, kind)
    parts: list[KindScaffold] = []
    for each in types:
        found = [part for part in scaffolds.parts if isinstance(part, WebhookScaffold) and part.type == each]
        parts += _found(each, [part for part in found if part.key in keys], kind, version)
    if conversion:
        pairs = [part for part in scaffolds.parts if isinstance(part, ConversionScaffold)]
        parts += _found(
            "conversion", [part for part in pairs if part.key in keys or _is_hub(part, keys)], kind, version
        )
    if not parts:
        raise ConfigError(
            "expected a webhook to delete, got none; add --defaulting, --programmatic-validation or --conversion"
        )
    return _plan(project, scaffolds, parts)


def _found(what: str, parts: Sequence[KindScaffold], kind: str, version: str) -> Sequence[KindScaffold]:
    if not parts:
        raise ConfigError(f"expected a {what} webhook of {kind} {version}, got none in {RECORD}")
    return parts


def _keys(project: Project, scaffolds: Scaffolds, group: str, version: str, kind: str) -> set[tuple[str, str, str]]:
    """Returns the kinds that these flags name. Raises `ConfigError` if none of them has scaffolds."""
    keys = {(api_group(project, group), version, kind), *_foreign_keys(scaffolds, group, version, kind)}
    if not any(part.key in keys or _is_hub(part, keys) for part in scaffolds.parts):
        known = dict.fromkeys(f"{each.group}/{each.version} {each.kind}" for each in project.file.resources)
        raise ConfigError(
            f"expected a kind of this project, got {kind} of {group or 'no group'}/{version}; "
            f"{similar_kind(project, group, version, kind)}there are: {', '.join(known) or 'none'}"
        )
    return keys


def _foreign_keys(scaffolds: Scaffolds, group: str, version: str, kind: str) -> set[tuple[str, str, str]]:
    """Returns the kind of Kubernetes or of another project that these flags name."""
    named = {"" if group == "core" else group}
    return {
        part.key
        for part in scaffolds.parts
        if (part.version, part.kind) == (version, kind)
        and not any(types.key == part.key for types in scaffolds.types())
        and (part.group in named or part.group.partition(".")[0] in named)
    }


def _is_hub(part: KindScaffold, keys: set[tuple[str, str, str]]) -> bool:
    return isinstance(part, ConversionScaffold) and (part.group, part.hub_version, part.kind) in keys


def _plan(project: Project, scaffolds: Scaffolds, parts: Sequence[KindScaffold]) -> ScaffoldDeletion:
    remaining = render(scaffolds.without(*parts))
    rendered = {path: text for part in parts for path, text in render_part(scaffolds.project, part).items()}
    candidates = [path for path in rendered if path not in remaining]
    found = {path: text for path in candidates if (text := read_text(project.root / path)) is not None}
    changed = [path for path, text in found.items() if text != read_text(project.root / PRISTINE / path)]
    if changed:
        raise ConfigError(
            f"expected files as they were scaffolded, got files with your changes: {', '.join(sorted(changed))}; nothing was "
            f"deleted. Move these files away or remove them, and run this again"
        )
    modules = [part.class_module for part in parts if isinstance(part, TypesScaffold)]
    importing = _importing(project.root, modules, found)
    if importing:
        raise ConfigError(
            f"expected no other file to import {', '.join(modules)}, got {', '.join(importing)}; nothing was deleted. Remove "
            f"these imports, and run this again"
        )
    models, kept = _models(project, scaffolds, parts, found)
    return ScaffoldDeletion(project, parts, sorted([*found, *models]), kept)


def _models(
    project: Project, scaffolds: Scaffolds, parts: Sequence[KindScaffold], deleted: Iterable[str]
) -> tuple[list[str], list[str]]:
    """Returns the generated modules of groups of other projects that nothing needs without these parts, and, with the reason,
    those that stay. `create api --crd` writes all versions of a kind, so the whole group is looked at.
    """
    package = f"{project.settings.package}.models."
    groups = {part.class_module.rpartition(".")[0] for part in parts if part.class_module.startswith(package)}
    groups -= {part.class_module.rpartition(".")[0] for part in scaffolds.without(*parts).parts}
    if not groups:
        return [], []
    from navarch.project.models.model_files import is_as_written  # noqa: PLC0415 - takes as long as all the rest

    removed: list[str] = []
    kept: list[str] = []
    for group in sorted(groups):
        folder = project.root / "src" / group.replace(".", "/")
        for file in sorted(each for each in folder.glob("*.py") if each.name != "__init__.py"):
            path, module = file.relative_to(project.root).as_posix(), f"{group}.{file.stem}"
            importing = _importing(project.root, [module], deleted)
            if importing:
                kept.append(f"{path}: {', '.join(importing)} imports it")
            elif not is_as_written(read_text(file) or ""):
                kept.append(f"{path}: it has your changes")
            else:
                removed.append(path)
        for each in (folder, folder.parent):
            removed += _bare_package(project.root, each, removed)
    return removed, kept


def _bare_package(root: Path, folder: Path, removed: Sequence[str]) -> list[str]:
    """Returns the `__init__.py` of a package that has nothing else left, and nothing but a docstring in it."""
    files = (file for file in folder.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    left = {file.relative_to(root).as_posix() for file in files} - set(removed)
    path = (folder / "__init__.py").relative_to(root).as_posix()
    is_bare = left == {path} and all(
        isinstance(each, ast.Expr) for each in ast.parse(read_text(folder / "__init__.py") or "").body
    )
    return [path] if is_bare else []


def _importing(root: Path, modules: Iterable[str], deleted: Iterable[str]) -> list[str]:
    """Returns the Python files of the project, but those to be deleted, that import one of the modules."""
    patterns = [
        rf"{re.escape(module)}\b|from {re.escape(package)} import .*\b{name}\b"
        for module in modules
        for package, _, name in [module.rpartition(".")]
    ]
    if not patterns:
        return []
    wanted = re.compile("|".join(patterns))
    files = (file for folder in ("src", "tests") for file in sorted((root / folder).rglob("*.py")))
    paths = {file.relative_to(root).as_posix(): file for file in files}
    return [path for path, file in paths.items() if path not in set(deleted) and wanted.search(read_text(file) or "")]


def _bytecode(root: Path, files: Iterable[str]) -> list[str]:
    """Returns the compiled forms of these modules, which would keep their folders."""
    found = []
    for file in (root / path for path in files if path.endswith(".py")):
        found += [each.relative_to(root).as_posix() for each in file.parent.glob(f"__pycache__/{file.stem}.*.pyc")]
    return found
