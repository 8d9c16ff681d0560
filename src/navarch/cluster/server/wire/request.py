"""`ApiRequest`, `Reply` and `RequestInfo`: requests and replies as values, and the meaning of a path."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, Protocol

import msgspec
from msgspec.structs import replace

_MOST_CHARACTERS: Final = 4 * 1024
"""Of all warnings together; beyond that each is cut."""
_CUT_TO: Final = 256
_CONTROL_CHARACTER: Final = re.compile("[\x00-\x1f\x7f-\x9f]")
_NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def bounded_warnings(given: Sequence[str]) -> list[str]:
    """Returns the warnings that are sent: all of them, or, if they are long, the beginnings of the first.

    >>> len(bounded_warnings([f"{number:0300}" for number in range(100)]))
    16
    """
    distinct = [text for text in dict.fromkeys(given) if not _CONTROL_CHARACTER.search(text)]
    if sum(map(len, distinct)) <= _MOST_CHARACTERS:
        return distinct
    return list(_cut(distinct))


def _cut(texts: Iterable[str]) -> Iterable[str]:
    length = 0
    for text in texts:
        if length >= _MOST_CHARACTERS:
            return
        yield text[:_CUT_TO]
        length += min(len(text), _CUT_TO)


def as_watch(request: ApiRequest) -> ApiRequest:
    """The same request with the path of today, if it has one of those of old.

    >>> asked = as_watch(ApiRequest(method="GET", path="/apis/apps/v1/watch/namespaces/a/deployments/web"))
    >>> asked.path, asked.query
    ('/apis/apps/v1/namespaces/a/deployments', {'watch': ['true'], 'fieldSelector': ['metadata.name=web']})
    """
    if "/watch/" not in request.path or request.method != "GET":
        return request
    root, _, rest = request.path.partition("/watch/")
    depth = {"api": 2, "apis": 3}.get(request.path.split("/")[1], 0)
    if root.count("/") != depth:
        return request
    collection, name = _parts(rest.rstrip("/"))
    query = {**request.query, "watch": ["true"]}
    if name:
        selectors = [f"metadata.name={name}", *request.query.get("fieldSelector", ())]
        query["fieldSelector"] = [",".join(selectors)]
    return replace(request, path=f"{root}/{collection}", query=query)


def _parts(rest: str) -> tuple[str, str]:
    """The collection and the name in it, which may be missing."""
    parts = rest.split("/")
    length = 3 if parts[0] == "namespaces" and len(parts) > 2 else 1
    return "/".join(parts[:length]), "/".join(parts[length:])


Json = dict[str, Any]


class User(msgspec.Struct, frozen=True):
    """Who asks."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


class ApiRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request. Header names are in lower case; the values of a repeated header are joined by line breaks.

    `certificate` is the client's, in DER, verified by TLS; `source` is its address. A body that is only passed on is
    `incoming`, as it comes; `raw_query` is the query as it was written, where that is known.
    """

    method: str
    path: str
    query: Mapping[str, Sequence[str]] = msgspec.field(default_factory=dict)
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    body: bytes = b""
    certificate: bytes | None = None
    source: str = ""
    incoming: AsyncIterator[bytes] | None = None
    raw_query: str = ""

    def parameter(self, name: str) -> str:
        """The first value of a query parameter; empty if it was not given."""
        found = self.query.get(name)
        return found[0] if found else ""

    def flag(self, name: str) -> bool:
        """A query parameter that is true or false, as Go reads it."""
        return self.parameter(name) in {"1", "t", "T", "true", "TRUE", "True"}


class Socket(Protocol):
    """A connection on which HTTP is over: the messages of a WebSocket, or bytes as they come."""

    async def receive(self) -> bytes | None:
        """What comes next; None when the client has closed. What is not received is not read ahead."""
        ...

    async def send(self, data: bytes) -> None:
        """Sends a message, or bytes; waits while the client takes no more. Raises ConnectionError if it is gone."""
        ...


class Upgrade(msgspec.Struct):
    """What a connection becomes. `serve` talks on it to the end and is cancelled when the client is gone.

    `protocol` is what is spoken inside; the messages of a WebSocket are text if `text` says so. What becomes mere `bytes`
    begins with an answer that `serve` itself sends.
    """

    kind: Literal["websocket", "SPDY/3.1", "bytes"]
    protocol: str
    serve: Callable[[Socket], Awaitable[None]]
    text: bool = False


class Reply(msgspec.Struct):
    """An answer: `body` as a whole, or `stream` chunk by chunk until it ends or the reader leaves, or an `upgrade`.

    An empty `content_type` is not told; what is `passed_on` is told as it came. The values of a repeated header are joined by line breaks.
    The reader of a stream that is `patient` may take any time; others are given up when they read nothing for long.
    """

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    warnings: list[str] = msgspec.field(default_factory=list)
    stream: AsyncIterator[bytes] | None = None
    patient: bool = False
    passed_on: bool = False
    upgrade: Upgrade | None = None


class RequestInfo(msgspec.Struct, frozen=True):
    """What a request is about, in the words of RBAC and audit. `resource` is empty for what is no resource."""

    verb: str
    path: str
    group: str = ""
    version: str = ""
    namespace: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""

    @property
    def is_resource(self) -> bool:
        """Whether it is about a resource."""
        return bool(self.resource)


def request_info(request: ApiRequest) -> RequestInfo:
    """What the path and method mean, as Kubernetes takes them apart.

    >>> info = request_info(ApiRequest(method="GET", path="/apis/apps/v1/namespaces/default/deployments/web/scale"))
    >>> info.verb, info.group, info.resource, info.subresource, info.namespace, info.name
    ('get', 'apps', 'deployments', 'scale', 'default', 'web')
    """
    parts = [part for part in request.path.split("/") if part]
    other = RequestInfo(request.method.lower(), request.path)
    if len(parts) < 3 or parts[0] not in {"api", "apis"}:
        return other
    group, parts = ("", parts[1:]) if parts[0] == "api" else (parts[1], parts[2:])
    if len(parts) < 2:
        return other
    version, parts = parts[0], parts[1:]
    namespace, parts = _namespace_and_rest(parts)
    resource, name, subresource = _pad(parts)
    return RequestInfo(_verb(request, name), request.path, group, version, namespace, resource, subresource, name)


def is_passed_on(request: ApiRequest) -> bool:
    """Whether its body is not for this server.

    >>> [is_passed_on(ApiRequest(method="PUT", path=f"/api/v1/nodes/{rest}")) for rest in ("a/proxy/b", "proxy")]
    [True, False]
    """
    return request_info(request).subresource == "proxy"


def _namespace_and_rest(parts: list[str]) -> tuple[str, list[str]]:
    """`namespaces/a/pods` is about pods; `namespaces/a` and `namespaces/a/status` about the namespace itself."""
    if parts[0] != "namespaces" or len(parts) < 2:
        return "", parts
    if len(parts) > 2 and parts[2] not in _NAMESPACE_SUBRESOURCES:
        return parts[1], parts[2:]
    return parts[1], parts


def _pad(parts: list[str]) -> tuple[str, str, str]:
    """What comes behind `proxy` is not for this server."""
    resource, name, *rest = [*parts, "", ""]
    return resource, name, "proxy" if rest[0] == "proxy" else "/".join(part for part in rest if part)


def _verb(request: ApiRequest, name: str) -> str:
    if request.method in {"GET", "HEAD"}:
        if name:
            return "get"
        return "watch" if request.flag("watch") else "list"
    if request.method == "DELETE" and not name:
        return "deletecollection"
    return _VERBS.get(request.method, "")
