"""`navarch cluster node list | stop | start | drain | uncordon`: shows and switches the nodes of a cluster."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from navarch.api import format_time, truncate_to_seconds
from navarch.cli.cluster_folders import Name, running, with_client
from navarch.cli.output import Output, notes, print_json, print_rows
from navarch.cluster.embedded.cluster_folder import ClusterFolder
from navarch.cluster.embedded.components import POWER, POWER_OFF
from navarch.errors import ConfigError, NotFound

if TYPE_CHECKING:
    from navarch.client import Client
    from navarch.k8s.core.v1 import Node

_LOOK_SECONDS = 0.05
node = typer.Typer(no_args_is_help=True, help="The nodes of a cluster.")
NodeName = Annotated[str, typer.Argument(metavar="NODE", help="The node, as `node list` names it.")]
READY: Final = "Ready"
"""The status of a node that is ready and switched on."""
_LIMITS: Final = "navarch.dev/limits"


async def wait_until_ready(
    client: Client, folder: ClusterFolder, since: datetime | None, seconds: float
) -> list[dict[str, Any]]:
    """Waits until all nodes are ready or switched off, and returns their rows.

    Heartbeats before `since` are from an earlier run of the cluster, and do not count. Raises `ConfigError` after so many
    seconds.
    """
    from navarch.k8s.core.v1 import Node  # noqa: PLC0415 - see cluster_folders.with_client

    count, limit = folder.nodes, client.clock.monotonic() + seconds
    while True:
        there = [node.name for node in await client.list(Node) if _has_joined(node, since)]
        if len(there) >= count:
            return await node_rows(client)
        if client.clock.monotonic() > limit:
            raise ConfigError(
                f"the cluster is up, but {len(there)} of its {count} nodes are ready after {seconds:g} s; "
                f"see {folder.log} for the reason"
            )
        await client.clock.sleep(_LOOK_SECONDS)


def _has_joined(node: Node, since: datetime | None) -> bool:
    if node.annotations.get(POWER) == POWER_OFF:
        return True
    return any(
        known.type == "Ready" and known.status == "True" and _is_recent(known.last_heartbeat_time, since)
        for known in node.status.conditions or []
    )


def _is_recent(said: datetime | None, since: datetime | None) -> bool:
    return since is None or (said is not None and said >= truncate_to_seconds(since))


@node.command(name="list")
def list_(name: Name = "default", output: Output = "table") -> None:
    """Show the nodes of a cluster."""
    print_rows(
        with_client(running(name), node_rows),
        output,
        empty=f"cluster {name!r} has no nodes; `navarch cluster up --nodes 1`",
    )


@node.command()
def stop(node: NodeName, name: Name = "default") -> None:
    """Switch a node off, as a power cut does: its processes end at once, without a word to the API server."""
    with_client(
        running(name), lambda client: _patch_node(client, node, {"metadata": {"annotations": {POWER: POWER_OFF}}})
    )
    notes().print(
        f"node {node!r} is off; the cluster marks it NotReady after 40 s, and evicts its pods five minutes later",
        markup=False,
    )


@node.command()
def start(node: NodeName, name: Name = "default") -> None:
    """Switch a node on again; it continues with the pods that are still bound to it."""
    with_client(running(name), lambda client: _patch_node(client, node, {"metadata": {"annotations": {POWER: None}}}))
    notes().print(f"node {node!r} is on", markup=False)


@node.command()
def uncordon(node: NodeName, name: Name = "default") -> None:
    """Make a drained node schedulable again."""
    with_client(running(name), lambda client: _patch_node(client, node, {"spec": {"unschedulable": None}}))
    notes().print(f"node {node!r} is uncordoned", markup=False)


@node.command()
def drain(
    node: NodeName,
    *,
    name: Name = "default",
    output: Output = "table",
    force: Annotated[bool, typer.Option("--force", help="Evict pods, too, that no controller recreates.")] = False,
    delete_emptydir_data: Annotated[
        bool, typer.Option("--delete-emptydir-data", help="Evict pods, too, that have emptyDir volumes.")
    ] = False,
    grace_period: Annotated[
        int | None,
        typer.Option(min=0, help="Seconds that pods have to terminate; the default is the pod's own grace period."),
    ] = None,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds after which the drain fails.")] = 300.0,
) -> None:
    """Cordon a node and evict its pods. Disruption budgets are respected; pods of DaemonSets stay."""
    from navarch.cli.drain import Drain, DrainOptions  # noqa: PLC0415 - much is imported there

    console = notes()
    options = DrainOptions(force=force, delete_data=delete_emptydir_data, grace_seconds=grace_period, timeout=timeout)

    async def drained(client: Client) -> Any:
        await _require_node(client, node)
        return await Drain(client, node, options, lambda text: console.print(text, markup=False)).run()

    with console.status(f"draining node {node!r} ..."):
        result = with_client(running(name), drained)
    if output == "json":
        print_json(result)
    console.print(f"node {node!r} is drained; pods evicted: {len(result.evicted)}", markup=False)


async def node_rows(client: Client) -> list[dict[str, Any]]:
    """Returns a row for each node."""
    from navarch.client import ALL  # noqa: PLC0415 - see cluster_folders.with_client
    from navarch.k8s.core.v1 import Node, Pod  # noqa: PLC0415

    pods = [pod for pod in await client.list(Pod, namespace=ALL) if pod.status.phase not in {"Succeeded", "Failed"}]
    found = sorted(await client.list(Node), key=lambda node: (len(node.name), node.name))
    return [_row(node, sum(pod.spec.node_name == node.name for pod in pods)) for node in found]


def _row(node: Node, pods: int) -> dict[str, Any]:
    made = node.metadata.creation_timestamp
    return {
        "name": node.name,
        "status": _status(node),
        "pods": pods,
        "address": next((each.address for each in node.status.addresses or [] if each.type == "InternalIP"), None),
        "since": format_time(made) if made else None,
        "limits": node.annotations.get(_LIMITS),
    }


def _status(node: Node) -> str:
    ready = any(known.type == "Ready" and known.status == "True" for known in node.status.conditions or [])
    is_off = node.annotations.get(POWER) == POWER_OFF
    state = "Off" if is_off else READY if ready else "NotReady"
    return f"{state},SchedulingDisabled" if node.spec.unschedulable else state


async def _patch_node(client: Client, name: str, patch: dict[str, Any]) -> None:
    from navarch.client import MergePatch  # noqa: PLC0415 - see cluster_folders.with_client
    from navarch.k8s.core.v1 import Node  # noqa: PLC0415

    await _require_node(client, name)
    await client.patch(Node, name, MergePatch(patch))


async def _require_node(client: Client, name: str) -> None:
    """Raises `ConfigError` with the names of all nodes if there is no such node."""
    from navarch.k8s.core.v1 import Node  # noqa: PLC0415 - see cluster_folders.with_client

    try:
        await client.get(Node, name)
    except NotFound:
        names = ", ".join(sorted(node.name for node in await client.list(Node))) or "none"
        raise ConfigError(f"there is no node {name!r}; there are: {names}") from None
