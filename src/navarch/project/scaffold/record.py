"""Writes scaffolded files, their pristine copies and the records of a project, so that an interrupted command can be repeated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from navarch.errors import ConfigError
from navarch.project.files import read_text, write_files
from navarch.project.project import PROJECT_FILE
from navarch.project.project_file import ApiEntry, ProjectFile, ResourceEntry, WebhooksEntry
from navarch.project.scaffold.scaffolds import (
    PRISTINE,
    RECORD,
    ControllerScaffold,
    ConversionScaffold,
    Scaffolds,
    TypesScaffold,
    WebhookScaffold,
)

__all__ = ["NEW", "open_conflicts", "pristine", "project_file_with", "refuse_open_conflicts", "write_scaffolded"]

NEW = ".new"
"""Follows the name of a file that an update could not merge."""


def write_scaffolded(root: Path, files: Mapping[str, str], scaffolds: Scaffolds, file: ProjectFile) -> list[str]:
    """Writes the files, their pristine copies and, last, the records; returns the changed files of the user, sorted.

    Until the records are there the command has not happened: the same command writes what is missing.
    """
    written = write_files(root, files)
    write_files(root, {f"{PRISTINE}/{path}": content for path, content in files.items()})
    write_files(root, {PROJECT_FILE: file.text(), RECORD: scaffolds.text()})
    return written


def project_file_with(file: ProjectFile, scaffolds: Scaffolds, keys: Iterable[tuple[str, str, str]]) -> ProjectFile:
    """Returns `PROJECT` with these kinds as the scaffolds have them; a kind without scaffolds is removed."""
    resources = list(file.resources)
    for key in keys:
        place = next((index for index, each in enumerate(resources) if each.key == key), len(resources))
        entry = _entry(scaffolds, key)
        resources[place : place + 1] = [] if entry is None else [entry]
    return msgspec.structs.replace(file, resources=resources)


def _entry(scaffolds: Scaffolds, key: tuple[str, str, str]) -> ResourceEntry | None:
    parts = [part for part in scaffolds.parts if part.key == key]
    if not parts:
        return None
    group, version, kind = key
    domain = scaffolds.project.domain
    types = next((part for part in parts if isinstance(part, TypesScaffold)), None)
    if types is not None:
        short, rest = types.short_group, domain
    else:
        short, _, rest = group.partition(".")
    webhooks = WebhooksEntry(
        conversion=any(isinstance(part, ConversionScaffold) for part in parts),
        defaulting=any(isinstance(part, WebhookScaffold) and part.type == "defaulting" for part in parts),
        validation=any(isinstance(part, WebhookScaffold) and part.type == "validation" for part in parts),
        webhook_version="v1",
    )
    is_builtin = parts[0].class_module.startswith("navarch.k8s.")
    return ResourceEntry(
        api=ApiEntry(namespaced=types.namespaced) if types is not None else None,
        controller=any(isinstance(part, ControllerScaffold) for part in parts),
        core=is_builtin,
        domain=rest,
        external=types is None and not is_builtin,
        group=short or ("core" if is_builtin else ""),
        kind=kind,
        path=parts[0].class_module,
        plural=types.plural if types is not None else "",
        version=version,
        webhooks=webhooks or None,
    )


def pristine(root: Path) -> dict[str, str]:
    """Returns each scaffolded file as it was rendered last, by its path."""
    folder = root / PRISTINE
    found = sorted(each for each in folder.rglob("*") if each.is_file() and not each.name.endswith(".unfinished"))
    return {each.relative_to(folder).as_posix(): read_text(each) or "" for each in found}


def open_conflicts(root: Path) -> list[str]:
    """Returns the scaffolded files that an update could not merge: a file with `.new` at its end is beside them."""
    folder = root / PRISTINE
    found = (each.relative_to(folder).as_posix() for each in folder.rglob("*") if each.is_file())
    return sorted(path for path in found if (root / f"{path}{NEW}").exists())


def refuse_open_conflicts(root: Path) -> None:
    """Raises `ConfigError` while a conflict of an update is open. Every command that writes to a project calls this first."""
    found = open_conflicts(root)
    if found:
        raise ConfigError(
            f"expected no open conflict, got {len(found)} of the last navarch update: {', '.join(found)}; for each of them "
            f"take over what you want from the file with {NEW} at the end of its name, remove that file, and run this again"
        )
