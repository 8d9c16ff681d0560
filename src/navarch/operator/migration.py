"""Rewrites the stored objects of a kind in its stored version, and then removes old versions from the CRD's status.

An object is rewritten by an empty patch with the resourceVersion that was read: the API server converts the object, and
writes it if its stored bytes change. So an object that has the stored version already is not written again, and a
migration that was killed simply begins anew. A conflict means that another writer stored the object in between, in the
stored version as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from navarch._base.backoff import BackoffDelays
from navarch.api import Dynamic, Kind
from navarch.client import ALL, Client, MergePatch, MetadataOnly, PartialObjectMetadata
from navarch.client.call import RetryPolicy, may_pass
from navarch.errors import ApiError, Conflict, CrdError, InvalidValueError, NavarchError, NotFound

_CRDS: Final = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", plural="customresourcedefinitions", namespaced=False
)
_PASSES: Final = 5
_FAILURES_KEPT: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationOptions:
    """How fast objects are rewritten: at most `per_second`, and `concurrency` at once; each is tried as `retry` says.

    With `dry_run` the server converts and checks every object, but stores nothing.
    """

    per_second: float = 100.0
    concurrency: int = 8
    page_size: int = 500
    dry_run: bool = False
    retry: RetryPolicy = RetryPolicy()

    def __post_init__(self) -> None:
        if not self.per_second > 0 or self.concurrency < 1 or self.page_size < 1:
            raise InvalidValueError(
                f"expected a rate above 0, and a concurrency and page size of 1 or more, got {self.per_second!r}, "
                f"{self.concurrency!r} and {self.page_size!r}"
            )


@dataclass(slots=True)
class Migration:
    """The state of one kind's migration, and its result when it has ended."""

    crd: str
    version: str
    """The stored version."""
    old_versions: list[str]
    """The other versions in which objects may still be stored."""
    rewritten: int = 0
    unchanged: int = 0
    """Objects that had the stored version already; in a dry run, all that could be converted."""
    written_by_others: int = 0
    deleted: int = 0
    failed: int = 0
    failures: list[str] = field(default_factory=list)
    """The objects that could not be rewritten, with the cause; the first few."""
    passes: int = 0
    completed: bool = False
    """Whether the old versions have been removed from `status.storedVersions`."""

    @property
    def seen(self) -> int:
        """The number of objects that are done."""
        return self.rewritten + self.unchanged + self.written_by_others + self.deleted + self.failed


async def find_crds(client: Client, names: Iterable[str]) -> list[Dynamic]:
    """Returns the CRDs by their name, or by the kind, plural, singular or short name of their objects.

    Raises `CrdError` for a name that no CRD has, or several.
    """
    crds = [found async for found in client.list(_CRDS)]
    return [_one_of(crds, name) for name in dict.fromkeys(names)]


def _one_of(crds: Iterable[Dynamic], name: str) -> Dynamic:
    known = list(crds)
    found = [crd for crd in known if crd.name == name] or [crd for crd in known if name.lower() in _names(crd)]
    if len(found) == 1:
        return found[0]
    got = ", ".join(sorted(crd.name for crd in found)) or "none"
    among = "" if found else f"; there are {', '.join(sorted(crd.name for crd in known)) or 'no CRDs'}"
    raise CrdError(
        f"expected one CRD called {name!r}, got {got}{among}; write the whole name, such as caches.example.com"
    )


def _names(crd: Dynamic) -> set[str]:
    names = crd["spec"]["names"]
    plain = [names["kind"], names["plural"], names.get("singular") or "", *(names.get("shortNames") or ())]
    return {name.lower() for name in plain if name}


async def migrate(
    client: Client,
    crd: str,
    options: MigrationOptions | None = None,
    *,
    report: Callable[[Migration], None] = lambda _: None,
) -> Migration:
    """Rewrites all objects of a CRD in its stored version; if none fails, removes the old versions from its status.

    Calls `report` after each object. Objects that cannot be rewritten are counted, and the others go on. Begins again if
    the CRD changes meanwhile: its stored version may have been another one for a while. Raises `CrdError` if the CRD is
    missing, is being deleted, or changes again and again.
    """
    given = options or MigrationOptions()
    for number in range(1, _PASSES + 1):
        found = await _read(client, crd)
        state = _begun(found)
        state.passes = number
        report(state)
        if not state.old_versions:
            state.completed = True
            return state
        await _Pass(client, _kind_of(found), given, state, report).run()
        if given.dry_run or state.failed:
            return state
        if await _complete(client, found, state):
            report(state)
            return state
    raise CrdError(
        f"CRD {crd}: expected it to stay as it is during the migration, but it changed {_PASSES} times; find out who "
        f"changes it (kubectl get crd {crd} --show-managed-fields -o yaml), and migrate again"
    )


