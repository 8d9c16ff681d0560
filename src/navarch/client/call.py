"""One call to the API server: tried again where that is safe, with errors of our tree and warnings logged once."""

from __future__ import annotations

import logging
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from navarch._base.clock import Clock
from navarch.client.answers import error_from_answer
from navarch.client.retry import Attempts, Retry
from navarch.client.transport import Request, Response, Transport
from navarch.errors import NavarchError

__all__ = ["Answer", "Caller"]

_log = logging.getLogger("navarch.client")
_WARNING = re.compile(r'^299 \S+ "((?:[^"\\]|\\.)*)"')
_REMEMBERED_WARNINGS = 1000


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that says yes, read whole."""

    status: int
    headers: Mapping[str, str]
    body: bytes


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
        attempts = Attempts(self._retry, replace(request, timeout=None), self.clock, self.rng)
        while True:
            try:
                return await self._begin(request, what)
            except NavarchError as error:
                await attempts.wait_after(error)

    async def _once(self, request: Request, what: str) -> Answer:
        response = await self._begin(request, what)
        try:
            return Answer(response.status, response.headers, await response.read())
        finally:
            await response.close()

    async def _begin(self, request: Request, what: str) -> Response:
        response = await self.transport.send(request)
        self._log_warnings(response)
        if response.status < 400:
            return response
        try:
            body = await response.read()
        finally:
            await response.close()
        raise error_from_answer(request, what, response.status, response.headers, body)

    def _log_warnings(self, response: Response) -> None:
        for header in response.warnings():
            found = _WARNING.match(header)
            text = found[1].replace('\\"', '"') if found else header
            if text not in self._warned and len(self._warned) < _REMEMBERED_WARNINGS:
                self._warned.add(text)
                _log.warning("API server: %s", text)
