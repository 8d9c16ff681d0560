"""The command line `navarch`: its commands and exit codes.

Command modules are imported when their command runs: `navarch --help` shows one line for each from the table below.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final, NamedTuple

import typer
from typer.core import TyperGroup
from typer.main import get_command_from_info, get_group

from navarch._version import __version__
from navarch.errors import NavarchError


class LazyCommand(NamedTuple):
    """Where the function or group of a command is, and its line in `navarch --help`."""

    place: str
    """The module in `navarch.cli`, and the name in it."""
    help: str
    command_class: str = ""
    """The name of its class in the same module, if it is not typer's own."""


COMMANDS: Final = {
    "init": LazyCommand("init:init", "Begin a project."),
    "create": LazyCommand("create:create", "Add kinds, reconcilers and webhooks to a project."),
    "delete": LazyCommand("delete:delete", "Remove kinds and webhooks from a project."),
    "generate": LazyCommand("generate:generate", "Write manifests and code that follow from the code of a project."),
    "install": LazyCommand("install:install", "Apply the CRDs of the project to a cluster."),
    "uninstall": LazyCommand("install:uninstall", "Delete the CRDs of the project from a cluster."),
    "run": LazyCommand("run:run", "Run the operator of this project.", "OptionalNameCommand"),
    "deploy": LazyCommand("deploy:deploy", "Apply the operator of the project to a cluster, and wait until it works."),
    "status": LazyCommand("status:status", "Show whether the deployed operator works, and if not, why."),
    "rollback": LazyCommand("rollback:rollback", "Deploy an earlier revision of the operator again."),
    "undeploy": LazyCommand("undeploy:undeploy", "Delete the operator of the project from a cluster."),
    "update": LazyCommand("update:update", "Merge newer templates into the files of the project."),
    "doctor": LazyCommand("doctor:doctor", "Check versions, extras, cluster, permissions and clock."),
    "cluster": LazyCommand("cluster:cluster", "Embedded Kubernetes clusters on this machine."),
    "version": LazyCommand("version:version", "Show the versions of navarch and Python."),
    "registry": LazyCommand("registry:registry", "Registries of images: serve one, list and delete what is in one."),
    "image": LazyCommand(
        "image:image", "Images of projects, without a container engine: lock, build, push, inspect, load."
    ),
    "migrate": LazyCommand("migrate:migrate", "Rewrite stored objects in the stored version of their kind."),
}


class LazyGroup(TyperGroup):
    """The group of all commands, which imports the module of a command when it is first needed."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = dict.fromkeys(COMMANDS, self)  # typer reads the names alone: for lists, and for suggestions

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - as typer calls it
        """Returns the command; None for an unknown name."""
        found = COMMANDS.get(cmd_name)
        return None if found is None else _load(cmd_name, found)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - as above
        """Writes a line for each command, without importing it."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.help) for name, command in COMMANDS.items()])


def _load(name: str, command: LazyCommand) -> Any:
    place, _, attribute = command.place.partition(":")
    module = import_module(f"navarch.cli.{place}")
    found = getattr(module, attribute)
    if isinstance(found, typer.Typer):
        group = get_group(found)
        group.name = name
        return group
    holder = typer.Typer()
    holder.command(name, cls=getattr(module, command.command_class) if command.command_class else None)(found)
    return get_command_from_info(
        holder.registered_commands[0],
        pretty_exceptions_short=holder.pretty_exceptions_short,
        rich_markup_mode=holder.rich_markup_mode,
    )


# Plain text: formatting this help with rich would take longer than everything else.
app = typer.Typer(cls=LazyGroup, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)


def run() -> int:
    """Runs a command, prints its error in one sentence, and returns the exit code: 1 for an error, 130 for an interruption."""
    try:
        app()
    except (NavarchError, OSError) as error:  # OSError: a full disk, for example
        from rich.console import Console  # noqa: PLC0415 - the help of navarch starts sooner
        from rich.text import Text  # noqa: PLC0415 - as above

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
    """Navarch, the Operator Framework for Python: begin a project, generate its manifests, and run it on a cluster."""
