"""Turns the server's failures into errors, without the values that it quotes.

A server that refuses a patch quotes the whole patched object, and with a Secret its data. Error text keeps scalars,
since they tell the reader what was wrong; it omits objects, lists and differences between objects, and of Secrets every
value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from navarch.client.transport import Request
from navarch.errors import (
    AlreadyExists,
    ApiError,
    BadAnswerError,
    BadRequest,
    Cause,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    MethodNotAllowed,
    NotAcceptable,
    NotFound,
    ServerError,
    TooLarge,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    UnsupportedMediaType,
)

_LEFT_OUT = "(left out)"
_MARK = re.compile(r"\b(?:(?:Invalid|Unsupported|Duplicate) value|Not found|Too long|Too many): |\bgot (?=&)")
_STRUCTURE = re.compile(r'"?(?:[{\[&]|(?:[\w.*]|\[\])*map\[|(?:[\w.*]|\[\])+\{)')
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*("|$)', re.DOTALL)
_SCALAR = re.compile(r"[^\s:,\]]+(?=[:,\]]|$)")
_DIFFERENCE = re.compile(r"\n@@.*?(?=\n[^-+ @]|\Z)", re.DOTALL)
_SECRETS = re.compile(r"^/api/v1/(?:namespaces/[^/]+/)?secrets(?:/|$)")
_BRACKETS = {"{": 1, "[": 1, "}": -1, "]": -1}


def is_secret(path: str) -> bool:
    """Returns True if a request to `path` is about Secrets."""
    return _SECRETS.match(path) is not None


def without_echoes(text: str, *, secret: bool) -> str:
    """Returns `text` without the objects that it quotes; with `secret`, without any value.

    >>> without_echoes('spec: Invalid value: {"a":1}: expected a list', secret=False)
    'spec: Invalid value: (left out): expected a list'
    """
    text = _DIFFERENCE.sub(f" {_LEFT_OUT}", text)
    parts, end = [], 0
    for mark in _MARK.finditer(text):
        if mark.start() >= end and (value_end := _value_end(text, mark.end(), secret=secret)) > mark.end():
            parts += [text[end : mark.end()], _LEFT_OUT]
            end = value_end
    return "".join([*parts, text[end:]])


def _value_end(text: str, start: int, *, secret: bool) -> int:
    """Returns the end of the value that begins at `start`; `start` itself if the value stays."""
    structured = _STRUCTURE.match(text, start)
    if not structured and not secret:
        return start
    if text.startswith("&", start):
        return len(text)  # printed without quotes: nothing tells its end from what follows
    if quoted := _QUOTED.match(text, start):
        return quoted.end()
    if structured:
        return _balanced_end(text, start)
    scalar = _SCALAR.match(text, start)
    return scalar.end() if scalar else start


def _balanced_end(text: str, start: int) -> int:
    """Returns the end of the text that begins at `start`: a colon, comma or closing bracket outside of its own
    brackets.
    """
    depth, place = 0, start
    while place < len(text):
        if quoted := _QUOTED.match(text, place):
            place = quoted.end()
            continue
        depth += _BRACKETS.get(text[place], 0)
        if depth < 0 or (depth == 0 and text.startswith((": ", ", "), place)):
            break
        place += 1
    return place


_BY_CODE: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: MethodNotAllowed,
    406: NotAcceptable,
    409: Conflict,
    410: Gone,
    413: TooLarge,
    415: UnsupportedMediaType,
    422: Invalid,
    429: TooManyRequests,
    503: Unavailable,
    504: Unavailable,
}
_BY_REASON: dict[str, type[ApiError]] = {"AlreadyExists": AlreadyExists, "Expired": Gone, "Gone": Gone}
_UNSERVED = b"404 page not found\n"  # what an API server says of a group or version that it does not know
_PLAIN = b"Client sent an HTTP request to an HTTPS server.\n"
_MANAGER = re.compile(r'conflict with "((?:[^"\\]|\\.)*)"')


class StatusCause(msgspec.Struct, rename="camel"):
    """One cause of a Status, as the server sends it."""

    reason: str | None = None
    message: str | None = None
    field: str | None = None


class StatusDetails(msgspec.Struct, rename="camel"):
    """The details of a Status, as the server sends them."""

    causes: list[StatusCause] | None = None
    retry_after_seconds: int | None = None


class StatusMeta(msgspec.Struct):
    """The metadata of a Status: a 410 for a list may have a continue token."""

    continue_: str | None = msgspec.field(name="continue", default=None)


class StatusBody(msgspec.Struct, rename="camel"):
    """`kind: Status`, the form of every failure."""

    code: int | None = None
    reason: str | None = None
    message: str | None = None
    details: StatusDetails | None = None
    metadata: StatusMeta | None = None


class _StatusOnly(StatusBody, tag_field="kind", tag="Status"):
    """A Status without further fields: a proxy's answer must not pass for one."""


