"""One call to the API server: tried again where that is safe, with errors of our tree and warnings logged once."""

from __future__ import annotations

import logging
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import msgspec

from navarch._base.clock import Clock
from navarch.api import decode
from navarch.client.answers import bad_answer, error_from_answer
from navarch.client.retry import Attempts, Retry
from navarch.client.transport import Request, Response, Transport
from navarch.errors import BadAnswerError, DecodeError, MalformedJsonError, NavarchError, Unauthorized

__all__ = ["Answer", "Caller", "TypeOf"]

T = TypeVar("T")

_log = logging.getLogger("navarch.client")
_WARNING = re.compile(r'^299 \S+ "((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")
_REMEMBERED_WARNINGS = 1000
_REDIRECT = "it leads elsewhere, and a credential is not taken there"


class TypeOf(msgspec.Struct, rename="camel"):
    """What an answer says it is."""

    kind: str = ""
    api_version: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class Answer:
    """An answer that says yes, read whole."""

    request: Request
    status: int
    headers: Mapping[str, str]
    body: bytes

    def decoded(self, read: Callable[[bytes], T]) -> T:
        """What `read` makes of the body; raises `BadAnswerError` for HTML, half an answer and the like."""
        try:
            return read(self.body)
        except MalformedJsonError as error:
            raise self.bad(error) from error

    def type(self) -> TypeOf:
        """What the answer says it is; raises `BadAnswerError` if it says nothing, as JSON of anybody else does."""
        try:
            found = decode(TypeOf, self.body)
        except DecodeError as error:
            raise self.bad(error) from error
        if not found.kind:
            raise self.bad("it has no kind")
        return found

    def bad(self, fault: Any) -> BadAnswerError:
        """The answer as an error: it is not what Kubernetes would send."""
        return bad_answer(self.request, self.status, self.headers, self.body, fault)


class Caller:
    """Sends requests through a transport until they are answered."""

    def __init__(self, transport: Transport, retry: Retry, clock: Clock, rng: random.Random) -> None:
        self.transport = transport
        self.clock = clock
        self.rng = rng
        self._retry = retry
        self._warned: set[str] = set()

    async def call(self, request: Request, what: str, *, once: bool = False) -> Answer:
        """The whole answer. `what` names the call in errors, for example "get pods default/web".

        `once` is for calls whose refusal is an answer in itself: it is raised, not waited out.
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
        """The answer as soon as it begins; the caller closes it. Only the opening is tried again."""
        attempts = Attempts(self._retry, request, self.clock, self.rng)
        while True:
            try:
                return await self._begin(replace(request, timeout=attempts.time_left()), what)
            except NavarchError as error:
                await attempts.wait_after(error)

    async def _once(self, request: Request, what: str) -> Answer:
        response = await self._begin(request, what)
        try:
            return Answer(request, response.status, response.headers, await response.read())
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
        error = error_from_answer(request, what, response.status, response.headers, body)
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
