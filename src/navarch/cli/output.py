"""Prints the results of commands: as a table for people, as JSON for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

_WIDEST: Final = 10_000

Output = Annotated[Literal["table", "json"], typer.Option("--output", "-o", help="The output format.")]


def notes() -> Console:
    """Returns the console for messages to people: standard error, so that standard output has the result alone."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def print_rows(rows: Sequence[Mapping[str, Any]], output: str, *, empty: str) -> None:
    """Prints the rows, which have the same fields; prints `empty` if there are none."""
    if output == "json":
        print_json(rows)
    elif rows:
        print_table(rows)
    else:
        typer.echo(empty)


def print_written(output: str, files: Sequence[str], *, steps: Sequence[str], **more: object) -> None:
    """Prints the files that a command wrote, and the commands to go on with; `more` has further fields for programs."""
    if output == "json":
        print_json({**more, "written": list(files)})
        return
    for path in files:
        typer.echo(path)
    if not files:
        notes().print("nothing to write: every file is there already", markup=False)
    notes().print(f"Next: {' && '.join(steps)}" if steps else "", markup=False, end="\n" if steps else "")


def print_json(value: object) -> None:
    """Prints the value as indented JSON."""
    typer.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def print_table(rows: Sequence[Mapping[str, Any]], *, stderr: bool = False) -> None:
    """Prints the rows under the names of their fields; lines are never cut, so that they can be searched."""
    console = Console(stderr=stderr, highlight=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in rows[0]:
        table.add_column(column.upper(), no_wrap=True)
    for row in rows:
        table.add_row(*(Text("-" if value is None or value == "" else str(value)) for value in row.values()))
    whole = console.measure(table, options=console.options.update(width=_WIDEST)).maximum
    console.width = max(console.width, whole)
    console.print(table)
