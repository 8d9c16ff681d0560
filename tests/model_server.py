"""A small API server in memory, on the client's `Transport` protocol: for tests of what is built on a client.

    server = ModelServer(Widget, Pod, clock=ManualClock())
    client = server.client()
    await client.create(Widget(name="a"))

It knows versions, conflicts, generations, the status subresource, finalizers, pages, selectors, metadata-only reads,
and watches with bookmarks, initial events and revisions that are no longer kept. It answers at once and loses nothing;
what a test wants to go wrong it does itself (`compact`, `end_watches`, `withdraw`, `stale_by`), or with a transport
around this one.

What it does not do: validation and defaults, garbage collection of owned objects, namespaces that must exist,
permissions, WebSockets, limits on how long a watch may take. A strategic merge patch is taken as a merge patch.
Server-side apply merges like a merge patch, and removes what the same manager applied before and no longer does; it
knows no conflicts between managers and replaces lists whole.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import unquote

from multidict import CIMultiDict

from model_store import Json, ModelStore, Refusal
from model_watch import View, WatchStream
from navarch._base.clock import Clock, SystemClock
from navarch.api import Kind, Object, apply_json_patch, apply_merge_patch, create_merge_patch, decode, encode
from navarch.api.kind import Key
from navarch.client import Client, Options, Request, Response, WebSocket
from navarch.client.target import kind_of
from navarch.errors import PatchError, TransportError

_APPLY = "application/apply-patch+yaml"
_JSON_PATCH = "application/json-patch+json"
_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_NEWEST = -1


@dataclass(frozen=True, slots=True)
class _Target:
    """What a path leads to: a collection (no name), an object, or its status."""

    kind: Kind
    namespace: str | None
    name: str | None = None
    subresource: str | None = None

    @property
    def key(self) -> Key:
        return Key(self.namespace or "", self.name or "")


class ModelServer:
    """An API server that serves the given kinds; see the module for what it can do."""

    origin = "a model server"
    host = "server.example.com:6443"

    def __init__(self, *kinds: Kind | type[Object], clock: Clock | None = None) -> None:
        self.store = ModelStore(clock or SystemClock())
        self.requests: list[Request] = []
        """Every request so far, in order."""
        self.stale_by = 0
        """How many versions behind the newest a read may be that does not ask for the newest (resourceVersion "0")."""
        self.streams_lists = True
        """Whether a watch may begin with everything that is there (`sendInitialEvents`); older servers do not know it."""
        self._clock = clock
        self._kinds: list[Kind] = []
        self._kept_since: dict[Kind, int] = {}
        self._watches: set[WatchStream] = set()
        self._applied: dict[tuple[str, str, str | None], Json] = {}
        for kind in kinds:
            self.serve(kind)

    def client(self, options: Options | None = None, *, seed: int = 1) -> Client:
        """A client of this server, whose waits go by the server's clock."""
        return Client(self, options or Options(), clock=self._clock, rng=random.Random(seed))

    def objects(self, what: Kind | type[Object]) -> dict[Key, Json]:
        """All objects of a kind as they are now; to be looked at, not to be changed."""
        return self.store.objects(kind_of(what))

    @property
    def open_watches(self) -> int:
        """How many watches are open right now."""
        return len(self._watches)

    def serve(self, what: Kind | type[Object]) -> None:
        """From now on the server knows this kind; as with a new CRD, nothing before is kept."""
        self._kinds.append(kind_of(what))
        self._kept_since[kind_of(what)] = self.store.version

    def withdraw(self, what: Kind | type[Object]) -> None:
        """Deletes all objects of a kind and the kind itself, as the deletion of a CRD does; its watches end."""
        kind = kind_of(what)
        for key in self.store.objects(kind):
            self.store.remove(kind, key)
        self._kinds.remove(kind)
        self._end([watch for watch in self._watches if watch.view.kind == kind], None)

    def compact(self) -> None:
        """Forgets the past: a watch or a page that begins before now is answered with 410."""
        self.store.compacted = self.store.version

    def bookmark(self) -> None:
        """Sends a bookmark on every watch."""
        self.store.bookmark()
        self._wake()

    def end_watches(self, error: TransportError | None = None) -> None:
        """Ends every watch at once, in good order or with an error; what was not read yet is lost with it."""
        self._end(list(self._watches), error)

    async def send(self, request: Request) -> Response:
        """See `Transport.send`."""
        self.requests.append(request)
        try:
            return self._answered(request)
        except Refusal as refusal:
            return _Answer(refusal.code, refusal.status())
        finally:
            self._wake()

    async def connect(self, request: Request, protocols: Sequence[str]) -> Response | WebSocket:
        """See `Transport.connect`; there is nothing to connect to."""
        return _Answer(404, Refusal(404, "NotFound", "the model server has no WebSockets").status())

    async def close(self) -> None:
        """See `Transport.close`."""
        self.end_watches()

    def _answered(self, request: Request) -> Response:
        base, rest = _split(request.path)
        if request.path == "/version":
            return _Answer(200, {"major": "1", "minor": "33", "gitVersion": "v1.33.4", "platform": "a model"})
        served = [kind for kind in self._kinds if _base(kind) == base]
        if served and not rest:
            return _Answer(200, _discovered(served))
        target = _target(served, rest)
        if target is None:
            return _Answer(404, b"404 page not found\n", "text/plain")
        if target.name is None:
            return self._collection(target, request)
        return _Answer(200, self._object(target, request))

    def _collection(self, target: _Target, request: Request) -> Response:
        if request.method == "POST":
            return _Answer(201, self._created(target, request))
        view = View.of(target.kind, target.namespace, request.query, request.headers.get("Accept", ""))
        if request.method == "DELETE":
            return _Answer(200, self._all_deleted(view))
        return self._watched(view, request) if request.query.get("watch") == "true" else self._listed(view, request)

    def _object(self, target: _Target, request: Request) -> Json:
        if request.method == "GET":
            view = View.of(target.kind, target.namespace, {}, request.headers.get("Accept", ""))
            return view.form(self.store.get(target.kind, target.key))
        if request.method == "DELETE":
            given = decode(dict[str, Any], request.body or b"{}").get("preconditions")
            dry_run = _is_dry_run(request)
            return self.store.delete(target.kind, target.key, given, dry_run=dry_run) or _success()
        if request.method == "PATCH" and self._is_new(target, request):
            return self._created(target, request)
        return self._replaced(target, request)

    def _is_new(self, target: _Target, request: Request) -> bool:
        """Whether this is an apply of an object that is not there yet."""
        is_apply = request.headers["Content-Type"] == _APPLY and target.subresource is None
        return is_apply and target.key not in self.store.objects(target.kind)

    def _replaced(self, target: _Target, request: Request) -> Json:
        if request.method == "PATCH":
            changed = self._patched(target, request)
        else:
            changed = decode(dict[str, Any], request.body or b"")
            _require_version(target.kind, changed)
        only_status, dry_run = target.subresource == "status", _is_dry_run(request)
        return self.store.replace(target.kind, target.key, changed, only_status=only_status, dry_run=dry_run)

    def _created(self, target: _Target, request: Request) -> Json:
        body = decode(dict[str, Any], request.body or b"")
        if request.headers.get("Content-Type") == _APPLY:  # a version binds an apply only where there is an object
            body = {**body, "metadata": _without_version(body.get("metadata") or {})}
        made = self.store.create(target.kind, target.namespace or "", body, dry_run=_is_dry_run(request))
        if request.headers.get("Content-Type") == _APPLY and not _is_dry_run(request):
            self._applied[made["metadata"]["uid"], _manager(request), target.subresource] = body
        return made

    def _all_deleted(self, view: View) -> Json:
        for key, found in self.store.objects(view.kind).items():
            if view.has(found):
                self.store.delete(view.kind, key)
        return _success()

    def _patched(self, target: _Target, request: Request) -> Json:
        """The object as the patch would have it. Its own version only counts if the patch names one."""
        found = self.store.get(target.kind, target.key)
        bare = {**found, "metadata": _without_version(found["metadata"])}
        if request.headers["Content-Type"] == _APPLY:
            return self._applied_to(bare, target, request)
        try:
            return _changed_by(request.headers["Content-Type"], request.body or b"", bare)
        except PatchError as error:
            raise Refusal(422, "Invalid", str(error)) from error

    def _applied_to(self, found: Json, target: _Target, request: Request) -> Json:
        by = found["metadata"]["uid"], _manager(request), target.subresource
        desired = decode(dict[str, Any], request.body or b"")
        without_given_up = apply_merge_patch(create_merge_patch(self._applied.get(by, desired), desired), found)
        if not _is_dry_run(request):
            self._applied[by] = desired
        merged: Json = apply_merge_patch(desired, without_given_up)
        return merged

    def _listed(self, view: View, request: Request) -> Response:
        version, after = self._place(view.kind, request.query)
        found = self.store.objects_at(view.kind, version)
        ordered = sorted((_order(key), each) for key, each in found.items())
        left = [(order, each) for order, each in ordered if order > after and view.has(each)]
        limit = int(str(request.query.get("limit", 0))) or len(left)
        metadata = {"resourceVersion": str(version)}
        if len(left) > limit:
            metadata["continue"] = f"{version}:{left[limit - 1][0]}"
        items = [view.form(each) for _, each in left[:limit]]
        return _Answer(200, {**view.list_type(), "metadata": metadata, "items": items})

    def _watched(self, view: View, request: Request) -> Response:
        query = request.query
        version, initial = str(query.get("resourceVersion", "")), query.get("sendInitialEvents") == "true"
        if initial and not self.streams_lists:
            raise Refusal(422, "Invalid", "sendInitialEvents: Forbidden: the WatchList feature gate is disabled")
        from_the_start = initial or version in {"", "0"}
        start = self._place(view.kind, query)[0] if from_the_start else int(version)
        watch = WatchStream(self.store, view, start, on_close=self._watches.discard)
        if from_the_start:
            watch.begin_with_everything(end_bookmark=initial)
        elif start < self._oldest(view.kind):
            watch.refuse(_too_old(start, self._oldest(view.kind)))
        watch.bookmarks = query.get("allowWatchBookmarks") == "true"
        self._watches.add(watch)
        return watch

    def _place(self, kind: Kind, query: Mapping[str, Any]) -> tuple[int, str]:
        """The version that a read gets, and the key after which it goes on."""
        newest, wanted = self.store.version, query.get("resourceVersion", "")
        if token := query.get("continue"):
            version, _, after = token.partition(":")
            if int(version) != _NEWEST and int(version) < self._oldest(kind):
                raise _too_old(int(version), self._oldest(kind), token=f"{_NEWEST}:{after}")
            return (newest if int(version) == _NEWEST else int(version)), after
        if wanted and int(wanted) > newest:
            raise Refusal(504, "Timeout", f"Too large resource version: {wanted}, current: {newest}")
        if query.get("resourceVersionMatch") == "Exact":
            if int(wanted) < self._oldest(kind):
                raise _too_old(int(wanted), self._oldest(kind))
            return int(wanted), ""
        return max(int(wanted or newest), newest - self.stale_by, self._oldest(kind)), ""

    def _oldest(self, kind: Kind) -> int:
        return max(self.store.compacted, self._kept_since[kind])

    def _wake(self) -> None:
        for watch in self._watches:
            watch.wake()

    def _end(self, watches: list[WatchStream], error: TransportError | None) -> None:
        for watch in watches:
            watch.end(error)
            self._watches.discard(watch)


