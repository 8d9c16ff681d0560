"""The errors of the distribution protocol, and the pages of its lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NoReturn
from urllib.parse import quote

import msgspec
from aiohttp import web

from navarch.errors import InvalidValueError
from navarch.oci.reference import check_repository, is_digest

API_VERSION: Final = {"Docker-Distribution-API-Version": "registry/2.0"}
_LARGEST_PAGE: Final = 1000
_STATUSES: Final = {
    "BLOB_UNKNOWN": 404,
    "BLOB_UPLOAD_INVALID": 416,
    "BLOB_UPLOAD_UNKNOWN": 404,
    "DIGEST_INVALID": 400,
    "MANIFEST_BLOB_UNKNOWN": 404,
    "MANIFEST_INVALID": 400,
    "MANIFEST_UNKNOWN": 404,
    "NAME_INVALID": 400,
    "NAME_UNKNOWN": 404,
    "PAGINATION_NUMBER_INVALID": 400,
    "SIZE_INVALID": 413,
    "TOOMANYREQUESTS": 429,
    "UNKNOWN": 500,
    "UNSUPPORTED": 405,
}


def error_response(code: str, message: str, headers: dict[str, str] | None = None) -> web.Response:
    """Returns the answer of a failure, as registries give it."""
    body = msgspec.json.encode({"errors": [{"code": code, "message": message, "detail": None}]})
    return web.Response(
        status=_STATUSES[code], body=body, content_type="application/json", headers={**API_VERSION, **(headers or {})}
    )


class RefusedRequestError(Exception):
    """A request that is answered with an error."""

    def __init__(self, code: str, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.response = error_response(code, message, headers)


def refuse(code: str, message: str, **headers: str) -> NoReturn:
    """Ends the request with an error of the protocol."""
    raise RefusedRequestError(code, message, {name.replace("_", "-"): value for name, value in headers.items()})


def repository_of(request: web.Request) -> str:
    """Returns the repository of a request; refuses names that are none, such as paths out of the folder."""
    return checked_repository(request.match_info["name"])


def checked_repository(name: str) -> str:
    """Returns the name of a repository; refuses one that is none."""
    try:
        check_repository(name)
    except InvalidValueError as error:
        refuse("NAME_INVALID", str(error))
    return name


def checked_digest(digest: str) -> str:
    """Returns the digest; refuses text that is none."""
    if not is_digest(digest):
        refuse("DIGEST_INVALID", f"expected sha256: and 64 hexadecimal digits, got {digest[:80]!r}")
    return digest


def page(request: web.Request, field: str, names: Sequence[str], **more: str) -> web.Response:
    """Returns the page of a sorted list that the request asks for (`n`, `last`), with a link to the next one."""
    last, count = request.query.get("last", ""), request.query.get("n", "")
    if count and not (count.isascii() and count.isdigit() and len(count) < 10):
        refuse("PAGINATION_NUMBER_INVALID", f"expected a number of names, got {count[:80]!r}")
    following = [name for name in names if name > last]
    most = min(int(count), _LARGEST_PAGE) if count else _LARGEST_PAGE
    headers = dict(API_VERSION)
    if 0 < most < len(following):
        target = f"{request.rel_url.raw_path}?n={most}&last={quote(following[most - 1], safe='')}"
        headers["Link"] = f'<{target}>; rel="next"'
    body = msgspec.json.encode({**more, field: following[:most]})
    return web.Response(body=body, content_type="application/json", headers=headers)
