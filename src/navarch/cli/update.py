"""`navarch update`: moves a project to the templates of this version."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from navarch._version import __version__
from navarch.cli.output import Output, notes, print_json
from navarch.errors import ConfigError


def update(
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Write nothing; tell what would be written.")] = False,
    output: Output = "table",
) -> None:
    """Merge the templates of this version into the files of the project; your changes stay.

    Where both changed the same lines, your file stays as it is, and the new one is written beside it with .new at the end of
    its name. The exit code is 1 then, and commands that write to the project refuse until that file is gone.
    """
    from navarch.project.project import Project  # noqa: PLC0415 - the help of navarch starts sooner
    from navarch.project.scaffold.record import NEW  # noqa: PLC0415 - as above
    from navarch.project.scaffold.update import update as update_project  # noqa: PLC0415 - as above

    report = update_project(Project.find(Path.cwd()), dry_run=dry_run)
    actions = {
        "written": report.written,
        "merged": report.merged,
        "removed": report.removed,
        "conflict": report.conflicts,
        "kept": report.kept,
    }
    if output == "json":
        print_json({"dryRun": dry_run, **actions})
    else:
        for action, paths in actions.items():
            for path in paths:
                typer.echo(f"{action:<8}  {path}")
        if not any(actions.values()):
            notes().print(f"up to date with the templates of navarch {__version__}", markup=False)
    if report.conflicts and not dry_run:
        raise ConfigError(
            f"expected changes that can be merged, got the same lines changed by you and by the templates: "
            f"{', '.join(report.conflicts)}; take over what you want from the files with {NEW} at the end of their names, and "
            f"remove those files"
        )
