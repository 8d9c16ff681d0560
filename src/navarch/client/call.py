"""One call to the API server, with safe retries, Navarch's errors, and warnings logged once."""

from __future__ import annotations

import logging
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import msgspec

from navarch._base.backoff import Backoff, BackoffDelays
from navarch._base.clock import Clock
from navarch.api import decode
from navarch.client.response_errors import bad_answer, error_from_response
from navarch.client.transport import Request, Response, Transport
from navarch.errors import (
    ApiError,
    BadAnswerError,
    ConnectError,
    ConnectionLostError,
    DeadlineError,
    DecodeError,
    MalformedJsonError,
    NavarchError,
    TlsError,
    TransportError,
    Unauthorized,
)

_log = logging.getLogger("navarch.client")
_APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often a call is tried and how long it waits between attempts. The call's own time limit always applies."""

    attempts: int = 8
    backoff: Backoff = Backoff(initial=0.1, maximum=10.0, jitter=0.5)


class Attempts:
    """The attempts of one call: decides after each failure whether there is another, and when."""

    def __init__(self, retry: RetryPolicy, request: Request, clock: Clock, rng: random.Random) -> None:
        self._left = retry.attempts - 1
        self._delays = BackoffDelays(retry.backoff, rng)
        self._clock = clock
        self._request = request
        self._ends = None if request.timeout is None else clock.monotonic() + request.timeout

    def time_left(self) -> float | None:
        """Returns the seconds until the call's own limit; None if it has none. Raises `DeadlineError` when it has
        passed.
        """
        if self._ends is None:
            return None
        left = self._ends - self._clock.monotonic()
        if left <= 0:
            raise DeadlineError(
                f"expected an answer to {self._request.method} {self._request.path} within {self._request.timeout:g} s"
            )
        return left

    async def wait_after(self, error: NavarchError) -> None:
        """Waits until the next attempt; raises `error` if there is none."""
        if self._left <= 0 or not _may_repeat(self._request, error):
            raise error
        self._left -= 1
        pause = self._delays.next_delay()
        asked = error.retry_after if isinstance(error, ApiError) else None
        delay = pause + (asked or 0.0)
        # An attempt with less time than the pause before it could only say that its time was up.
        if self._ends is not None and self._clock.monotonic() + delay + pause >= self._ends:
            if asked:
                error.args = (f"{error}; the server asks for {asked:g} s of quiet, and the call has not that long",)
            raise error
        _log.info("%s; tried again in %.1f s", error, delay)
        await self._clock.sleep(delay)


def may_pass(error: NavarchError) -> bool:
    """Returns True if a retry may succeed. A wrong certificate, or an answer that is not from Kubernetes, will come
    again.
    """
    if isinstance(error, ApiError):
        return error.code == 429 or error.code >= 500
    return isinstance(error, TransportError) and not isinstance(error, (BadAnswerError, TlsError))


def _may_repeat(request: Request, error: NavarchError) -> bool:
    """Returns True if a second attempt is safe: the first was refused unread, or the request is idempotent."""
    if isinstance(error, ConnectError):
        return may_pass(error)
    if isinstance(error, ApiError) and _was_put_off(error):
        return True
    if not _is_idempotent(request):
        return False
    if isinstance(error, ApiError):
        return error.code in {502, 503, 504} or (error.code >= 500 and error.retry_after is not None)
    return isinstance(error, ConnectionLostError)


def _was_put_off(error: ApiError) -> bool:
    """Returns True if the server asked for a retry before it began; a server that ran out of time may have begun."""
    asked = error.code == 429 or (error.code >= 500 and error.retry_after is not None)
    return asked and error.reason not in {"ServerTimeout", "Timeout"}


def _is_idempotent(request: Request) -> bool:
    return request.method == "GET" or request.headers.get("Content-Type") == _APPLY


T = TypeVar("T")

_WARNING = re.compile(r'^299 \S+ "((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")
_REMEMBERED_WARNINGS = 1000
_REDIRECT = "it leads elsewhere, and a credential is not taken there"


class TypeOf(msgspec.Struct, rename="camel"):
    """The apiVersion and kind of an answer."""

    kind: str = ""
    api_version: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class ApiAnswer:
    """A successful answer, read whole."""

    request: Request
    status: int
    headers: Mapping[str, str]
    body: bytes

    def decoded(self, read: Callable[[bytes], T]) -> T:
        """Returns the body as `read` decodes it. Raises `BadAnswerError` for HTML, a truncated answer and the like."""
        try:
            return read(self.body)
        except MalformedJsonError as error:
            raise self.bad(error) from error

    def type(self) -> TypeOf:
        """Returns the apiVersion and kind of the answer. Raises `BadAnswerError` if it has none."""
        try:
            found = decode(TypeOf, self.body)
        except DecodeError as error:
            raise self.bad(error) from error
        if not found.kind:
            raise self.bad("it has no kind")
        return found

    def bad(self, fault: Any) -> BadAnswerError:
        """Returns the error for an answer that is not from Kubernetes."""
        return bad_answer(self.request, self.status, self.headers, self.body, fault)


class ApiCaller:
    """Sends requests through a transport and retries them."""

    def __init__(self, transport: Transport, retry: RetryPolicy, clock: Clock, rng: random.Random) -> None:
        self.transport = transport
        self.clock = clock
        self.rng = rng
        self._retry = retry
        self._warned: set[str] = set()

    async def call(self, request: Request, what: str, *, once: bool = False) -> ApiAnswer:
        """Returns the whole answer. `what` names the call in errors, for example "get pods default/web".

        With `once` a refusal is raised and not retried.
        """
        attempts = Attempts(self._retry, request, self.clock, self.rng)
        while True:
            try:
                return await self._once(replace(request, timeout=attempts.time_left()), what)
            except NavarchError as error:
                if once:
                    raise
                await attempts.wait_after(error)

    async def open(self, request: Request, what: str) -> Response:
        """Returns the answer as soon as it begins; the caller closes it. Retries only the opening."""
        attempts = Attempts(self._retry, request, self.clock, self.rng)
        while True:
            try:
                return await self._begin(replace(request, timeout=attempts.time_left()), what)
            except NavarchError as error:
                await attempts.wait_after(error)

    async def _once(self, request: Request, what: str) -> ApiAnswer:
        response = await self._begin(request, what)
        try:
            return ApiAnswer(request, response.status, response.headers, await response.read())
        finally:
            await response.close()

    async def _begin(self, request: Request, what: str) -> Response:
        response = await self.transport.send(request)
        self._log_warnings(response)
        if response.status < 300:
            return response
        try:
            body = await response.read()
        finally:
            await response.close()
        if response.status < 400:
            raise bad_answer(request, response.status, response.headers, body, _REDIRECT)
        error = error_from_response(request, what, response.status, response.headers, body)
        if isinstance(error, Unauthorized):
            error.args = (
                f"{error.message}: the server does not take the credential of {self.transport.origin}; renew it",
            )
        raise error

    def _log_warnings(self, response: Response) -> None:
        for header in response.warnings():
            found = _WARNING.match(header)
            text = _ESCAPED.sub(r"\1", found[1]) if found else header
            if text not in self._warned and len(self._warned) < _REMEMBERED_WARNINGS:
                self._warned.add(text)
                _log.warning("API server: %s", text)
