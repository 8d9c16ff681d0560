"""A transport around another one that lets things go wrong where a test says so.

faulty = FaultyTransport(transport, clock)
storm = faulty.inject(Answered(429, retry_after=1), on=lists, times=20)
faulty.inject(CutInMidObject(), on=watches)         # the next event of any watch, also of one that is open already
faulty.heal()                                       # from here on all is well again
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from http import HTTPStatus
from typing import Protocol, runtime_checkable

from multidict import CIMultiDict

from navarch._base.clock import Clock
from navarch.api import encode
from navarch.client import Request, Response, Transport, WebSocket
from navarch.errors import ConnectError, ConnectionLostError, DeadlineError, TransportError

Send = Callable[[Request], Awaitable[Response]]
Matcher = Callable[[Request], bool]


class Silence(Enum):
    """Nothing comes any more, and nobody says so: the reader's own time limit is all that ends it."""

    SILENCE = auto()


Step = bytes | TransportError | Silence


@runtime_checkable
class RequestFault(Protocol):
    """What happens to a request."""

    async def play(self, request: Request, send: Send, clock: Clock) -> Response:
        """The answer that the client gets."""
        ...


@runtime_checkable
class StreamFault(Protocol):
    """What happens to a stream when its next line comes; after these steps it is over."""

    def steps(self, line: bytes) -> Sequence[Step]:
        """What the reader gets instead of the line and everything after it."""
        ...


Fault = RequestFault | StreamFault


@dataclass(frozen=True)
class Answered:
    """The request never reaches the server; the answer is a Status with this code."""

    code: int
    retry_after: int | None = None

    async def play(self, request: Request, send: Send, clock: Clock) -> Response:
        reason = HTTPStatus(self.code).phrase.replace(" ", "")
        return _Answer(self.code, _status(self.code, reason), self.retry_after)


@dataclass(frozen=True)
class Refused:
    """Nobody listens at the server's address."""

    async def play(self, request: Request, send: Send, clock: Clock) -> Response:
        raise ConnectError(f"{request.method} {request.path}: connection refused by a fault")


@dataclass(frozen=True)
class AnswerLost:
    """The server does what it was asked to, but its answer is lost."""

    async def play(self, request: Request, send: Send, clock: Clock) -> Response:
        await (await send(request)).close()
        raise ConnectionLostError(f"{request.method} {request.path}: the answer was lost by a fault")


@dataclass(frozen=True)
class Delayed:
    """The request waits before it is sent, the answer before it is handed over."""

    request: float = 0.0
    answer: float = 0.0

    async def play(self, request: Request, send: Send, clock: Clock) -> Response:
        await clock.sleep(self.request)
        response = await send(request)
        await clock.sleep(self.answer)
        return response


@dataclass(frozen=True)
class GoneEvent:
    """A watch says that its revision is no longer kept; the event that was to come is lost with it."""

    def steps(self, line: bytes) -> Sequence[Step]:
        return [encode({"type": "ERROR", "object": _status(410, "Expired")}) + b"\n"]


