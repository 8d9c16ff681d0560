"""`navarch init`: begins a project."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from navarch.cli.output import Output, print_written
from navarch.errors import ConfigError


def init(
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="The project, and its new folder; by default the current folder.")
    ] = "",
    *,
    domain: Annotated[str, typer.Option(help="The domain of the API groups, such as example.com.")],
    project_name: Annotated[
        str, typer.Option(help="The name of a project in the current folder, if it is not the folder's.")
    ] = "",
    repo: Annotated[str, typer.Option(help="The address of the source code.")] = "",
    owner: Annotated[str, typer.Option(help="The owner of the copyright.")] = "",
    license: Annotated[  # noqa: A002 - the name of the flag
        Literal["apache2", "none"], typer.Option(help="The licence that files name at their top.")
    ] = "apache2",
    namespaced: Annotated[
        bool, typer.Option("--namespaced", help="The operator works in its own namespace alone.")
    ] = False,
    output: Output = "table",
) -> None:
    """Begin a project: write PROJECT, Makefile, Dockerfile, pyproject.toml, the package and its tests.

    A folder with other files is refused. Go on with: navarch create api.
    """
    from navarch.project.generate import generate  # noqa: PLC0415 - as below
    from navarch.project.scaffold.init import init_project  # noqa: PLC0415 - the help of navarch starts sooner
    from navarch.project.scaffold.names import check_project_name  # noqa: PLC0415 - as above
    from navarch.project.scaffold.scaffolds import ProjectScaffold  # noqa: PLC0415 - as above

    here = Path.cwd()
    if name and project_name:
        raise ConfigError("expected NAME or --project-name, got both; leave one of them out")
    chosen = check_project_name(name or project_name or here.name)
    scaffold = ProjectScaffold(name=chosen, domain=domain, repo=repo, owner=owner, license=license)
    folder = here / chosen if name else here
    written = init_project(folder, scaffold, namespaced=namespaced)
    reports = generate(written.project, ("crd", "rbac", "manifests"))
    generated = [path for report in reports.values() for path in report.written]
    steps = [f"cd {chosen}"] if name else []
    print_written(
        output,
        written.files,
        steps=[*steps, "navarch create api --group NAME --version v1alpha1 --kind KIND"],
        folder=str(folder),
        generated=sorted(generated),
    )
