"""Checks of a project: its files, its code, and what was generated from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from navarch.errors import ConfigError, NavarchError
from navarch.operator import Operator
from navarch.project.doctor.finding import Finding, time_limit
from navarch.project.generate import generate
from navarch.project.loading import load_kinds, load_project
from navarch.project.project import PROJECT_FILE, Project
from navarch.project.scaffold.record import NEW, open_conflicts
from navarch.project.scaffold.scaffolds import RECORD
from navarch.project.scaffold.update import update

_SECONDS: Final = 20.0
"""How long the project's code may take to be imported."""
_SHOWN: Final = 3


@dataclass(slots=True)
class ProjectState:
    """What was found of the project in a folder: None where a check failed."""

    findings: list[Finding] = field(default_factory=list)
    project: Project | None = None
    operator: Operator | None = None
    kinds: list[Any] = field(default_factory=list)


def check_project(folder: Path) -> ProjectState:
    """Checks the project that the folder is in, if there is one; each check needs the one before."""
    state = ProjectState()
    try:
        state.project = Project.find(folder)
    except ConfigError as error:
        is_missing = not any((each / PROJECT_FILE).exists() for each in (folder, *folder.parents))
        fix = "navarch init NAME --domain example.com" if is_missing else "restore the file from version control"
        detail = f"none in {folder}" if is_missing else str(error)
        state.findings.append(Finding("project", "warn" if is_missing else "fail", detail, fix))
        return state
    name, settings = state.project.file.project_name, state.project.settings
    state.findings.append(Finding("project", "ok", f"{name} in {state.project.root}, package {settings.package}"))
    state.findings.extend(_templates(state.project))
    try:
        with time_limit(_SECONDS, "the import of the project's code"):
            state.operator = load_project(state.project)
            state.kinds = list(load_kinds(state.project, state.operator))
    except (NavarchError, TimeoutError) as error:
        state.findings.append(Finding("operator", "fail", str(error), "repair the code at that place"))
        return state
    state.findings.append(_declared(state.operator))
    state.findings.extend(_generated(state.project))
    return state


def _templates(project: Project) -> Iterator[Finding]:
    """Checks that no update is half done, and that there is none to do; a project that was never scaffolded has none."""
    if not (project.root / RECORD).exists():
        return
    try:
        conflicts = open_conflicts(project.root)
        found = None if conflicts else update(project, dry_run=True)
    except NavarchError as error:
        yield Finding("templates", "fail", str(error), "restore the file from version control")
        return
    if found is None:
        fix = f"take over what you want from the files with {NEW} at the end of their names, and remove those files"
        yield Finding("templates", "fail", f"open conflicts of navarch update: {_listed(conflicts)}", fix)
        return
    newer = sorted([*found.written, *found.merged, *found.removed, *found.conflicts])
    if newer:
        yield Finding("templates", "warn", f"this navarch has newer ones for {_listed(newer)}", "navarch update")
    else:
        yield Finding("templates", "ok", "as of this navarch")


def needed_extras(operator: Operator | None) -> frozenset[str]:
    """Returns the extras without which the operator cannot run."""
    if operator is not None and (operator.admission_webhooks or operator.conversions):
        return frozenset({"webhook"})
    return frozenset()


def _declared(operator: Operator) -> Finding:
    counts = {
        "controller": len(operator.controllers),
        "webhook": len(operator.admission_webhooks),
        "conversion": len(operator.conversions),
        "background function": len(operator.backgrounds),
    }
    declared = ", ".join(f"{count} {what}{'s' * (count > 1)}" for what, count in counts.items() if count)
    if not declared:
        fix = "navarch create api --group GROUP --version v1alpha1 --kind KIND"
        return Finding("operator", "warn", f"{operator.name} declares nothing that runs", fix)
    return Finding("operator", "ok", f"{operator.name}: {declared}")


def _generated(project: Project) -> Iterator[Finding]:
    try:
        with time_limit(_SECONDS, "the rendering of the manifests"):
            reports = generate(project, check=True).values()
    except (NavarchError, TimeoutError) as error:
        yield Finding("generated files", "fail", str(error), "navarch generate")
        return
    stale = sorted(path for each in reports for path in (*each.written, *each.removed))
    edited = sorted(path for each in reports for path in each.edited)
    if edited:
        fix = "move the changes to config/patches, remove these files, then: navarch generate"
        yield Finding("generated files", "warn", f"edited by hand: {_listed(edited)}", fix)
    if stale:
        yield Finding("generated files", "warn", f"not up to date: {_listed(stale)}", "navarch generate")
    if not edited and not stale:
        yield Finding("generated files", "ok", f"{sum(len(each.unchanged) for each in reports)} are up to date")


def _listed(paths: list[str]) -> str:
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return ", ".join(paths[:_SHOWN]) + more
