"""The endpoint `proxy` of pods, services and nodes."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from typing import Final
from urllib.parse import urlencode

from navarch.cluster.server.pipeline.endpoints.call import ResourceCall
from navarch.cluster.server.pipeline.proxy.backend import (
    BackendError,
    BackendResponse,
    ResumedResponse,
    ask,
    coming,
    going,
    switched,
    switching,
)
from navarch.cluster.server.pipeline.proxy.links import Links, ProxyPath, escaped, joined, way_of
from navarch.cluster.server.pipeline.proxy.targets import KUBELET, ProxyTarget, place_of, unavailable, wanted
from navarch.cluster.server.pipeline.streams.node_access import NodeDirectory, node_host
from navarch.cluster.server.pipeline.streams.upgrades import admit, is_upgrade
from navarch.cluster.server.wire.request import ApiRequest, Reply
from navarch.cluster.server.wire.status_errors import StatusError, bad_request

_MOST_MEMBERS: Final = 16
"""What is behind a member is copied before it is read."""
_FORMS: Final = {"gzip": zlib.MAX_WBITS | 16, "deflate": -zlib.MAX_WBITS}
_OPTIONS: Final = {"pods": "PodProxyOptions", "services": "ServiceProxyOptions", "nodes": "NodeProxyOptions"}
_READING: Final = frozenset({"GET", "HEAD"})
LONGEST_PAGE: Final = 1024 * 1024
"""Bytes of a page whose links are rewritten."""


def unpacked(body: bytes, encoding: str, limit: int) -> bytes | None:
    """Returns what a body in `gzip`, `deflate` or nothing stands for; None if that is more than `limit` bytes, or in
    very many members.

    No more than the limit is ever held. Raises zlib.error for what is not packed so, EOFError if its end is missing.

    >>> unpacked(zlib.compress(bytes(1000), wbits=31), "gzip", 999) is None
    True
    """
    if not encoding:
        return body if len(body) <= limit else None
    pieces: list[bytes] = []
    size = 0
    while body or not pieces:  # of gzip there may be several, one behind the other
        if len(pieces) == _MOST_MEMBERS:
            return None
        inflate = zlib.decompressobj(_FORMS[encoding])
        piece = inflate.decompress(body, limit + 1 - size)
        size += len(piece)
        if size > limit:
            return None
        if not inflate.eof:
            raise EOFError("compressed data ended before the end-of-stream marker was reached")
        pieces.append(piece)
        body = inflate.unused_data if encoding == "gzip" else b""
    return b"".join(pieces)


async def proxy(nodes: NodeDirectory, call: ResourceCall) -> Reply:
    """Passes a request on, and its answer back."""
    if call.request.query.get("dryRun"):
        raise bad_request("dryRun is not supported")
    way = way_of(call.request.path, namespaced=call.resource.namespaced)
    await admit(call, _OPTIONS[call.resource.plural], path=way.path)
    asked = wanted(call)
    if call.resource.plural == "nodes" and asked.port in {"", KUBELET}:
        return await _of_node(nodes, call, asked.name, way)
    place = await place_of(nodes, call, asked)
    return await (_switched if is_upgrade(call.request) else _passed_on)(place, call.request, way)


async def _passed_on(place: ProxyTarget, request: ApiRequest, way: ProxyPath) -> Reply:
    if not way.path and request.method in _READING:
        return _led_below(request, way)
    path, query = escaped(way.path) or "/", _query(request)
    try:
        answer = await ask(place, request, f"{path}?{query}" if query else path, going(request, _uri(way, path)))
    except BackendError as error:
        raise unavailable(f"error trying to reach service: {error}") from error
    links = Links(way.prefix, place.authority, request.headers.get("host", ""))
    return await _told(answer, links)


def _uri(way: ProxyPath, path: str) -> str:
    """Where the client finds it, as far as Kubernetes can tell."""
    found = joined(way.prefix, path)
    return f"{found}/" if path.endswith("/") and not found.endswith("/") else found


async def _switched(place: ProxyTarget, request: ApiRequest, way: ProxyPath) -> Reply:
    """Kubernetes does not pass on the query of such a request."""
    try:
        answer = await ask(place, request, escaped(way.path) or "/", switching(request))
    except BackendError as error:
        raise StatusError(500, "", f"error dialing backend: {error}") from error
    status = answer.response.status
    if status == 101:
        return Reply(101, upgrade=switched(answer))
    if status >= 400:
        return _reply(answer)
    await answer.aclose()
    raise StatusError(500, "", f"invalid upgrade response: status code {status}")


def _led_below(request: ApiRequest, way: ProxyPath) -> Reply:
    """Links that are relative would lead to what is beside the place otherwise."""
    query = _query(request)
    place = f"{way.whole}/?{query}" if query else f"{way.whole}/"
    return Reply(301, headers={"Location": place}, content_type="")


def _query(request: ApiRequest) -> str:
    return request.raw_query or urlencode(request.query, doseq=True)


async def _told(answer: BackendResponse, links: Links) -> Reply:
    """The answer with its links rewritten: that of a redirect, or all of a page."""
    reply = _reply(answer)
    if "Location" in reply.headers:
        reply.headers["Location"] = links.rewritten(reply.headers["Location"])
    elif reply.content_type.partition(";")[0].strip() == "text/html":
        length = reply.headers.pop("Content-Length", None)
        reply = await _page(answer, links, reply)
        if length is not None and reply.stream is not None:
            reply.headers["Content-Length"] = length
    return reply


def _reply(answer: BackendResponse) -> Reply:
    headers = coming(answer.response.headers.items())
    content_type = headers.pop("Content-Type", "")
    return Reply(
        answer.response.status, content_type=content_type, headers=headers, stream=answer, patient=True, passed_on=True
    )


async def _page(answer: BackendResponse, links: Links, reply: Reply) -> Reply:
    """The page with its links rewritten. One that is long, packed or not, goes on as it comes."""
    encoding = reply.headers.get("Content-Encoding", "")
    if encoding not in {"", "gzip", "deflate"} or answer.response.method == "HEAD":
        return reply
    try:
        body = await _beginning(answer)
        page = None if len(body) > LONGEST_PAGE else unpacked(body, encoding, LONGEST_PAGE)
        if page is None:
            reply.stream = ResumedResponse(body, answer)
            return reply
        # Beside the event loop: a page of tags alone takes a millisecond for each kilobyte.
        rewritten = await asyncio.to_thread(lambda: _encoded(links.page(page), encoding))
    except BaseException as error:
        await answer.aclose()
        if isinstance(error, (OSError, EOFError, zlib.error)):
            raise StatusError(500, "", f"the page cannot be read: {error}") from error
        raise
    await answer.aclose()
    return Reply(reply.status, rewritten, reply.content_type, reply.headers, passed_on=True)


async def _beginning(answer: BackendResponse) -> bytes:
    """All of an answer, or more of it than a page may have."""
    pieces, size = [], 0
    async for piece in answer:
        pieces.append(piece)
        size += len(piece)
        if size > LONGEST_PAGE:
            break
    return b"".join(pieces)


def _encoded(body: bytes, encoding: str) -> bytes:
    if encoding == "gzip":
        return gzip.compress(body)
    if not encoding:
        return body
    packing = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packing.compress(body) + packing.flush()


async def _of_node(nodes: NodeDirectory, call: ResourceCall, name: str, way: ProxyPath) -> Reply:
    """What a node says of itself."""
    host, node = await node_host(call, name), nodes.find(name)
    if node is None:
        raise unavailable(f"error trying to reach service: {host.unreachable}")
    if not way.path and call.request.method in _READING:
        return _led_below(call.request, way)
    status, content_type, body = node.page(way.path)
    return Reply(status, body, content_type)