class _Answer:
    """An answer that is there as a whole."""

    def __init__(self, status: int, body: Json | bytes, content_type: str = "application/json") -> None:
        self.status = status
        self.headers: Mapping[str, str] = CIMultiDict({"Content-Type": content_type})
        self._body = body if isinstance(body, bytes) else encode(body)

    def warnings(self) -> Sequence[str]:
        return ()

    async def read(self) -> bytes:
        return self._body

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self._body

    async def close(self) -> None: ...


def _split(path: str) -> tuple[str, list[str]]:
    """The group and version, and what comes after."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    length = 3 if parts[0] == "apis" else 2
    return "/".join(parts[:length]), parts[length:]


def _base(kind: Kind) -> str:
    return f"apis/{kind.api_version}" if kind.group else f"api/{kind.version}"


def _target(served: list[Kind], rest: list[str]) -> _Target | None:
    by_plural = {kind.plural: kind for kind in served}
    if len(rest) > 2 and rest[0] == "namespaces" and rest[2] in by_plural:
        _, namespace, plural, *names = rest
        return _found(partial(_Target, by_plural[plural], namespace), names)
    if rest and rest[0] in by_plural:
        return _found(partial(_Target, by_plural[rest[0]], None), rest[1:])
    return None


def _found(make: partial[_Target], names: list[str]) -> _Target | None:
    """Only the status is served below an object."""
    return make(*names) if len(names) < 2 or names[1:] == ["status"] else None


def _discovered(kinds: list[Kind]) -> Json:
    resources = []
    for kind in kinds:
        names = [kind.plural, f"{kind.plural}/status"] if kind.has_status else [kind.plural]
        resources += [
            {"name": name, "kind": kind.kind, "namespaced": kind.namespaced, "verbs": _VERBS} for name in names
        ]
    return {"kind": "APIResourceList", "groupVersion": kinds[0].api_version, "resources": resources}


def _order(key: Key) -> str:
    return f"{key.namespace}/{key.name}"


def _manager(request: Request) -> str:
    return str(request.query.get("fieldManager", ""))


def _is_dry_run(request: Request) -> bool:
    return request.query.get("dryRun") == "All" or b'"dryRun":["All"]' in (request.body or b"")


def _changed_by(media_type: str, patch: bytes, found: Json) -> Json:
    if media_type == _JSON_PATCH:
        changed: Json = apply_json_patch(decode(list[Any], patch), found)
    else:
        changed = apply_merge_patch(decode(dict[str, Any], patch), found)
    return changed


def _without_version(metadata: Json) -> Json:
    return {field: value for field, value in metadata.items() if field != "resourceVersion"}


def _require_version(kind: Kind, changed: Json) -> None:
    """Custom kinds take no update that does not say what it was made from; built-in ones do."""
    is_custom = "." in kind.group and not kind.group.endswith(".k8s.io")
    if is_custom and not (changed.get("metadata") or {}).get("resourceVersion"):
        raise Refusal(422, "Invalid", "metadata.resourceVersion: Invalid value: 0: must be specified for an update")


def _too_old(version: int, oldest: int, *, token: str = "") -> Refusal:
    return Refusal(410, "Expired", f"too old resource version: {version} ({oldest})", token=token)


def _success() -> Json:
    return {"kind": "Status", "apiVersion": "v1", "status": "Success", "metadata": {}}
