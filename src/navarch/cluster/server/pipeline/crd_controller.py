"""`CrdController`: accepts the names of CustomResourceDefinitions, establishes them, and serves their kinds."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from functools import partial
from typing import Final

import msgspec

from navarch._base.supervisor import cause_of
from navarch._base.tasks import TaskSet
from navarch.api import format_time, truncate_to_seconds
from navarch.cluster.server.kinds.builtin.generic.columns import Ages
from navarch.cluster.server.kinds.custom.definitions import FINALIZER, GROUP, PLURAL, definition_type
from navarch.cluster.server.kinds.custom.openapi import document_of
from navarch.cluster.server.kinds.custom.status import (
    ESTABLISHED,
    NAMES_ACCEPTED,
    condition,
    is_true,
    named_status,
    with_condition,
)
from navarch.cluster.server.kinds.custom.strategy import CustomStrategy
from navarch.cluster.server.kinds.custom.types import Conversion, custom_types
from navarch.cluster.server.objects.registry import decoded
from navarch.cluster.server.objects.types import ResourceType
from navarch.cluster.server.pipeline.crd_finalizer import Cleanup, Statuses
from navarch.cluster.server.pipeline.endpoints.call import Kernel
from navarch.cluster.server.wire.budget import WEIGHT_OF_EXPRESSIONS, unlimited_budget
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_errors import StatusError
from navarch.cluster.storage import CompactedError, StorageError, Stored, Watcher

_RULES: Final = b"x-kubernetes-validations"
_log = logging.getLogger("navarch.cluster.server")
_ESTABLISHED: Final = condition(ESTABLISHED, True, "InitialNamesAccepted", "the initial names have been accepted")


class CrdController:
    """Follows the CRDs in the store, and keeps the catalog and their statuses in step.

    The catalog must have the built-in resource of CRDs; it is replaced by one with a strategy of its own.
    """

    def __init__(self, kernel: Kernel, conversion: Conversion | None = None) -> None:
        self._kernel = kernel
        self._conversion = conversion
        self._ages = Ages(kernel.clock)
        self._turns = asyncio.Lock()
        self._known: dict[str, Json] = {}
        self._served: dict[str, tuple[Json, list[ResourceType]]] = {}
        self._documents: dict[str, tuple[list[ResourceType], Json]] = {}
        self._cleaned: set[str] = set()
        self._background = TaskSet()
        self._resource = _definitions(kernel)
        self._statuses = Statuses(kernel, self._resource)

    async def start(self) -> int:
        """Serves what was established before; the revision up to which everything is known."""
        page = await self._kernel.registry.storage.page(self._resource.prefix())
        found = {item.key: item for item in page.items}
        for key in [key for key in self._known if key not in found]:
            self._forget(key)
        for item in page.items:
            self._learn(item)
        for definition in list(self._known.values()):
            if is_true(definition["status"], ESTABLISHED):
                await self._serve(definition)
        return page.revision

    async def run(self) -> None:
        """Follows the CRDs until it is cancelled."""
        try:
            while True:
                try:
                    await self._follow(await self.start())
                except CompactedError:
                    _log.warning("fell behind the changes of CustomResourceDefinitions: reading them all")
        finally:
            await self._background.stop()

    def documents(self) -> dict[str, Json]:
        """The OpenAPI documents of what is served, by name: `apis/example.com/v1`.

        A document is the same object for as long as what it describes has not changed. It is not to be altered.
        """
        found: dict[str, list[ResourceType]] = {}
        for _, resources in self._served.values():
            for resource in resources:
                found.setdefault(f"apis/{resource.api_version}", []).append(resource)
        self._documents = {name: self._document(name, resources) for name, resources in sorted(found.items())}
        return {name: document for name, (_, document) in self._documents.items()}

    def _document(self, name: str, resources: list[ResourceType]) -> tuple[list[ResourceType], Json]:
        described, document = self._documents.get(name, ([], {}))
        if list(map(id, described)) == list(map(id, resources)):
            return described, document
        return resources, document_of(resources)

    async def _follow(self, revision: int) -> None:
        async with self._kernel.registry.storage.watch(self._resource.prefix(), after=revision) as watcher:
            await self._settle_all({definition["spec"]["group"] for definition in self._known.values()})
            while True:
                await watcher.wait()
                await self._settle_all(self._noted(watcher))

    def _noted(self, watcher: Watcher) -> set[str]:
        """Takes note of what has happened; the groups in which it has."""
        groups: set[str] = set()
        for event in watcher.ready():
            old = self._known.get(event.key)
            if event.value is None:
                self._forget(event.key)
            else:
                self._learn(Stored(event.key, event.value, event.revision))
            groups.update(known["spec"]["group"] for known in (old, self._known.get(event.key)) if known)
        return groups

    def _learn(self, stored: Stored) -> None:
        known = self._known.get(stored.key)
        if known is None or int(known["metadata"]["resourceVersion"]) < stored.revision:
            self._known[stored.key] = decoded(stored)

    def _forget(self, key: str) -> None:
        if (definition := self._known.pop(key, None)) is not None:
            self._cleaned.discard(definition["metadata"]["uid"])
            self._withdraw(definition["metadata"]["name"])

    async def _settle_all(self, groups: set[str]) -> None:
        for group in sorted(groups):
            for key in list(self._of_group(group)):
                try:
                    await self._settle(key)
                except StatusError as refusal:
                    if refusal.reason not in {"Conflict", "NotFound"}:
                        _log.warning("the status of a CustomResourceDefinition was refused: %s", refusal.message)
                except StorageError:  # which concerns all of them
                    raise
                except Exception as error:  # noqa: BLE001 - one CRD that was overlooked must not end all others
                    _log.error("the CustomResourceDefinition at %s cannot be established: %s", key, cause_of(error))

    def _of_group(self, group: str) -> Iterator[str]:
        """The oldest first: who comes first has the name."""
        found = [key for key, known in self._known.items() if known["spec"]["group"] == group]
        return iter(sorted(found, key=lambda key: self._known[key]["metadata"]["creationTimestamp"]))

    async def _settle(self, key: str) -> None:
        """One CRD, as far as it gets: names, then establishing, or its end."""
        definition = self._known[key]
        if "deletionTimestamp" in definition["metadata"]:
            self._end(definition)
            return
        others = [self._known[each] for each in self._of_group(definition["spec"]["group"]) if each != key]
        definition = await self._wrote(key, named_status(definition, others, self._now()))
        status = definition["status"]
        if is_true(status, NAMES_ACCEPTED) and not is_true(status, ESTABLISHED):
            await self._serve(definition)
            definition = await self._wrote(key, with_condition(status, _ESTABLISHED, self._now()))
        if is_true(definition["status"], ESTABLISHED):
            await self._serve(definition)

    async def _wrote(self, key: str, status: Json) -> Json:
        """The CRD with that status, which is written if it is another one."""
        definition = self._known[key]
        if status != definition["status"]:
            definition = self._known[key] = await self._statuses.write(definition, status)
        return definition

    async def _serve(self, definition: Json) -> None:
        """What was served of it before ends where it is not the same any more."""
        name, shown = definition["metadata"]["name"], _what_matters(definition)
        if name in self._served and self._served[name][0] == shown:
            return
        try:
            resources = await self._compiled(definition)
        except Exception:  # noqa: BLE001 - one CRD that was overlooked must not end all others
            _log.exception("the CustomResourceDefinition %s cannot be served", name)
            resources = []
        self._withdraw(name)
        self._served[name] = (shown, resources)
        for resource in resources:
            self._kernel.catalog.add(resource)

    async def _compiled(self, definition: Json) -> list[ResourceType]:
        text, revision = msgspec.json.encode(definition), int(definition["metadata"]["resourceVersion"])
        size = len(text) * (WEIGHT_OF_EXPRESSIONS if _RULES in text else 1)
        step = partial(custom_types, definition, revision, self._ages, self._conversion)
        return await unlimited_budget(self._turns).run(step, size=size)

    def _withdraw(self, name: str) -> None:
        _, resources = self._served.pop(name, ({}, []))
        for resource in resources:
            self._kernel.catalog.remove(resource.group, resource.version, resource.plural)
            self._kernel.watches.end(resource.storage_prefix)

    def _end(self, definition: Json) -> None:
        """Nothing new may come; what is there goes, and the CRD after it."""
        metadata = definition["metadata"]
        _, resources = self._served.get(metadata["name"], ({}, []))
        for resource in resources:
            if isinstance(resource.strategy, CustomStrategy):
                resource.strategy.form.is_terminating = True
        if FINALIZER in metadata.get("finalizers", ()) and metadata["uid"] not in self._cleaned:
            self._cleaned.add(metadata["uid"])
            cleanup = Cleanup(self._kernel, self._statuses, definition, resources[0] if resources else None)
            self._background.start(cleanup.run(), f"the end of {metadata['name']}")

    def _now(self) -> str:
        return format_time(truncate_to_seconds(self._kernel.clock.now()))


def _definitions(kernel: Kernel) -> ResourceType:
    builtin = kernel.catalog.find(GROUP, "v1", PLURAL)
    assert builtin is not None, "the built-in kinds include CRDs"
    resource = definition_type(builtin)
    kernel.catalog.add(resource)
    return resource


def _what_matters(definition: Json) -> Json:
    """What the resources of a CRD are made from."""
    return {"spec": definition["spec"], "names": definition["status"]["acceptedNames"]}
