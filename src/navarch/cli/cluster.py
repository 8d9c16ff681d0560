"""`navarch cluster`: starts, stops and shows embedded clusters, which run in the background."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

import typer

from navarch._base.clock import SystemClock
from navarch.cli.cluster_folders import (
    ClusterHealth,
    Name,
    all_folders,
    ask_health,
    existing,
    folder_of,
    merge_kubeconfigs,
    running,
    with_client,
)
from navarch.cli.images import image
from navarch.cli.nodes import READY, node, node_rows, wait_until_ready
from navarch.cli.output import Output, notes, print_json, print_rows, print_table
from navarch.cluster.embedded.cluster_folder import ClusterFolder, StoreKind, remove_cluster, start_cluster
from navarch.errors import ConfigError, NavarchError

cluster = typer.Typer(no_args_is_help=True, help="Embedded Kubernetes clusters on this machine.")
_JOIN_SECONDS: Final = 30.0
_UNHEALTHY: Final = 3
"""The exit code if a running cluster is degraded or does not answer."""
_STATUS_SECONDS: Final = 3.0
"""The time limit for the list of nodes; a slower cluster is shown without its nodes."""
_ENDED: Final = {
    (True, False): "is down",
    (True, True): "is down and removed",
    (False, False): "was not running",
    (False, True): "was not running, and is removed",
}
"""The result of `down`: by whether the cluster ran, and whether its objects were deleted."""


cluster.add_typer(node, name="node")


cluster.add_typer(image, name="image")


@cluster.command()
def up(
    name: Name = "default",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port; 0 takes the port that the cluster had, or any free one.")
    ] = 0,
    store: Annotated[
        StoreKind | None, typer.Option(help="Where a new cluster stores its objects; the default is a file.")
    ] = None,
    nodes: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=100,
            help="The number of nodes; their pods are processes. The default is the number before, or one.",
        ),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until the nodes are ready.")] = True,
) -> None:
    """Start a cluster in the background, with the objects that it had, unless they were in memory.

    Point kubectl in this shell at it: eval "$(navarch cluster up)"
    """
    folder, console, began = folder_of(name), notes(), None
    if (served := folder.running()) is not None:
        console.print(f"cluster {name!r} is already up at {served.url}")
        for kept in _kept(folder, served.url, port, store, nodes):
            console.print(f"the running cluster keeps {kept}")
        for problem in ask_health(folder).problems:
            console.print(f"check {problem.check} fails: {problem.cause}", markup=False)
    else:
        began = SystemClock().now()
        with console.status(f"starting cluster {name!r} ..."):
            served = start_cluster(folder, port, store, nodes)
        console.print(f"cluster {name!r} is up at {served.url}")
    if wait and folder.nodes:
        with console.status("waiting for the nodes ..."):
            rows = with_client(folder, lambda client: wait_until_ready(client, folder, began, _JOIN_SECONDS))
        print_table(rows, stderr=True)
    typer.echo(folder.environment(), nl=False)


def _kept(folder: ClusterFolder, url: str, port: int, store: StoreKind | None, nodes: int | None) -> Iterator[str]:
    """Returns the settings that were requested, but that a running cluster does not change."""
    if nodes not in {None, folder.nodes}:
        yield f"its number of nodes, {folder.nodes}, until it is stopped and started again"
    if port and urlsplit(url).port != port:
        yield "its port until it is stopped and started again"
    if store not in {None, folder.store}:
        yield f"its objects in {folder.store!r} until it is deleted with `navarch cluster down --delete --name {folder.name}`"


@cluster.command()
def down(
    name: Name = "default",
    delete: Annotated[bool, typer.Option("--delete", help="Delete the objects of the cluster, too.")] = False,
) -> None:
    """Stop a cluster. Its objects are kept for the next `up`, unless they are in memory."""
    folder, console = existing(name), notes()
    served = folder.running()
    if served is not None:
        with console.status(f"stopping cluster {name!r} ..."):
            served.stop()
    if delete:
        remove_cluster(folder)
    console.print(f"cluster {name!r} {_ENDED[served is not None, delete]}")


@cluster.command()
def status(output: Output = "table") -> None:
    """Show the clusters of this machine, the number of their ready nodes, and the checks that fail.

    The exit code is 3 if a running cluster is degraded or does not answer.
    """
    found = {folder: ask_health(folder) for folder in all_folders()}
    rows = [_row(folder, health) for folder, health in found.items()]
    problems = [
        {"cluster": folder.name, **problem._asdict()} for folder, health in found.items() for problem in health.problems
    ]
    if output == "json":
        for row in rows:
            row["problems"] = [problem for problem in problems if problem["cluster"] == row["name"]]
    print_rows(rows, output, empty="there are no clusters; `navarch cluster up` starts one")
    if problems and output != "json":
        typer.echo()
        print_table(problems)
    if problems:
        raise typer.Exit(_UNHEALTHY)


@cluster.command()
def kubeconfig(
    name: Name = "default",
    merge: Annotated[
        bool, typer.Option("--merge", help="Print your kubeconfig merged with the cluster's; no file is written.")
    ] = False,
) -> None:
    """Print the path of a cluster's kubeconfig."""
    folder = existing(name)
    if not folder.kubeconfig.is_file():
        raise ConfigError(f"cluster {name!r} has never run; start it with `navarch cluster up --name {name}`")
    if not merge:
        typer.echo(str(folder.kubeconfig))
        return
    own = os.environ.get("KUBECONFIG", "").split(os.pathsep)[0] or str(Path.home() / ".kube" / "config")
    typer.echo(merge_kubeconfigs(Path(own), folder.kubeconfig), nl=False)


@cluster.command()
def load(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE", help="A manifest, a folder of manifests, or - for standard input.")
    ],
    name: Name = "default",
    output: Output = "table",
    force: Annotated[bool, typer.Option("--force", help="Take over fields of other field managers.")] = False,
) -> None:
    """Apply manifests in the order in which they depend on each other: namespaces, CRDs (until they are served), the rest."""
    from navarch.cli import manifest_loader, manifests  # noqa: PLC0415 - much is imported there

    folder, console = running(name), notes()
    found = manifests.documents(files)
    with console.status("") as shown:
        done = with_client(folder, lambda client: manifest_loader.load(client, found, force=force, say=shown.update))
    if output == "json":
        print_json(done)
    else:
        print_rows(
            [manifest_loader.row(each) for each in done], output, empty=f"there are no objects in {', '.join(files)}"
        )
    failed = [each for each in done if each.result == "failed"]
    for each in failed:
        console.print(f"{each.file}:{each.line}: {each.error}", markup=False)
    if failed:
        raise ConfigError(f"{len(failed)} of {len(done)} documents were not applied")


def _row(folder: ClusterFolder, health: ClusterHealth) -> dict[str, Any]:
    served = folder.running()
    return {
        "name": folder.name,
        "state": health.state,
        "url": served.url if served else None,
        "pid": served.identity.pid if served else None,
        "since": served.since if served else None,
        "nodes": _nodes(folder) if served and health.state != "not answering" else None,
        "restarts": health.restarts if served else None,
        "folder": str(folder.path),
    }


def _nodes(folder: ClusterFolder) -> str | None:
    """Returns ready and all nodes as "1/2"; None if the cluster does not answer in time."""
    try:
        rows = with_client(folder, lambda client: node_rows(client.using(timeout=_STATUS_SECONDS)))
    except NavarchError:
        return None
    return f"{sum(row['status'] == READY for row in rows)}/{len(rows)}"
