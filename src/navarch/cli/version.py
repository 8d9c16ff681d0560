"""`navarch version`: the versions of navarch and Python."""

from __future__ import annotations

import platform

import typer

from navarch._version import __version__
from navarch.cli.output import Output, print_json


def version(*, output: Output = "table") -> None:
    """Show the versions of navarch and Python; `navarch --version` prints the first alone."""
    if output == "json":
        print_json({"navarch": __version__, "python": platform.python_version()})
    else:
        typer.echo(f"navarch {__version__}, Python {platform.python_version()}")
