"""`navarch generate …`: writes what follows from the code of a project."""

from __future__ import annotations

import typer

generate = typer.Typer(no_args_is_help=True, help="Write manifests and code that follow from the code of a project.")
