"""Applies manifests in the order in which they depend on each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Literal

import msgspec

from navarch._base.clock import Clock
from navarch.api import Dynamic
from navarch.cli.manifests import ManifestDocument
from navarch.client import Client
from navarch.errors import ConfigError, Forbidden, NavarchError, NotFound
from navarch.project.dependency_order import rank

_SERVERS_OWN: Final = frozenset({"resourceVersion", "managedFields"})
_ACCOUNT_SECONDS: Final = 10.0
_PAUSE_SECONDS: Final = 0.1

Result = Literal["created", "configured", "unchanged", "failed"]


class LoadResult(msgspec.Struct, frozen=True):
    """The result of one document."""

    kind: str
    namespace: str
    name: str
    result: Result
    file: str
    line: int
    error: str = ""


async def load(
    client: Client,
    found: Iterable[ManifestDocument],
    *,
    force: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> list[LoadResult]:
    """Applies each document, dependencies first; a document that fails does not stop the others.

    `force` takes over fields of other field managers. `say` gets a line for each document.
    """
    loader = _Loader(client.using(manager="navarch-load"), force=force)
    done = []
    for document in sorted(found, key=_rank):
        say(_title(document))
        done.append(await loader.load(document))
    return done


def _rank(document: ManifestDocument) -> int:
    return rank(document.object.kind if document.object is not None else "")


def _title(document: ManifestDocument) -> str:
    return f"{document.object.kind} {document.object.name}" if document.object is not None else document.file


class _Loader:
    def __init__(self, client: Client, *, force: bool) -> None:
        self._client = client
        self._clock: Clock = client.clock
        self._force = force

    async def load(self, document: ManifestDocument) -> LoadResult:
        target = document.object
        if target is None:
            return _loaded(document, "", "failed", document.fault)
        try:
            namespace, result = await self._applied(target)
        except NavarchError as error:
            return _loaded(document, target.namespace, "failed", str(error))
        return _loaded(document, namespace, result)

    async def _applied(self, target: Dynamic) -> tuple[str, Result]:
        if not target.name:
            raise ConfigError(
                "expected an object with a name, got none: an object with a generateName cannot be applied"
            )
        before = await self._state(target)
        if target.kind == "CustomResourceDefinition":
            await self._client.install(target)
            applied: Any = target
        else:
            applied = await self._apply(target)
        if before is None:
            return applied.namespace, "created"
        return applied.namespace, "unchanged" if await self._state(target) == before else "configured"

    async def _state(self, target: Dynamic) -> dict[str, Any] | None:
        """Returns the object without status and resourceVersion, which controllers may change concurrently; None if there is none."""
        kind = await self._client.discovery.kind_of(target)
        try:
            found = await self._client.get(kind, target.name, namespace=target.namespace or None)
        except NotFound:
            return None
        metadata = {name: value for name, value in found.metadata.items() if name not in _SERVERS_OWN}
        return {**found, "metadata": metadata, "status": None}

    async def _apply(self, target: Dynamic) -> Dynamic:
        """Applies the object; waits for the ServiceAccount of a new namespace, without which its pods are refused."""
        limit = self._clock.monotonic() + _ACCOUNT_SECONDS
        while True:
            try:
                return await self._client.apply(target, force=self._force)
            except Forbidden as error:
                awaited = "error looking up service account" in error.message and self._clock.monotonic() < limit
                if not awaited:
                    raise
            await self._clock.sleep(_PAUSE_SECONDS)


def _loaded(document: ManifestDocument, namespace: str, result: Result, error: str = "") -> LoadResult:
    kind, name = (document.object.kind, document.object.name) if document.object is not None else ("", "")
    return LoadResult(kind, namespace, name, result, document.file, document.line, error)


def row(loaded: LoadResult) -> dict[str, str]:
    """Returns the result as a row of a table."""
    return {
        "kind": loaded.kind,
        "namespace": loaded.namespace,
        "name": loaded.name,
        "result": loaded.result,
        "from": f"{loaded.file}:{loaded.line}",
    }
