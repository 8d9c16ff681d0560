"""How commands print what they found: as a table for people, as JSON for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

__all__ = ["Output", "notes", "print_json", "print_rows", "print_table"]

_WIDEST: Final = 10_000

Output = Annotated[Literal["table", "json"], typer.Option("--output", "-o", help="How it is printed.")]


def notes() -> Console:
    """Where people are told what happens: on standard error, so that the output stays a program's."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def print_rows(rows: Sequence[Mapping[str, Any]], output: str, *, empty: str) -> None:
    """All rows, which have the same fields; `empty` is what people read if there are none."""
    if output == "json":
        print_json(rows)
    elif rows:
        print_table(rows)
    else:
        typer.echo(empty)


def print_json(value: object) -> None:
    """The value, indented."""
    typer.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def print_table(rows: Sequence[Mapping[str, Any]], *, stderr: bool = False) -> None:
    """The rows under the names of their fields; lines are never cut, since they may be searched."""
    console = Console(stderr=stderr, highlight=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in rows[0]:
        table.add_column(column.upper(), no_wrap=True)
    for row in rows:
        table.add_row(*(Text("-" if value is None or value == "" else str(value)) for value in row.values()))
    whole = console.measure(table, options=console.options.update(width=_WIDEST)).maximum
    console.width = max(console.width, whole)
    console.print(table)
