"""`navarch run`: runs the operator of a project on a cluster, with a live view, and reloads it when a file is saved."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer
from typer.core import TyperCommand

from navarch.cli.connection import load_config
from navarch.cli.output import notes
from navarch.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from navarch.cli.run_display import LiveDisplay, LogDisplay
    from navarch.project.dev.operator_program import RunOptions
    from navarch.project.project import Project

RunOutput = Literal["auto", "text", "json"]
_DEFAULT_CLUSTER: Final = "default"
_NODES_SECONDS: Final = 30.0


class OptionalNameCommand(TyperCommand):
    """A command whose option `--cluster` may stand alone."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Gives a `--cluster` without a name its default."""
        following = [*args, "--"][1:]
        named = [
            f"{each}={_DEFAULT_CLUSTER}" if each == "--cluster" and after.startswith("-") else each
            for each, after in zip(args, following, strict=True)
        ]
        return super().parse_args(ctx, named)


def run(
    flags: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FLAG", help="Flags of the operator's program, after `--`: see python -m PACKAGE --help."
        ),
    ] = None,
    *,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="[NAME]", help="Run on this embedded cluster; start it if it is not running.", show_default=False
        ),
    ] = None,
    reload: Annotated[bool, typer.Option("--reload", help="Restart the operator when a source file is saved.")] = False,
    leader_elect: Annotated[bool, typer.Option("--leader-elect", help="Elect a leader, as in production.")] = False,
    health: Annotated[
        str, typer.Option("--health-probe-bind-address", metavar="ADDRESS", help="Of /healthz and /readyz; 0: off.")
    ] = "127.0.0.1:8081",
    metrics: Annotated[
        str, typer.Option("--metrics-bind-address", metavar="ADDRESS", help="Of /metrics; 0: off.")
    ] = "0",
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
    kubeconfig: Annotated[Path | None, typer.Option(help="The kubeconfig; by default the one of kubectl.")] = None,
    context: Annotated[str | None, typer.Option(help="The context of the kubeconfig.")] = None,
    output: Annotated[
        RunOutput,
        typer.Option("--output", "-o", help="auto: a live view on a terminal, else logs; text or json: log lines."),
    ] = "auto",
) -> None:
    """Run the operator of this project: on the cluster of kubectl, or with --cluster on an embedded one.

    With --cluster the CRDs are installed first, and the cluster keeps running afterwards: `navarch cluster down` stops it. On
    another cluster, install them with `navarch install`. Ctrl-C ends the operator; a second one ends it at once.
    """
    from navarch.operator.main import parse_options  # noqa: PLC0415 - `navarch --help` needs no operator
    from navarch.project.dev.operator_program import LoadError, RunOptions, run_here  # noqa: PLC0415 - as above
    from navarch.project.project import Project  # noqa: PLC0415 - as above

    project = Project.find(Path.cwd())
    given = [f"--health-probe-bind-address={health}", f"--metrics-bind-address={metrics}", f"--log-level={log_level}"]
    program = parse_options(
        [*given, *(["--leader-elect"] if leader_elect else []), *(flags or [])], os.environ, project.settings.package
    )
    console = notes()
    if cluster is not None and (kubeconfig or context):
        raise ConfigError("expected --cluster or a kubeconfig, got both; leave out --kubeconfig and --context")
    if kubeconfig is not None:
        os.environ["KUBECONFIG"] = str(kubeconfig.absolute())
    if cluster is not None:
        _start_cluster(cluster, console)
    else:
        load_config(None, context)  # fails before the code is imported, with the flags of this command
    options = RunOptions(
        program=program,
        log_format={"auto": "auto", "text": "console", "json": "json"}[output],  # type: ignore[arg-type]
        context=context,
        owns_cluster=cluster is not None,
    )
    is_live = output == "auto" and sys.stdout.isatty() and sys.stderr.isatty()
    try:
        if not is_live and not reload:
            code = run_here(project, options)
        else:
            code = _supervise(project, options, cluster, reload=reload, is_live=is_live)
    except LoadError as error:
        place = f"{error.failure.place}: " if error.failure.place else ""
        raise ConfigError(f"{place}{error.failure.cause}") from None
    finally:
        if cluster is not None:
            console.print(f"cluster {cluster!r} keeps running; stop it: navarch cluster down --name {cluster}")
    raise typer.Exit(code)


def _start_cluster(name: str, console: Console) -> None:
    """Starts the cluster unless it runs, waits for its nodes, and points this process at it."""
    from navarch._base.clock import SystemClock  # noqa: PLC0415 - `navarch --help` needs no cluster
    from navarch.cli.cluster_folders import folder_of, with_client  # noqa: PLC0415 - as above
    from navarch.cli.nodes import wait_until_ready  # noqa: PLC0415 - as above
    from navarch.cluster.embedded.cluster_folder import start_cluster  # noqa: PLC0415 - as above

    folder = folder_of(name)
    if (served := folder.running()) is None:
        began = SystemClock().now()
        with console.status(f"starting cluster {name!r} ..."):
            served = start_cluster(folder)
            if folder.nodes:
                with_client(folder, lambda client: wait_until_ready(client, folder, began, _NODES_SECONDS))
    console.print(f"cluster {name!r} is up at {served.url}; for kubectl: export KUBECONFIG={folder.kubeconfig}")
    os.environ["KUBECONFIG"] = str(folder.kubeconfig)


def _supervise(project: Project, options: RunOptions, cluster: str | None, *, reload: bool, is_live: bool) -> int:
    from navarch._base.clock import SystemClock  # noqa: PLC0415 - `navarch --help` needs no operator
    from navarch.project.dev.operator_program import remove_registrations  # noqa: PLC0415 - as above
    from navarch.project.dev.preload import preload  # noqa: PLC0415 - as above
    from navarch.project.dev.run_model import RunModel  # noqa: PLC0415 - as above
    from navarch.project.dev.supervisor import DevSupervisor  # noqa: PLC0415 - as above

    preload()
    clock = SystemClock()
    model = RunModel(
        operator=project.file.project_name,
        cluster=cluster or "",
        reload=reload,
        began=clock.monotonic(),
    )
    with _display(options, is_live=is_live) as display:
        code = DevSupervisor(project, options, model, display, clock).run()
    if options.owns_cluster:
        remove_registrations(model.operator)
    return code


def _display(options: RunOptions, *, is_live: bool) -> LiveDisplay | LogDisplay:
    from navarch.cli.run_display import LiveDisplay, LogDisplay  # noqa: PLC0415 - `navarch --help` needs no view

    return LiveDisplay() if is_live else LogDisplay(options.log_format, options.program.log_level)
