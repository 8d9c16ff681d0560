"""Watching everything, whatever kinds come and go."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from navarch._base.tasks import cancel_and_wait, within
from navarch.api import Kind
from navarch.cache import Cached, Change, Collection, Informer
from navarch.client import ApiResource
from navarch.cluster.controllers.parts import Around
from navarch.errors import NavarchError
from navarch.k8s.apiextensions.v1 import CustomResourceDefinition

__all__ = ["EveryKind", "collected", "deletable"]

_log = logging.getLogger("navarch.cluster.controllers")
_LOOK_AGAIN_SECONDS: Final = 30.0
_NEEDED: Final = frozenset({"delete", "list", "watch"})
_IGNORED: Final = frozenset({("", "events"), ("events.k8s.io", "events")})
"""They go by themselves, and are many."""

Told = Callable[[Kind, Change], None]


def collected(resources: tuple[ApiResource, ...]) -> dict[tuple[str, str], Kind]:
    """What can be deleted and watched, in one version each, by group and plural; the preferred version comes first."""
    found: dict[tuple[str, str], Kind] = {}
    for each in resources:
        name = (each.kind.group, each.kind.plural)
        if name not in _IGNORED and set(each.verbs) >= _NEEDED:
            found.setdefault(name, each.kind)
    return found


def deletable(resources: tuple[ApiResource, ...]) -> dict[tuple[str, str], Kind]:
    """What is in namespaces and can be deleted, in one version each, by group and plural."""
    found: dict[tuple[str, str], Kind] = {}
    for each in resources:
        if each.kind.namespaced and {"list", "deletecollection"} <= set(each.verbs):
            found.setdefault((each.kind.group, each.kind.plural), each.kind)
    return found


class _Watched:
    """The metadata of one kind, and the task that keeps it."""

    def __init__(self, collection: Collection[Any], informer: Informer, task: asyncio.Task[None]) -> None:
        self.collection = collection
        self.informer = informer
        self.task = task


class EveryKind:
    """Tells of every change of every object that can be deleted, by its metadata alone.

    Kinds are looked for again when a definition comes, changes or goes, and every 30 seconds. What is left of a kind that
    is gone is told as deleted.
    """

    def __init__(self, around: Around) -> None:
        self._around = around
        self._subscribers: list[Told] = []
        self._watched: dict[Kind, _Watched] = {}
        self._news = asyncio.Event()
        self._begun = asyncio.Event()
        self._definitions = around.cache.collection(CustomResourceDefinition)

    def subscribe(self, told: Told) -> None:
        """Tells of every change; to be asked for before `run`."""
        self._subscribers.append(told)

    def find(self, group: str, plural: str) -> Kind | None:
        """The kind that is watched under that name."""
        return next((kind for kind in self._watched if (kind.group, kind.plural) == (group, plural)), None)

    def _told(self, kind: Kind, change: Change) -> None:
        for told in self._subscribers:
            told(kind, change)

    async def wait_synced(self) -> None:
        """Returns when every kind that is known was listed once."""
        await self._begun.wait()
        for watched in tuple(self._watched.values()):
            await watched.informer.wait_synced()

    async def run(self) -> None:
        """Watches until it is cancelled."""
        self._definitions.subscribe(self._definition_changed)
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    self._news.clear()
                    await self._follow(group)
                    with contextlib.suppress(TimeoutError):
                        await within(self._around.clock, _LOOK_AGAIN_SECONDS, self._wait_for_news())
        finally:
            self._definitions.unsubscribe(self._definition_changed)

    def _definition_changed(self, change: Change) -> None:  # noqa: ARG002 - whatever it was, the kinds are looked at
        self._news.set()

    async def _wait_for_news(self) -> None:
        await self._news.wait()

    async def _follow(self, group: asyncio.TaskGroup) -> None:
        """A server that cannot say what it serves takes nothing away."""
        try:
            wanted = set(collected(await self._around.client.discovery.all()).values())
        except NavarchError as error:
            _log.warning("the kinds of the cluster could not be looked up: %s", error)
            return
        for kind in wanted - self._watched.keys():
            self._watched[kind] = self._begin(group, kind)
        for kind in self._watched.keys() - wanted:
            await self._end(kind)
        self._begun.set()

    def _begin(self, group: asyncio.TaskGroup, kind: Kind) -> _Watched:
        collection: Collection[Any] = Collection(Cached(kind, metadata_only=True))
        collection.subscribe(partial(self._told, kind))
        around = self._around
        informer = Informer(around.client, collection, None, around.clock, around.rng)
        return _Watched(collection, informer, group.create_task(informer.run(), name=f"metadata of {kind.resource}"))

    async def _end(self, kind: Kind) -> None:
        watched = self._watched.pop(kind)
        await cancel_and_wait(watched.task)
        for entry in watched.collection.entries():
            self._told(kind, Change(entry, None))
