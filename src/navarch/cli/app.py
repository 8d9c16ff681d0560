"""The command line `navarch`: its commands and exit codes."""

from __future__ import annotations

import typer
from rich.console import Console
from rich.text import Text

from navarch._version import __version__
from navarch.cli.cluster import cluster
from navarch.cli.create import create
from navarch.cli.delete import delete
from navarch.cli.doctor import doctor
from navarch.cli.generate import generate
from navarch.cli.init import init
from navarch.cli.install import install, uninstall
from navarch.cli.migrate import migrate
from navarch.cli.run import OptionalNameCommand
from navarch.cli.run import run as run_operator
from navarch.cli.update import update
from navarch.errors import NavarchError

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
app.command()(init)
app.add_typer(create, name="create")
app.add_typer(delete, name="delete")
app.command()(update)
app.add_typer(cluster, name="cluster")
app.add_typer(generate, name="generate")
app.command()(install)
app.command()(uninstall)
app.command()(doctor)
app.command()(migrate)
app.command("run", cls=OptionalNameCommand)(run_operator)


def run() -> int:
    """Runs a command, prints its error in one sentence, and returns the exit code: 1 for an error, 130 for an interruption."""
    try:
        app()
    except (NavarchError, OSError) as error:  # OSError: a full disk, for example
        Console(stderr=True, soft_wrap=True).print(Text.assemble(("error: ", "bold red"), str(error)))
        return 1
    except KeyboardInterrupt:
        return 130
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    return 0


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Show the version."),
) -> None:
    """Navarch, the Operator Framework for Python. An operator is a program: `python my_operator.py`. These commands run clusters to try it on."""
