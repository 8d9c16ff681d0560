"""`MetadataInformers`: watches the metadata of every kind, also of kinds that are added or removed."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable
from collections.abc import Collection as Container
from functools import partial
from typing import Any, Final, NamedTuple

from navarch._base.tasks import cancel_and_wait, within
from navarch.api import Kind
from navarch.cache import Cached, Change, Collection, Informer
from navarch.client import ApiResource
from navarch.cluster.controllers.controller_context import ControllerContext
from navarch.errors import NavarchError
from navarch.k8s.apiextensions.v1 import CustomResourceDefinition

_log = logging.getLogger("navarch.cluster.controllers")
_LOOK_AGAIN_SECONDS: Final = 30.0
_GONE_SECONDS: Final = 5.0
_SYNC_SECONDS: Final = 30.0
_NEEDED: Final = frozenset({"delete", "list", "watch"})
_IGNORED: Final = frozenset({("", "events"), ("events.k8s.io", "events")})
"""They go by themselves, and are many."""

Told = Callable[[Kind, Change], None]


def collected(resources: Iterable[ApiResource], known: Container[Kind] = ()) -> dict[tuple[str, str], Kind]:
    """What can be deleted and watched, in one version each, by group and plural: in that of `known` while it is served,
    otherwise in the preferred one, which comes first.
    """
    found: dict[tuple[str, str], Kind] = {}
    for each in resources:
        name = (each.kind.group, each.kind.plural)
        if name not in _IGNORED and set(each.verbs) >= _NEEDED and (name not in found or each.kind in known):
            found[name] = each.kind
    return found


def deletable(resources: Iterable[ApiResource]) -> dict[tuple[str, str], Kind]:
    """What is in namespaces and can be deleted, in one version each, by group and plural."""
    found: dict[tuple[str, str], Kind] = {}
    for each in resources:
        if each.kind.namespaced and {"list", "deletecollection"} <= set(each.verbs):
            found.setdefault((each.kind.group, each.kind.plural), each.kind)
    return found


class _WatchedKind(NamedTuple):
    """The informer of one kind, and its task."""

    informer: Informer
    task: asyncio.Task[None]


class MetadataInformers:
    """Tells of every change of every object that can be deleted, by its metadata alone; only pods, which are many, are not
    watched once more, but told of as they are cached.

    Kinds are looked for again when a definition comes, changes or goes, and every 30 seconds. One that is gone is still
    watched for some seconds, so that the end of its objects is seen; what is left then is not told as deleted: nobody
    knows.
    """

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._subscribers: list[Told] = []
        self._watched: dict[Kind, _WatchedKind] = {}
        self._gone: dict[Kind, float] = {}
        self._news = asyncio.Event()
        self._begun = asyncio.Event()
        self._definitions = context.cache.collection(CustomResourceDefinition)
        self._pods = context.pods.collection
        self._pod_changed = partial(self._told, self._pods.kind)

    def subscribe(self, told: Told) -> None:
        """Tells of every change; to be asked for before `run`."""
        self._subscribers.append(told)

    def find(self, group: str, plural: str) -> Kind | None:
        """The kind that is watched under that name."""
        known = (self._pods.kind, *self._watched)
        return next((kind for kind in known if (kind.group, kind.plural) == (group, plural)), None)

    def _told(self, kind: Kind, change: Change) -> None:
        for told in self._subscribers:
            try:
                told(kind, change)
            except Exception:  # noqa: BLE001 - the other subscribers get the change
                _log.exception("%s failed for %s %s", told, kind.kind, change.newest.key)

    async def wait_synced(self) -> None:
        """Returns when every kind that is known was listed once, or cannot be listed for long."""
        try:
            await within(self._context.clock, _SYNC_SECONDS, self._synced())
        except TimeoutError:
            late = [kind.resource for kind, watched in self._watched.items() if not watched.informer.synced]
            _log.warning("listing these kinds takes too long: %s; controllers start without them", ", ".join(late))

    async def _synced(self) -> None:
        await self._begun.wait()
        for watched in tuple(self._watched.values()):
            await watched.informer.wait_synced()

    async def run(self) -> None:
        """Watches until it is cancelled."""
        self._definitions.subscribe(self._definition_changed)
        self._pods.subscribe(self._pod_changed)
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    self._news.clear()
                    await self._follow(group)
                    with contextlib.suppress(TimeoutError):
                        await within(self._context.clock.liveness, self._patience(), self._news.wait())
        finally:
            self._pods.unsubscribe(self._pod_changed)
            self._definitions.unsubscribe(self._definition_changed)
            self._watched.clear()
            self._gone.clear()

    def _definition_changed(self, change: Change) -> None:  # noqa: ARG002 - whatever it was, the kinds are looked at
        self._news.set()

    def _patience(self) -> float:
        return _GONE_SECONDS if self._gone else _LOOK_AGAIN_SECONDS

    async def _follow(self, group: asyncio.TaskGroup) -> None:
        """A server that cannot say what it serves takes nothing away."""
        try:
            served = await self._context.client.discovery.all()
        except NavarchError as error:
            _log.warning("discovery failed: %s; retried in 30 s", error)
            return
        found = collected(served, self._watched)
        wanted = {kind for name, kind in found.items() if name != (self._pods.kind.group, self._pods.kind.plural)}
        for kind in wanted - self._watched.keys():
            self._watched[kind] = self._begin(group, kind)
        await self._end_those_gone(self._watched.keys() - wanted)
        self._begun.set()

    async def _end_those_gone(self, kinds: set[Kind]) -> None:
        now = self._context.clock.liveness.monotonic()
        self._gone = {kind: self._gone.get(kind, now) for kind in kinds}
        for kind in [kind for kind, since in self._gone.items() if now - since >= _GONE_SECONDS]:
            del self._gone[kind]
            await cancel_and_wait(self._watched.pop(kind).task)

    def _begin(self, group: asyncio.TaskGroup, kind: Kind) -> _WatchedKind:
        collection: Collection[Any] = Collection(Cached(kind, metadata_only=True))
        collection.subscribe(partial(self._told, kind))
        context = self._context
        informer = Informer(context.client, collection, None, context.clock, context.rng, may_go=True)
        return _WatchedKind(informer, group.create_task(informer.run(), name=f"metadata of {kind.resource}"))