async def _read(client: Client, name: str) -> Dynamic:
    try:
        found = await client.get(_CRDS, name)
    except NotFound:
        raise CrdError(f"CRD {name}: expected it in the cluster, got none; apply it first") from None
    if found.metadata.get("deletionTimestamp"):
        raise CrdError(f"CRD {name}: expected one that stays, got one that is being deleted with all of its objects")
    return found


def _begun(crd: Dynamic) -> Migration:
    version = _stored_version(crd)
    stored = (crd.get("status") or {}).get("storedVersions") or []
    return Migration(crd.name, version, [name for name in stored if name != version])


def _stored_version(crd: Mapping[str, Any]) -> str:
    return next(str(version["name"]) for version in crd["spec"]["versions"] if version.get("storage"))


def _kind_of(crd: Dynamic) -> Kind:
    """Returns the kind in its stored version, or in another one if that is not served."""
    spec = crd["spec"]
    served = [version["name"] for version in spec["versions"] if version.get("served")]
    if not served:
        raise CrdError(f"CRD {crd.name}: expected a version that is served, got none; set served: true for one")
    stored = _stored_version(crd)
    return Kind(
        spec["group"],
        stored if stored in served else served[-1],
        spec["names"]["kind"],
        plural=spec["names"]["plural"],
        namespaced=spec["scope"] == "Namespaced",
    )


async def _complete(client: Client, before: Dynamic, state: Migration) -> bool:
    """Removes the old versions from the status; returns False if the CRD changed since it was read."""
    for _ in range(10):
        found = await _read(client, before.name)
        if _identity(found) != _identity(before):
            return False
        found["status"]["storedVersions"] = [state.version]
        try:
            await client.replace_status(found)
        except Conflict:
            continue
        state.completed = True
        return True
    return False


def _identity(crd: Dynamic) -> tuple[Any, Any]:
    """The generation changes with the spec, whatever the field; the uid with a CRD that was deleted and made anew."""
    return crd.metadata.get("uid"), crd.metadata.get("generation")


class _Pass:
    """One walk through all objects of a kind."""

    def __init__(
        self,
        client: Client,
        kind: Kind,
        options: MigrationOptions,
        state: Migration,
        report: Callable[[Migration], None],
    ) -> None:
        self._client = client.using(manager="navarch-migrate", dry_run=options.dry_run, page_size=options.page_size)
        self._kind = MetadataOnly(kind)
        self._options = options
        self._state = state
        self._report = report
        self._free = asyncio.Semaphore(options.concurrency)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            async for item in self._paced():
                await self._free.acquire()
                tasks.create_task(self._rewrite(item))

    async def _paced(self) -> AsyncIterator[PartialObjectMetadata]:
        """Yields all objects, at most so many in a second."""
        clock = self._client.clock
        due = clock.monotonic()
        namespace = ALL if self._kind.of.namespaced else None  # type: ignore[union-attr]  # a Kind
        async for item in self._client.list(self._kind, namespace=namespace):
            delay = due - clock.monotonic()
            if delay > 0:
                await clock.sleep(delay)
            due = max(due, clock.monotonic()) + 1 / self._options.per_second
            yield item

    async def _rewrite(self, item: PartialObjectMetadata) -> None:
        state = self._state
        try:
            written = await self._patched(item)
        except NotFound:
            state.deleted += 1
        except Conflict:
            state.written_by_others += 1
        except NavarchError as error:
            state.failed += 1
            if len(state.failures) < _FAILURES_KEPT:
                state.failures.append(str(error))
        else:
            if written.metadata.resource_version == item.metadata.resource_version:
                state.unchanged += 1
            else:
                state.rewritten += 1
        finally:
            self._free.release()
        self._report(state)

    async def _patched(self, item: PartialObjectMetadata) -> PartialObjectMetadata:
        """Sends the empty patch, which is safe to repeat: a second one of the same version writes nothing."""
        metadata = {"uid": item.metadata.uid, "resourceVersion": item.metadata.resource_version}
        delays = BackoffDelays(self._options.retry.backoff, self._client.rng)
        for attempt in range(1, self._options.retry.attempts + 1):
            try:
                return await self._client.patch(
                    self._kind, item.name, MergePatch({"metadata": metadata}), namespace=item.namespace or None
                )
            except NavarchError as error:
                if attempt == self._options.retry.attempts or not may_pass(error):
                    raise
                asked = error.retry_after if isinstance(error, ApiError) else None
                await self._client.clock.sleep(delays.next_delay() + (asked or 0.0))
        raise AssertionError("the last attempt returns or raises")
