"""`navarch cluster up | down | status | kubeconfig`: embedded clusters that outlive the command."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from navarch.cli.kubeconfigs import merged
from navarch.cluster.embedded.starting import remove, start
from navarch.cluster.embedded.state import ClusterFolder, Store, folders, state_root
from navarch.errors import ConfigError

__all__ = ["cluster"]

cluster = typer.Typer(no_args_is_help=True, help="Embedded Kubernetes clusters on this machine.")

Name = Annotated[str, typer.Option("--name", "-n", help="Which cluster; several can run side by side.")]
Output = Annotated[Literal["table", "json"], typer.Option("--output", "-o", help="How it is printed.")]


@cluster.command()
def up(
    name: Name = "default",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; the one it had, or any that is free.")] = 0,
    store: Annotated[
        Store | None, typer.Option(help="What keeps a new cluster's objects: a file, if nothing else is said.")
    ] = None,
    nodes: Annotated[
        int | None,
        typer.Option(min=0, max=100, help="How many nodes, whose pods are processes: as many as before, or one."),
    ] = None,
) -> None:
    """Start a cluster in the background; what it held before is there again, unless it was in memory."""
    folder, console = _folder(name), Console(stderr=True, highlight=False)
    if (running := folder.running()) is not None:
        console.print(f"cluster {name!r} is already up at {running.url}")
    else:
        with console.status(f"starting cluster {name!r} ..."):
            running = start(folder, port, store, nodes)
        console.print(f"cluster {name!r} is up at {running.url}")
    typer.echo(folder.environment(), nl=False)


@cluster.command()
def down(
    name: Name = "default",
    delete: Annotated[bool, typer.Option("--delete", help="Remove what it holds, too.")] = False,
) -> None:
    """Stop a cluster. What it holds stays for the next start."""
    folder, console = _existing(name), Console(stderr=True, highlight=False)
    running = folder.running()
    if running is not None:
        with console.status(f"stopping cluster {name!r} ..."):
            running.stop()
    if delete:
        remove(folder)
    console.print(f"cluster {name!r} {'is down' if running else 'was not running'}{' and removed' if delete else ''}")


@cluster.command()
def status(output: Output = "table") -> None:
    """Show the clusters of this machine."""
    rows = [_row(folder) for folder in folders(state_root(os.environ))]
    if output == "json":
        typer.echo(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode())
        return
    if not rows:
        typer.echo("there are no clusters; `navarch cluster up` starts one")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in rows[0]:
        table.add_column(column.upper(), no_wrap=True)
    for row in rows:
        table.add_row(*(str(value or "-") for value in row.values()))
    console = Console(highlight=False)
    console.print(table, crop=False, width=max(console.width, console.measure(table).maximum))


@cluster.command()
def kubeconfig(
    name: Name = "default",
    merge: Annotated[
        bool, typer.Option("--merge", help="Print your kubeconfig with this cluster in it; nothing is written.")
    ] = False,
) -> None:
    """Print the path of a cluster's kubeconfig."""
    folder = _existing(name)
    if not folder.kubeconfig.is_file():
        raise ConfigError(f"cluster {name!r} has never run; start it with `navarch cluster up --name {name}`")
    if not merge:
        typer.echo(str(folder.kubeconfig))
        return
    own = os.environ.get("KUBECONFIG", "").split(os.pathsep)[0] or str(Path.home() / ".kube" / "config")
    typer.echo(merged(Path(own), folder.kubeconfig), nl=False)


def _folder(name: str) -> ClusterFolder:
    return ClusterFolder(state_root(os.environ), name)


def _existing(name: str) -> ClusterFolder:
    folder = _folder(name)
    if not folder.exists():
        known = ", ".join(each.name for each in folders(state_root(os.environ))) or "none"
        raise ConfigError(f"there is no cluster {name!r}; there are: {known}")
    return folder


def _row(folder: ClusterFolder) -> dict[str, Any]:
    running = folder.running()
    return {
        "name": folder.name,
        "state": "running" if running else "stopped",
        "url": running.url if running else None,
        "pid": running.identity.pid if running else None,
        "since": running.since if running else None,
        "folder": str(folder.path),
    }
