"""Lists objects at one revision, in pages with continue tokens."""

from __future__ import annotations

import base64
import re

import msgspec

from navarch.cluster.server.objects.selectors import Selection
from navarch.cluster.server.objects.types import ResourceType
from navarch.cluster.server.wire.json_errors import json_fault
from navarch.cluster.server.wire.request import ApiRequest, Json
from navarch.cluster.server.wire.status_errors import StatusError, bad_request, gone
from navarch.cluster.storage import CompactedError, Storage, StoragePage, Stored

_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted "
    "between the time the first chunk was returned and now may show up in the list."
)
_CHUNK = 500
_MOST_DIGITS = 20
"""Of a number that could be one of 64 bits, with its sign."""
_INTEGER = re.compile("[+-]?[0-9]+")
_VERSION = "meta.k8s.io/v1"
_NOT_BASE64 = re.compile(r"[^A-Za-z0-9_-]")


class _ContinueToken(msgspec.Struct):
    """As Kubernetes writes it; a revision of -1 asks for the newest."""

    v: str = ""
    rv: int = 0
    start: str = ""


class Listed(msgspec.Struct, frozen=True):
    """One page of objects, and the metadata of the list."""

    items: list[Stored]
    metadata: Json


def parsed_version(text: str) -> int:
    """A resource version as a number, 0 for none; refuses with 400 what is none."""
    if not text:
        return 0
    fault = "" if text.isascii() and text.isdecimal() else "invalid syntax"
    if not fault and (len(text) > _MOST_DIGITS or int(text) >= 2**64):
        fault = "value out of range"
    if fault:
        shown = f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": {fault}'
        raise bad_request(f"invalid resource version: {shown}")
    return int(text)


def parsed_integer(request: ApiRequest, name: str) -> int:
    """A parameter that is a number, 0 for none, as Go reads it; refuses with 400 what is none."""
    if name not in request.query:
        return 0
    text = request.parameter(name)
    if not _INTEGER.fullmatch(text):
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    if len(text) > _MOST_DIGITS or not -(2**63) <= int(text) < 2**63:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
    return int(text)


async def list_page(
    storage: Storage, resource: ResourceType, request: ApiRequest, selection: Selection, namespace: str
) -> Listed:
    """The page that was asked for; refuses with 400, 410 and 504 as Kubernetes does."""
    limit = asked_limit(request)
    place = await _place(storage, resource, request, namespace)
    try:
        found, page = await _matching(storage, place, selection, limit)
    except CompactedError:
        raise _expired(place) from None
    metadata: Json = {"continue": ""} if resource.is_custom else {}
    metadata["resourceVersion"] = str(page.revision)
    if page.remaining:
        last = page.items[-1].key.removeprefix(place.prefix)
        metadata["continue"] = _encoded(_ContinueToken(_VERSION, page.revision, f"{last}\0"))
        if not selection:
            metadata["remainingItemCount"] = page.remaining
    return Listed(found, metadata)


class _PageStart(msgspec.Struct, frozen=True):
    prefix: str
    revision: int = 0
    after: str = ""
    from_token: bool = False


async def _place(storage: Storage, resource: ResourceType, request: ApiRequest, namespace: str) -> _PageStart:
    prefix, token = resource.prefix(namespace), request.parameter("continue")
    version, match = request.parameter("resourceVersion"), request.parameter("resourceVersionMatch")
    if token:
        found = _decoded(token)
        if version not in {"", "0"}:
            raise bad_request("specifying resource version is not allowed when using continue")
        await refuse_future(storage, found.rv)
        return _PageStart(prefix, max(found.rv, 0), prefix + found.start.rstrip("\0"), from_token=found.rv > 0)
    wanted = parsed_version(version)
    if wanted:
        await refuse_future(storage, wanted)
    is_exact = match == "Exact" or (not match and asked_limit(request) > 0)
    return _PageStart(prefix, wanted if is_exact else 0)


async def refuse_future(storage: Storage, wanted: int) -> None:
    """504 for a revision that has not come yet: Kubernetes waits for it, and gives up."""
    current = await storage.revision()
    if wanted > current:
        raise StatusError(
            504,
            "Timeout",
            f"Timeout: Too large resource version: {wanted}, current: {current}",
            details={
                "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
                "retryAfterSeconds": 1,
            },
            headers={"Retry-After": "1"},
        )


def asked_limit(request: ApiRequest) -> int:
    """How many are asked for, 0 for all; refuses with 400 what is no number."""
    return max(parsed_integer(request, "limit"), 0)


async def _matching(
    storage: Storage, place: _PageStart, selection: Selection, limit: int
) -> tuple[list[Stored], StoragePage]:
    """As many as were asked for, out of as many pages as it takes; the last page says how many come after it."""
    if not selection:
        page = await storage.page(place.prefix, revision=place.revision, limit=limit, after=place.after)
        return page.items, page
    found: list[Stored] = []
    after, revision = place.after, place.revision
    while True:
        page = await storage.page(place.prefix, revision=revision, limit=_CHUNK if limit else 0, after=after)
        for index, (stored, data) in enumerate(zip(page.items, await selection.as_asked(page.items), strict=True)):
            if selection.matches(data):
                found.append(stored)
                if limit and len(found) == limit:
                    rest = len(page.items) - index - 1
                    return found, StoragePage(page.items[: index + 1], page.revision, page.remaining + rest)
        if not page.remaining:
            return found, page
        after, revision = page.items[-1].key, page.revision


def _expired(place: _PageStart) -> StatusError:
    if not place.from_token:
        return gone("The resourceVersion for the provided list is too old.")
    start = place.after.removeprefix(place.prefix)
    return gone(_EXPIRED, continue_token=_encoded(_ContinueToken(_VERSION, -1, f"{start}\0")))


def _encoded(token: _ContinueToken) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).rstrip(b"=").decode()


def _decoded(text: str) -> _ContinueToken:
    data = _from_base64(text)
    if fault := json_fault(data):
        raise _odd_token(fault)
    try:
        token = msgspec.json.decode(data, type=_ContinueToken)
    except msgspec.ValidationError as error:
        raise _odd_token(str(error)) from None
    if not -(2**63) <= token.rv < 2**63:
        raise _odd_token(
            f"json: cannot unmarshal number {token.rv} into Go struct field continueToken.rv of type int64"
        )
    if token.v != _VERSION:
        raise _odd_token(f"server does not recognize this encoded version {token.v}")
    if not token.rv:
        raise _odd_token(f"incorrect encoded start resourceVersion (version {_VERSION})")
    if not token.start:
        raise _odd_token(f"encoded start key empty (version {_VERSION})")
    if {"..", ".", ""} & set(token.start.removeprefix("/").removesuffix("\0").split("/")):
        raise _odd_token(token.start)
    return token


def _odd_token(why: str) -> StatusError:
    return bad_request(f"invalid continue token: continue key is not valid: {why}")


def _from_base64(text: str) -> bytes:
    """What is written without padding, and with the letters of URLs."""
    odd = _NOT_BASE64.search(text)
    if odd or len(text) % 4 == 1:
        raise _odd_token(f"illegal base64 data at input byte {odd.start() if odd else len(text) - 1}")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
