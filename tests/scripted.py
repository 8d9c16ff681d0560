"""A transport that answers from a script, for tests of everything above the wire."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from multidict import CIMultiDict

from navarch._base.clock import Clock, ManualClock
from navarch.client import Client, Options, Request, Response, WebSocket


@dataclass
class Scripted:
    """One answer. `chunks` come one by one; an exception among them is raised in its place."""

    status: int = 200
    chunks: Sequence[bytes | BaseException] = ()
    headers: Mapping[str, str] = field(default_factory=lambda: CIMultiDict({"Content-Type": "application/json"}))
    said: Sequence[str] = ()
    closed: bool = False

    def warnings(self) -> Sequence[str]:
        return self.said

    async def read(self) -> bytes:
        return b"".join([chunk async for chunk in self.chunks_as_they_come()])

    def chunks_as_they_come(self) -> AsyncIterator[bytes]:
        return _Chunks(iter(self.chunks))

    async def close(self) -> None:
        self.closed = True


class _Chunks:
    def __init__(self, script: Iterable[bytes | BaseException]) -> None:
        self._script = iter(script)

    def __aiter__(self) -> _Chunks:
        return self

    async def __anext__(self) -> bytes:
        for step in self._script:
            if isinstance(step, BaseException):
                raise step
            return step
        raise StopAsyncIteration


class _Answer:
    """A `Scripted` as the client sees it."""

    def __init__(self, script: Scripted) -> None:
        self._script = script
        self.status = script.status
        self.headers = CIMultiDict(script.headers)
        self.warnings = script.warnings
        self.read = script.read
        self.chunks = script.chunks_as_they_come
        self.close = script.close


class LeapingClock(ManualClock):
    """Time that leaps over each sleep and remembers how long it was."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._elapsed += max(seconds, 0.0)
        await self.settle()


class ScriptedTransport:
    """Gives the next answer of its script to each request and keeps the requests."""

    origin = "a script"
    host = "server.example.com:6443"

    def __init__(self, *script: Scripted | BaseException) -> None:
        self.script = list(script)
        self.requests: list[Request] = []

    async def send(self, request: Request) -> Response:
        self.requests.append(request)
        assert self.script, f"expected no further request, got {request.method} {request.path} {dict(request.query)}"
        answer = self.script.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return _Answer(answer)

    async def connect(self, request: Request, protocols: Sequence[str]) -> Response | WebSocket:
        raise NotImplementedError

    async def close(self) -> None: ...


def scripted(
    *script: Scripted | BaseException, clock: Clock | None = None, **options: Any
) -> tuple[Client, ScriptedTransport]:
    """A client whose server says exactly this; time leaps over each wait unless a clock is given."""
    transport = ScriptedTransport(*script)
    rng = random.Random(1)
    return Client(transport, Options(**options), clock=clock or LeapingClock(), rng=rng), transport


def answer(body: Any, status: int = 200, **headers: str) -> Scripted:
    """JSON."""
    named = {"Content-Type": "application/json"} | {name.replace("_", "-"): value for name, value in headers.items()}
    return Scripted(status, [json.dumps(body).encode()], named)


def refusal(code: int, reason: str = "", message: str = "no", *, metadata: Any = None, **details: Any) -> Scripted:
    """A Status that says no."""
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
    return answer({**body, "message": message, "metadata": metadata or {}, "details": details}, code)


def config_map(name: str = "a", version: int = 1, **fields: Any) -> dict[str, Any]:
    """A ConfigMap as the server sends it."""
    metadata = {"name": name, "namespace": "default", "resourceVersion": str(version), **fields.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **fields}


def event(type: str, object: Any) -> bytes:  # noqa: A002 - the wire's own words
    """A line of a watch."""
    return json.dumps({"type": type, "object": object}).encode() + b"\n"


def page(*items: Any, version: int = 1, token: str = "") -> Scripted:
    """One page of a list of ConfigMaps."""
    metadata = {"resourceVersion": str(version), **({"continue": token} if token else {})}
    return answer({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": metadata, "items": items})
