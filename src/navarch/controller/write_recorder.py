"""A transport that tells where is written to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from navarch.api import Dynamic, Key, Kind, Object, encode
from navarch.cache import Collection, Entry
from navarch.client import Client, Request, Response, Transport
from navarch.client.transport import WrappedTransport
from navarch.controller.deps import ControllerDeps, Version, Writer

__all__ = ["recording_client"]

_READS: Final = ("GET", "HEAD")


def recording_client(client: Client, note: Callable[[str], None]) -> Client:
    """The same client; `note` is told the path of each write before it is sent."""
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
    """Whether what was written is an object that nothing keeps: the server has deleted it with its last finalizer."""
    held = msgspec.json.decode(data, type=_HeldHead).metadata
    return bool(held.deletion_timestamp) and not held.finalizers and not held.deletion_grace_period_seconds


def collection_for(deps: ControllerDeps, kind: Kind, namespace: str) -> Collection[Any] | None:
    """The collection that is to know of a write; none if the kind or the namespace is not kept, or nothing is written."""
    collection = deps.collections.get(kind)
    known = collection is not None and collection.keeps(namespace) and not deps.client.options.dry_run
    return collection if known else None


def wire_of(written: Object | Dynamic) -> bytes:
    """The bytes that the server answered with."""
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
    """Every write passes here: the cache shows it from now on, and its echo does not trigger `key`, which wrote it.

    `before` is what the cache had when the request was sent. `exact` says that the server took the write only because
    that was the newest version, or because there was none: without that, the version that it answers with may be
    somebody else's, and its echo triggers everybody.
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
