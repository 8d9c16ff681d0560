"""Which cluster a command is about, and how it is reached."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from navarch.cluster.embedded.cluster_folder import ClusterFolder, cluster_folders, state_root
from navarch.errors import ConfigError

if TYPE_CHECKING:
    from navarch.client import Client

__all__ = ["Name", "all_folders", "asked", "existing", "folder_of", "running"]

T = TypeVar("T")

Name = Annotated[str, typer.Option("--name", "-n", help="Which cluster; several can run side by side.")]


def all_folders() -> list[ClusterFolder]:
    """Every cluster of this user, by name."""
    return cluster_folders(state_root(os.environ))


def folder_of(name: str) -> ClusterFolder:
    """The folder of a cluster, whether there is such a one or not."""
    return ClusterFolder(state_root(os.environ), name)


def existing(name: str) -> ClusterFolder:
    """The folder of a cluster; raises `ConfigError` with those that there are."""
    folder = folder_of(name)
    if not folder.exists():
        known = ", ".join(each.name for each in all_folders()) or "none"
        raise ConfigError(
            f"there is no cluster {name!r}; there are: {known}; `navarch cluster up --name {name}` makes it"
        )
    return folder


def running(name: str) -> ClusterFolder:
    """The folder of a cluster that runs; raises `ConfigError` with the remedy."""
    folder = existing(name)
    if folder.running() is None:
        raise ConfigError(f"cluster {name!r} is not running; start it with `navarch cluster up --name {name}`")
    return folder


def asked(folder: ClusterFolder, work: Callable[[Client], Awaitable[T]]) -> T:
    """What comes of the work with a client of the cluster's administrator."""
    from navarch.client import connect, load  # noqa: PLC0415 - commands that ask the cluster nothing start sooner

    async def connected() -> T:
        async with connect(load(folder.kubeconfig)) as client:
            return await work(client)

    return asyncio.run(connected())