_status_decoder = msgspec.json.Decoder(_StatusOnly)


def error_from_response(request: Request, what: str, code: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    """Returns the error for an answer with a failing HTTP status; `what` names the call."""
    retry_after = _retry_after(headers)
    try:
        status: StatusBody = _status_decoder.decode(body)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError):
        text = _known_text(request, body) or _not_kubernetes(request, code, headers, body)
        return _class_for(code, "")(f"{what}: {text}", code=code, retry_after=retry_after)
    return error_from_status(what, status, code, retry_after, secret=is_secret(request.path))


def error_from_status(
    what: str, status: StatusBody, code: int = 500, retry_after: float | None = None, *, secret: bool = False
) -> ApiError:
    """Returns the error for a Status, without the objects that it quotes; for a `secret` without any value."""
    reason, details = status.reason or "", status.details or StatusDetails()
    message = without_echoes(status.message or "", secret=secret)
    error = _class_for(status.code or code, reason)(
        f"{what}: {message.strip() or reason or 'the server gave no reason'}",
        code=status.code or code,
        reason=reason,
        causes=[_cause(cause, secret=secret) for cause in details.causes or ()],
        retry_after=details.retry_after_seconds or retry_after,
        continue_token=(status.metadata.continue_ or "") if status.metadata else "",
    )
    if isinstance(error, Conflict):
        _name_managers(error)
    return error


def _cause(cause: StatusCause, *, secret: bool) -> Cause:
    return Cause(cause.field or "", cause.reason or "", without_echoes(cause.message or "", secret=secret))


def _class_for(code: int, reason: str) -> type[ApiError]:
    return _BY_REASON.get(reason) or _BY_CODE.get(code) or (ServerError if code >= 500 else ApiError)


def _name_managers(error: Conflict) -> None:
    """Names the managers that conflict with a server-side apply, and the remedy."""
    owned: dict[str, list[str]] = {}
    for cause in error.causes:
        if cause.reason == "FieldManagerConflict" and (found := _MANAGER.search(cause.message)):
            owned.setdefault(found[1], []).append(cause.field)
    if owned:
        error.managers = tuple(owned)
        fields = "; ".join(f"{manager} owns {', '.join(paths)}" for manager, paths in owned.items())
        error.args = (f"{error.message} ({fields}; leave these fields out, or take them over with force=True)",)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Returns the seconds of Retry-After; Kubernetes never sends a date."""
    value = headers.get("Retry-After", "")
    return float(value) if value.isascii() and value.isdecimal() else None


def bad_answer(request: Request, code: int, headers: Mapping[str, str], body: bytes, fault: Any = "") -> BadAnswerError:
    """Returns the error for an answer that claims success but is not from Kubernetes."""
    return BadAnswerError(_not_kubernetes(request, code, headers, body) + (f" ({fault})" if fault else ""))


def _known_text(request: Request, body: bytes) -> str:
    """Returns the meaning of an API server's answer that is no Status; empty for any other body."""
    if body == _PLAIN:
        return "expected TLS, got a request without; write https:// in the server's address"
    if body != _UNSERVED:
        return ""
    if request.path.startswith("/api/"):  # which every API server has
        return f"the server does not serve {request.path}; check the path in the server's address"
    return f"the server does not serve {request.path}; is the CRD installed, and does it have this version?"


def _not_kubernetes(request: Request, code: int, headers: Mapping[str, str], body: bytes) -> str:
    kind = headers.get("Content-Type") or "no content type"
    return (
        f"expected a Kubernetes answer to {request.method} {request.path}, got {len(body)} bytes of {kind} with status "
        f"{code}; check that the address is an API server's and what stands in between"
    )
