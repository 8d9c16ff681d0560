"""Records the writes of a reconciler: in the cache, and the paths of those that bypass it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from navarch.api import Dynamic, Key, Kind, Object, encode
from navarch.cache import Collection, Entry
from navarch.client import Client, Request, Response, Transport
from navarch.client.transport import WrappedTransport
from navarch.controller.deps import ControllerDeps
from navarch.controller.triggers import Version, Writer

__all__ = ["recording_client"]

_READS: Final = ("GET", "HEAD")


def recording_client(client: Client, note: Callable[[str], None]) -> Client:
    """Returns the same client; it calls `note` with the path of each write before it is sent."""
    noting = client.through(lambda transport: WriteRecordingTransport(transport, note))
    noting.discovery = client.discovery  # what it has asked the server before is not asked again
    return noting


class WriteRecordingTransport(WrappedTransport):
    def __init__(self, transport: Transport, note: Callable[[str], None]) -> None:
        super().__init__(transport)
        self._note = note

    async def send(self, request: Request) -> Response:
        if request.method not in _READS:
            self._note(request.path)
        return await self._transport.send(request)


_UNKNOWN = -1  # no object has it: a write that was made on top of it is never taken for the one that directly follows


class _Hold(msgspec.Struct, rename="camel"):
    deletion_timestamp: str | None = None
    finalizers: list[str] | None = None
    deletion_grace_period_seconds: int | None = None


class _HeldHead(msgspec.Struct):
    metadata: _Hold


def is_last(data: bytes) -> bool:
    """Returns whether the written object was deleted with this write: it had a deletionTimestamp and its last finalizer."""
    held = msgspec.json.decode(data, type=_HeldHead).metadata
    return bool(held.deletion_timestamp) and not held.finalizers and not held.deletion_grace_period_seconds


def collection_for(deps: ControllerDeps, kind: Kind, namespace: str) -> Collection[Any] | None:
    """Returns the collection that has to record a write; None if the cache does not keep it, or in a dry run."""
    collection = deps.collections.get(kind)
    known = collection is not None and collection.keeps(namespace) and not deps.client.options.dry_run
    return collection if known else None


def wire_of(written: Object | Dynamic) -> bytes:
    """Returns the bytes of the server's answer."""
    return written.__wire__ if isinstance(written, Object) else encode(written)


def record_write(
    deps: ControllerDeps,
    key: Key,
    collection: Collection[Any],
    data: bytes,
    *,
    before: Entry | None,
    exact: bool = True,
) -> Entry:
    """Records a write in the cache, which shows it from now on; its echo does not trigger `key`, which made it.

    `before` is the entry at the time of the request. `exact` says that the server accepted the write only because that was the
    newest version, or because the object did not exist: without it, the answer may be another writer's version, and its echo
    triggers everybody.
    """
    written = collection.cached.written(data)
    read = before.version if before else 0
    writer, version = Writer(deps.controller, key), Version(collection.kind, written.key, written.version)
    if collection.wrote(data, writer=writer, read=read if exact else _UNKNOWN):
        deps.retract(key, version)
    if deps.on_write is not None and written.version != read:
        deps.on_write(writer, version, before, written)
    held = collection.entry(written.key)
    return held if held is not None and held.version == written.version else written
