"""`navarch generate …`: writes what follows from the code of a project."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from navarch.cli.generate_models import models
from navarch.cli.output import Output, notes, print_json
from navarch.errors import ConfigError

if TYPE_CHECKING:
    from navarch.project.generate import Part
    from navarch.project.generated_files import GenerateReport

generate = typer.Typer(
    invoke_without_command=True, help="Write manifests and code that follow from the code of a project."
)

Check = Annotated[bool, typer.Option("--check", help="Write nothing; fail if a file is not up to date.")]


@generate.callback()
def _everything(context: typer.Context, *, check: Check = False, output: Output = "table") -> None:
    """Write everything that follows from the code of a project: CRDs, roles, manifests, dist/install.yaml, the Helm chart, dashboards.

    The code in `src`, `[tool.navarch]` in pyproject.toml and the patches in `config/patches` decide. A generated file that
    somebody has edited is reported and left alone.
    """
    if context.invoked_subcommand is None:
        _generate("crd", "rbac", "manifests", "install", "chart", "dashboards", check=check, output=output)


@generate.command()
def crd(*, check: Check = False, output: Output = "table") -> None:
    """Write the CRDs of the project's kinds: config/crd."""
    _generate("crd", check=check, output=output)


@generate.command()
def rbac(*, check: Check = False, output: Output = "table") -> None:
    """Write the roles of the operator and of its users: config/rbac."""
    _generate("rbac", check=check, output=output)


@generate.command()
def manifests(*, check: Check = False, output: Output = "table") -> None:
    """Write all kustomize folders, CRDs and roles included: config."""
    _generate("crd", "rbac", "manifests", check=check, output=output)


@generate.command()
def install(*, check: Check = False, output: Output = "table") -> None:
    """Write the whole installation as one file: dist/install.yaml."""
    _generate("install", check=check, output=output)


@generate.command()
def chart(*, check: Check = False, output: Output = "table") -> None:
    """Write the installation as a Helm chart: dist/chart."""
    _generate("chart", check=check, output=output)


@generate.command()
def dashboards(*, check: Check = False, output: Output = "table") -> None:
    """Write the Grafana dashboard and the alerts of Prometheus: grafana."""
    _generate("dashboards", check=check, output=output)


generate.command()(models)


def _generate(*parts: Part, check: bool, output: str) -> None:
    from navarch.project.generate import generate as run  # noqa: PLC0415 - imports the schema generator
    from navarch.project.project import Project  # noqa: PLC0415 - as above

    reports = run(Project.find(Path.cwd()), parts, check=check)
    if output == "json":
        print_json({part: _fields(report) for part, report in reports.items()})
    else:
        _print(reports, check=check)
    edited = sorted(path for report in reports.values() for path in report.edited)
    stale = sorted(path for report in reports.values() for path in (*report.written, *report.removed))
    complaints = []
    if check and stale:
        complaints.append(f"expected up-to-date files, got stale ones: {', '.join(stale)}; run: navarch generate")
    if edited:
        complaints.append(
            f"expected generated files as they were written, got edited ones, which are left alone: {', '.join(edited)}; move "
            f"your changes to config/patches, remove these files, and run: navarch generate"
        )
    if complaints:
        raise ConfigError("\n".join(complaints))


def _fields(report: GenerateReport) -> dict[str, Any]:
    return {
        "written": report.written,
        "unchanged": report.unchanged,
        "removed": report.removed,
        "edited": report.edited,
    }


def _print(reports: Mapping[Part, GenerateReport], *, check: bool) -> None:
    """Prints what changed; files that did not are only counted."""
    would = "would be " if check else ""
    for report in reports.values():
        for path in report.written:
            typer.echo(f"{would}written  {path}")
        for path in report.removed:
            typer.echo(f"{would}removed  {path}")
    unchanged = sum(len(report.unchanged) for report in reports.values())
    notes().print(f"{unchanged} files are up to date")
