"""What a read of the model server is about, and a watch as a stream of lines."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from multidict import CIMultiDict

from model_store import Bookmark, Change, Json, ModelStore, Refusal, versioned
from navarch.api import Fields, Kind, Labels, encode
from navarch.errors import TransportError

_INITIAL_END = {"k8s.io/initial-events-end": "true"}


@dataclass(frozen=True, slots=True)
class View:
    """Which objects a list or a watch shows, and in which form."""

    kind: Kind
    namespace: str | None
    labels: Labels
    fields: Fields
    metadata_only: bool

    @classmethod
    def of(cls, kind: Kind, namespace: str | None, query: Mapping[str, Any], accept: str) -> View:
        """As a request asks for it."""
        labels, fields = Labels(query.get("labelSelector", "")), Fields(query.get("fieldSelector", ""))
        return cls(kind, namespace, labels, fields, "as=PartialObjectMetadata" in accept)

    def has(self, found: Json | None) -> bool:
        """Whether the object is shown."""
        if found is None or self.namespace not in {None, found["metadata"].get("namespace")}:
            return False
        return self.labels.matches(found["metadata"].get("labels")) and self.fields.matches(found)

    def form(self, found: Json) -> Json:
        """The object as it is sent."""
        return {**self._type(), "metadata": found["metadata"]} if self.metadata_only else {**found, **self._type()}

    def list_type(self) -> Json:
        """The type of a list of these."""
        form = self._type()
        return {**form, "kind": f"{form['kind']}List"}

    def bookmark(self, version: int, annotations: Mapping[str, str] | None = None) -> Json:
        """An object that has nothing but a version."""
        metadata: Json = {"resourceVersion": str(version), "creationTimestamp": None}
        return {**self._type(), "metadata": {**metadata, **({"annotations": annotations} if annotations else {})}}

    def _type(self) -> Json:
        if self.metadata_only:
            return {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata"}
        return {"apiVersion": self.kind.api_version, "kind": self.kind.kind}


class WatchStream:
    """An answer whose body are the changes after `version` that a view shows, one line each, until it is ended.

    It reads the log when it is read itself, so a slow reader costs nothing and `end` loses what was not read yet.
    """

    status = 200
    headers: Mapping[str, str] = CIMultiDict({"Content-Type": "application/json"})

    def __init__(
        self, store: ModelStore, view: View, version: int, *, on_close: Callable[[WatchStream], object]
    ) -> None:
        self.view = view
        self.bookmarks = False
        self._store = store
        self._version = version
        self._position = bisect_right(store.log, version, key=lambda entry: entry.version)
        self._ready: deque[bytes] = deque()
        self._awake = asyncio.Event()
        self._ended = False
        self._error: TransportError | None = None
        self._on_close = on_close

    def begin_with_everything(self, *, end_bookmark: bool) -> None:
        """Shows each object that is there as added, before any change."""
        for found in self._store.objects_at(self.view.kind, self._version).values():
            if self.view.has(found):
                self._ready.append(_line("ADDED", self.view.form(found)))
        if end_bookmark:
            self._ready.append(_line("BOOKMARK", self.view.bookmark(self._version, _INITIAL_END)))

    def refuse(self, refusal: Refusal) -> None:
        """Sends one error and ends."""
        self._ready.append(_line("ERROR", refusal.status()))
        self._ended = True

    def wake(self) -> None:
        """Something may have happened."""
        self._awake.set()

    def end(self, error: TransportError | None) -> None:
        """Nothing more comes; `error` is raised where the end would be."""
        self._ready.clear()
        self._ended, self._error = True, error
        self.wake()

    def warnings(self) -> Sequence[str]:
        return ()

    async def read(self) -> bytes:
        return b"".join([line async for line in self])

    def chunks(self) -> AsyncIterator[bytes]:
        return self

    async def close(self) -> None:
        self.end(None)
        self._on_close(self)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        while not self._ready:
            if self._ended:
                raise self._error or StopAsyncIteration
            if self._position == len(self._store.log):
                self._awake.clear()
                await self._awake.wait()
            else:
                self._take()
        return self._ready.popleft()

    def _take(self) -> None:
        entry = self._store.log[self._position]
        self._position += 1
        if entry.version <= self._version:  # a watch from a version of the future is silent until that is reached
            return
        if isinstance(entry, Bookmark):
            if self.bookmarks:
                self._ready.append(_line("BOOKMARK", self.view.bookmark(entry.version)))
        elif entry.kind == self.view.kind and (line := self._shown(entry)):
            self._ready.append(line)

    def _shown(self, change: Change) -> bytes | None:
        """An object that comes into view is added, one that leaves it is deleted, whatever happened to it elsewhere."""
        was, is_ = self.view.has(change.before), self.view.has(change.after)
        if is_ and change.after:
            return _line("MODIFIED" if was else "ADDED", self.view.form(change.after))
        if was and change.before:
            return _line("DELETED", self.view.form(versioned(change.before, change.version)))
        return None


def _line(kind: str, found: Json) -> bytes:
    return encode({"type": kind, "object": found}) + b"\n"
