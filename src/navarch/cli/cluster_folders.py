"""The clusters of this user: finds the folder of one, connects to it, reads its health, merges its kubeconfig."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, TypeVar
from urllib.parse import urlsplit

import typer
import yaml

from navarch.cluster.embedded.cluster_folder import ClusterFolder, cluster_folders, state_root
from navarch.errors import ConfigError, NavarchError

if TYPE_CHECKING:
    from navarch.client import Client

ClusterState = Literal["running", "degraded", "not answering", "stopped"]
_SECONDS: Final = 3.0
_MOST_BYTES: Final = 2**20
_LINE: Final = re.compile(
    r"\[(?P<sign>[+-])\](?P<check>\S+) (?:ok|failed: (?P<cause>.*?))(?: \(restarts: (?P<restarts>\d+)\))?"
)
_LISTS = ("clusters", "users", "contexts")
T = TypeVar("T")
Name = Annotated[str, typer.Option("--name", "-n", help="The name of the cluster; several can run side by side.")]


class Problem(NamedTuple):
    """A check that fails, its cause, and the number of restarts of its task."""

    check: str
    cause: str
    restarts: int


class ClusterHealth(NamedTuple):
    """The state of a cluster, its failing checks, and the number of restarts of its tasks."""

    state: ClusterState
    problems: list[Problem]
    restarts: int = 0

    @property
    def is_well(self) -> bool:
        """Returns whether no check fails."""
        return not self.problems


def ask_health(folder: ClusterFolder) -> ClusterHealth:
    """Reads `/healthz` of the folder's cluster; it is `not answering` after three seconds without an answer."""
    if folder.running() is None:
        return ClusterHealth("stopped", [])
    try:
        text = _healthz(folder)
    except (OSError, HTTPException, NavarchError) as error:
        return ClusterHealth("not answering", [Problem("healthz", str(error) or type(error).__name__, 0)])
    found = [match for line in text.splitlines() if (match := _LINE.fullmatch(line)) is not None]
    problems = [
        Problem(match["check"], match["cause"], int(match["restarts"] or 0)) for match in found if match["sign"] == "-"
    ]
    restarts = sum(int(match["restarts"] or 0) for match in found)
    return ClusterHealth("degraded" if problems else "running", problems, restarts)


def _healthz(folder: ClusterFolder) -> str:
    from navarch.client import load  # noqa: PLC0415 - commands without requests start sooner

    config = load(folder.kubeconfig)
    place = urlsplit(config.server)
    connection = HTTPSConnection(place.netloc, context=config.ssl_context(), timeout=_SECONDS)
    try:
        connection.request("GET", "/healthz?verbose")
        return connection.getresponse().read(_MOST_BYTES).decode("utf-8", "replace")
    finally:
        connection.close()


def merge_kubeconfigs(own: Path, other: Path) -> str:
    """Returns `own` with the entries of `other` added and its context as the current one; `own` may not exist."""
    first, second = _read(own) if own.is_file() else {}, _read(other)
    result = {"apiVersion": "v1", "kind": "Config", **first}
    for part in _LISTS:
        given = {entry["name"] for entry in second[part]}
        kept = [entry for entry in first.get(part) or [] if entry.get("name") not in given]
        result[part] = [*kept, *second[part]]
    result["current-context"] = second["current-context"]
    return yaml.safe_dump(result, sort_keys=False)


def _read(path: Path) -> dict[str, Any]:
    try:
        found = yaml.safe_load(path.read_bytes())
    except (OSError, yaml.YAMLError) as error:
        raise ConfigError(f"expected a kubeconfig in {path}: {error}") from error
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise ConfigError(f"expected a kubeconfig in {path}, got {type(found).__name__}")
    return found


def all_folders() -> list[ClusterFolder]:
    """Returns the cluster_folders of all clusters of this user, by name."""
    return cluster_folders(state_root(os.environ))


def folder_of(name: str) -> ClusterFolder:
    """Returns the folder of a cluster, which may not exist."""
    return ClusterFolder(state_root(os.environ), name)


def existing(name: str) -> ClusterFolder:
    """Returns the folder of an existing cluster; raises `ConfigError` with the names of all."""
    folder = folder_of(name)
    if not folder.exists():
        known = ", ".join(each.name for each in all_folders()) or "none"
        raise ConfigError(
            f"there is no cluster {name!r}; there are: {known}; `navarch cluster up --name {name}` creates it"
        )
    return folder


def running(name: str) -> ClusterFolder:
    """Returns the folder of a running cluster; raises `ConfigError` with the command that starts it."""
    folder = existing(name)
    if folder.running() is None:
        raise ConfigError(f"cluster {name!r} is not running; start it with `navarch cluster up --name {name}`")
    return folder


def with_client(folder: ClusterFolder, work: Callable[[Client], Awaitable[T]]) -> T:
    """Runs the work with a client of the cluster's administrator, and returns its result."""
    from navarch.client import connect, load  # noqa: PLC0415 - commands without requests start sooner

    async def connected() -> T:
        async with connect(load(folder.kubeconfig)) as client:
            return await work(client)

    return asyncio.run(connected())
