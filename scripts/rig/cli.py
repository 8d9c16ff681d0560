"""The command line: `python -m rig build | up | down | status | kubeconfig`."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import Any

from rig import build, named, programs
from rig.cluster import Cluster
from rig.errors import RigError
from rig.nodefiles import REGISTRY_NAME

Command = Callable[[argparse.Namespace], int]


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code; problems the user can solve are one message, not a traceback."""
    options = _parser().parse_args(arguments)
    command: Command = options.command
    try:
        return command(options)
    except RigError as problem:
        print(f"rig: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("rig: interrupted", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rig", description=f"A real Kubernetes {programs.KUBERNETES_VERSION} for tests."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, command: Command, summary: str | None) -> argparse.ArgumentParser:
        # Without a help text argparse does not list a command: that is for the one only the rig itself uses.
        texts: dict[str, Any] = {} if summary is None else {"help": summary, "description": summary}
        added = commands.add_parser(name, **texts)
        added.set_defaults(command=command)
        return added

    add("build", _build, "Build Kubernetes from source, once, into the cache.")
    for name, command, summary in (
        ("up", _up, "Start a cluster in the background."),
        ("supervise", _supervise, None),
    ):
        added = add(name, command, summary)
        _add_name(added)
        added.add_argument("--node", action="store_true", help="with a real node that runs containers (needs root)")
    _add_name(add("down", _down, "Stop a cluster and remove its folder."))
    _add_name(add("kubeconfig", _kubeconfig, "Print the path of a cluster's kubeconfig."))
    status = add("status", _status, "Show the clusters.")
    status.add_argument("--output", choices=("table", "json"), default="table")
    return parser


def _add_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", default="default", help="the cluster's name (default: %(default)s)")


def _build(_: argparse.Namespace) -> int:
    build.build()
    print(programs.APISERVER.path.parent)
    return 0


def _up(options: argparse.Namespace) -> int:
    begun = time.monotonic()
    cluster = named.up(options.name, node=options.node)
    print(f"cluster {options.name!r} is up after {time.monotonic() - begun:.1f} s at {cluster.url}", file=sys.stderr)
    if cluster.registry:
        print(f"push to {cluster.registry} (plain HTTP); pods pull it as {REGISTRY_NAME}", file=sys.stderr)
    print(cluster.kubeconfig)
    return 0


def _supervise(options: argparse.Namespace) -> int:
    named.supervise(options.name, node=options.node)
    return 0


def _down(options: argparse.Namespace) -> int:
    stopped = named.down(options.name)
    print(f"cluster {options.name!r} {'is down' if stopped else 'was not up'}", file=sys.stderr)
    return 0


def _kubeconfig(options: argparse.Namespace) -> int:
    cluster = named.find(options.name)
    if cluster is None:
        raise RigError(f"cluster {options.name!r} is not up; start it with: python -m rig up --name {options.name}")
    print(cluster.kubeconfig)
    return 0


def _status(options: argparse.Namespace) -> int:
    rows = [_row(name, cluster) for name, cluster in named.find_all()]
    if options.output == "json":
        print(json.dumps(rows, indent=2))
    elif not rows:
        print("no clusters")
    else:
        for row in rows:
            print(f"{row['name']:16} {row['state']:10} {row['url'] or '-':28} node: {row['node'] or '-'}")
    return 0


def _row(name: str, cluster: Cluster | None) -> dict[str, str | None]:
    if cluster is None:
        return {"name": name, "state": "down", "url": None, "node": None, "registry": None, "kubeconfig": None}
    state = "ready" if cluster.get("/readyz") else "not ready"
    return {
        "name": name,
        "state": state,
        "url": cluster.url,
        "node": cluster.node,
        "registry": cluster.registry,
        "kubeconfig": str(cluster.kubeconfig),
    }