@dataclass(frozen=True)
class CutInMidObject:
    """Half of an object comes, then the connection breaks; if it is `silent`, the stream ends as if all were well."""

    silent: bool = False

    def steps(self, line: bytes) -> Sequence[Step]:
        half = line[: len(line) // 2]
        return [half] if self.silent else [half, ConnectionLostError("the stream was cut by a fault")]


@dataclass(frozen=True)
class Garbled:
    """Something comes that is no event, as from a proxy that gives up."""

    def steps(self, line: bytes) -> Sequence[Step]:
        return [b"<html><body>Bad Gateway</body></html>\n"]


@dataclass(frozen=True)
class Stalled:
    """The connection is half open: nothing comes, and it does not end."""

    def steps(self, line: bytes) -> Sequence[Step]:
        return [Silence.SILENCE]


@dataclass
class Rule:
    """A fault, where it strikes, and how often it will (None: until it is healed)."""

    fault: Fault
    on: Matcher
    left: int | None
    struck: int = 0

    def strikes(self, request: Request) -> bool:
        """Whether it is this request's turn; if so, that counts."""
        if self.left == 0 or not self.on(request):
            return False
        self.struck += 1
        self.left = None if self.left is None else self.left - 1
        return True


def anything(request: Request) -> bool:
    """Every request."""
    return True


def watches(request: Request) -> bool:
    """Requests for a stream of changes."""
    return request.query.get("watch") == "true"


def lists(request: Request) -> bool:
    """Requests for a list of a namespace or of all; every page counts."""
    return request.method == "GET" and not watches(request)


def whole_lists(request: Request) -> bool:
    """Those that ask for everything in one answer."""
    return lists(request) and "limit" not in request.query


class FaultyTransport:
    """Another transport with faults. Of several rules that match, the one that was injected first strikes."""

    def __init__(self, inner: Transport, clock: Clock) -> None:
        self.requests: list[Request] = []
        """Every request so far, also those that a fault answered."""
        self.pace = 0.0
        """Seconds that each line of a stream takes."""
        self._inner = inner
        self._clock = clock
        self._rules: list[Rule] = []

    @property
    def origin(self) -> str:
        """See `Transport.origin`."""
        return self._inner.origin

    @property
    def host(self) -> str:
        """See `Transport.host`."""
        return self._inner.host

    def inject(self, fault: Fault, *, on: Matcher = anything, times: int | None = 1) -> Rule:
        """Lets `fault` strike the next `times` matches, or all until `heal`; the rule says how often it has."""
        rule = Rule(fault, on, times)
        self._rules.append(rule)
        return rule

    def heal(self) -> None:
        """No fault strikes any more. A stream that one has struck stays as it is: nobody tells its reader."""
        self._rules.clear()
        self.pace = 0.0

    async def send(self, request: Request) -> Response:
        """See `Transport.send`."""
        self.requests.append(request)
        response = await self._sent(request)
        if request.long_lived and response.status == 200:
            return _FaultyStream(self, request, response, self._clock)
        return response

    async def connect(self, request: Request, protocols: Sequence[str]) -> Response | WebSocket:
        """See `Transport.connect`; faults are for requests only."""
        return await self._inner.connect(request, protocols)

    async def close(self) -> None:
        """See `Transport.close`."""
        await self._inner.close()

    def stream_fault(self, request: Request) -> StreamFault | None:
        """The fault that strikes the next line of this stream, if one does."""
        for rule in self._rules:
            if isinstance(rule.fault, StreamFault) and rule.strikes(request):
                return rule.fault
        return None

    async def _sent(self, request: Request) -> Response:
        for rule in self._rules:
            if isinstance(rule.fault, RequestFault) and rule.strikes(request):
                return await rule.fault.play(request, self._inner.send, self._clock)
        return await self._inner.send(request)


class _FaultyStream:
    """A stream line by line, or a list object by object; a fault takes the place of the part whose turn it is."""

    def __init__(self, transport: FaultyTransport, request: Request, response: Response, clock: Clock) -> None:
        self.status = response.status
        self.headers = response.headers
        self.warnings = response.warnings
        self.read = response.read
        self.close = response.close
        self._transport = transport
        self._request = request
        self._chunks = response.chunks()
        self._clock = clock
        self._end = b"\n" if watches(request) else b"}},"
        self._begun = b""
        self._ready: deque[bytes] = deque()
        self._fault: deque[Step] | None = None
        self._paced = False

    def chunks(self) -> AsyncIterator[bytes]:
        return self

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        while self._fault is None:
            if not self._ready:
                self._take(await self._next_chunk())
            elif self._transport.pace and not self._paced:
                self._paced = True
                await self._clock.sleep(self._transport.pace)
            elif fault := self._transport.stream_fault(self._request):
                self._fault = deque(fault.steps(self._ready.popleft()))
            else:
                self._paced = False
                return self._ready.popleft()
        return await self._next_step(self._fault)

    async def _next_chunk(self) -> bytes:
        """The last object of a list has nothing behind it that would show its end."""
        chunk = await anext(self._chunks, b"")
        if not chunk and (not self._begun or watches(self._request)):
            raise StopAsyncIteration
        return chunk

    def _take(self, chunk: bytes) -> None:
        *parts, self._begun = (self._begun + chunk).split(self._end)
        self._ready.extend(part + self._end for part in parts)
        if not chunk:
            self._ready.append(self._begun)
            self._begun = b""

    async def _next_step(self, steps: deque[Step]) -> bytes:
        if not steps:
            raise StopAsyncIteration
        step = steps.popleft()
        if isinstance(step, bytes):
            return step
        if isinstance(step, Silence):
            await self._clock.sleep(self._request.idle_timeout or float("inf"))
            raise DeadlineError(f"{self._request.path}: nothing came for {self._request.idle_timeout} s by a fault")
        raise step


class _Answer:
    def __init__(self, status: int, body: object, retry_after: int | None) -> None:
        self.status = status
        self.headers: Mapping[str, str] = CIMultiDict({"Content-Type": "application/json"})
        if retry_after is not None:
            self.headers = CIMultiDict({**self.headers, "Retry-After": str(retry_after)})
        self._body = encode(body)

    def warnings(self) -> Sequence[str]:
        return ()

    async def read(self) -> bytes:
        return self._body

    def chunks(self) -> AsyncIterator[bytes]:
        raise NotImplementedError("an answer with a failing status is read whole")

    async def close(self) -> None: ...


def _status(code: int, reason: str) -> dict[str, object]:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
    return {**status, "message": f"{reason} by a fault"}
