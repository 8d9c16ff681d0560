"""`navarch image load`: images, without a container engine."""

from __future__ import annotations

import typer

from navarch.cli.image_load import load

image = typer.Typer(no_args_is_help=True, help="Images, without a container engine.")
image.command()(load)


@image.callback()
def _group() -> None:
    """Keeps the name of the only command."""
