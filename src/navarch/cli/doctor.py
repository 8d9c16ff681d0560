"""`navarch doctor`: checks this machine, the project and its cluster, and prints the commands that fix what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from navarch.cli.output import Output, print_json

if TYPE_CHECKING:
    from navarch.project.doctor.finding import Finding

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def doctor(
    *,
    output: Output = "table",
    context: Annotated[str | None, typer.Option(help="The context of the kubeconfig.")] = None,
) -> None:
    """Check versions, extras, the project, its cluster, permissions and the clock, and print what fixes each fault.

    The exit code is 1 if a check fails; a warning does not count.
    """
    found = _findings(context)
    if output == "json":
        print_json(
            [{"check": each.check, "state": each.state, "detail": each.detail, "fix": each.fix} for each in found]
        )
    else:
        print_findings(found, Console(highlight=False))
    if any(each.state == "fail" for each in found):
        raise typer.Exit(1)


def _findings(context: str | None) -> list[Finding]:
    import asyncio  # noqa: PLC0415 - `navarch --help` needs none of these

    from navarch._base.clock import SystemClock  # noqa: PLC0415 - as above
    from navarch.project.doctor import environment  # noqa: PLC0415 - as above
    from navarch.project.doctor.cluster_state import check_cluster  # noqa: PLC0415 - as above
    from navarch.project.doctor.project_state import check_project, needed_extras  # noqa: PLC0415 - as above

    project = check_project(Path.cwd())
    cluster = asyncio.run(check_cluster(context, project, SystemClock()))
    return [
        environment.check_python(),
        environment.check_navarch(),
        *environment.check_extras(needed_extras(project.operator)),
        environment.check_kubectl(cluster.minor),
        *project.findings,
        *cluster.findings,
    ]


def print_findings(found: list[Finding], console: Console) -> None:
    """Prints a line for each check, and below it the command that fixes a fault."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for each in found:
        detail = Text(each.detail)
        if each.fix:
            detail.append(f"\n-> {each.fix}", "bold")
        table.add_row(Text(each.state, _COLOURS[each.state]), each.check, detail)
    console.print(table)
