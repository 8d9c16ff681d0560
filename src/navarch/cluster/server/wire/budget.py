"""The budget of one request: limits how much a request makes the server read, build, copy and evaluate.

Every part that turns bytes of the network into values charges what it does to the budget of the request that is being
served, and is refused when nothing is left. `ApiServer.handle` opens a budget for each request; code that serves no
request (a controller, a test of a parser) charges one that is unlimited, but for the size and the depth of each body.

    with opened(RequestBudget()) as budget:
        decode_json(body, "application/yaml")
    budget.spent  # Spent(body_bytes=..., nodes=..., copied_bytes=0, cel_cost=0, pattern_steps=0)

The counters of `Spent`:

- `body_bytes`: bytes of bodies that were decoded, after decompression;
- `nodes`: objects, lists and scalars that were built from them, aliases and merge keys of YAML expanded, and defaults of
  CRDs that were filled in;
- `copied_bytes`: bytes of JSON that `copy` operations of JSON patches have duplicated;
- `cel_cost`: cost units of CEL expressions, as Kubernetes counts them;
- `pattern_steps`: steps of regular expressions (`navarch.schema.patterns`) of schemas, and of compilations of all others.

A budget counts per request, not per body: an object that is decoded twice is charged twice.

What others wait for is bounded by `RequestBudget.run`: it takes the steps of a request that decode, check and evaluate, and
runs those that turn out to be long in a thread, so that the event loop goes on serving everybody else.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from navarch._base.clock import SystemClock
from navarch._base.tasks import uninterrupted
from navarch.cluster.server.wire.status_errors import StatusError
from navarch.errors import PatchError
from navarch.schema.cel.cost_tracker import CostBudget, StepExceededError
from navarch.schema.patterns import PatternMeter, reset_meter, set_meter

DEEPEST: Final = 200
"""How deep values may be nested. Kubernetes allows more where a schema does, but nobody could read it."""
_COMPILATION: Final = 60
"""Cost units for each character of CEL that is compiled; Kubernetes compiles for free."""
_CHARGED_UNSEEN: Final = 1000
_ESCAPES: Final = (b"\\\\", b'\\"')
_SPACE: Final = b" \t\r\n"
_NODES_PER_SECOND: Final = 2_000_000
"""How long the pauses of a large request are: less than its steps take."""


class RequestLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What one request may cost."""

    body_bytes: int = 3 * 1024 * 1024
    """As Kubernetes has it."""
    nodes: int = 100_000
    """Kubernetes has no such limit. The largest objects that are in use, CRDs, have some ten thousand."""
    copied_bytes: int = 3 * 1024 * 1024
    """As Kubernetes has it: all `copy` operations of a JSON patch together."""
    cel_cost: int = 3_000_000
    """Kubernetes allows 10,000,000 for the rules of an object, and for each policy, which take it about a second. Here they
    are evaluated more slowly: this is about a second for all expressions that a request meets.
    """
    pattern_steps: int = 100_000_000
    """Kubernetes has no such limit. This takes at most about a second; usual patterns, much less."""


LIMITS: Final = RequestLimits()


class Spent(msgspec.Struct):
    """What a request has cost so far."""

    body_bytes: int = 0
    nodes: int = 0
    copied_bytes: int = 0
    cel_cost: int = 0
    pattern_steps: int = 0


_STEP: Final = Spent(
    body_bytes=64 * 1024, nodes=5000, copied_bytes=64 * 1024, cel_cost=100_000, pattern_steps=5_000_000
)
"""What a step may cost in the event loop: each of these takes it 20 to 60 ms."""
WEIGHT_OF_EXPRESSIONS: Final = 16
"""How many bytes of a body are decoded while one character of CEL is compiled; see `RequestBudget.run`."""
T = TypeVar("T")


class RequestBudget:
    """Counts what one request costs. Each method refuses, as Kubernetes does, what exceeds its limit."""

    __slots__ = ("_in_thread", "_loop", "_step", "_turns", "limits", "spent")

    def __init__(self, limits: RequestLimits = LIMITS, turns: asyncio.Lock | None = None) -> None:
        self.limits = limits
        self.spent = Spent()
        self._turns = turns
        """What the large requests of a server take turns by."""
        self._step: Spent | None = None
        """What may have been spent by the end of the step that the event loop is in."""
        self._in_thread = 0
        """How many steps are in a thread, or wait for it."""
        self._loop: asyncio.AbstractEventLoop | None = None
        """The event loop; known from the first step in a thread on."""

    def charge_body(self, size: int) -> None:
        """Charges a body before it is decoded; refuses with 413."""
        self.spent.body_bytes += size
        if size > self.limits.body_bytes:
            raise too_large(f"limit is {self.limits.body_bytes}")

    def charge_nodes(self, count: int) -> None:
        """Charges values that a body was decoded to; refuses with 413."""
        self.spent.nodes += count
        if self.spent.nodes > self.limits.nodes:
            raise self._crowded()
        if self._step is not None and self.spent.nodes > self._step.nodes:
            raise StepExceededError

    def _crowded(self) -> StatusError:
        return too_large(f"expected at most {self.limits.nodes} values in a request, got more")

    def decode_json(self, body: bytes) -> Any:
        """Returns the value of a JSON text, charged; refuses with 413 a text of too many values before it is decoded.

        Raises RecursionError if values are nested deeper than `DEEPEST`: what comes after recurses. Short texts are
        charged the most that they can hold, which costs less than to look.
        """
        containers = body.count(b"{") + body.count(b"[")
        most = containers + body.count(b",") + 1
        if self.spent.nodes + most > self.limits.nodes:
            msgspec.json.decode(body, type=msgspec.Raw)  # what is no JSON is refused as such
            most = _values_in(body)
            if self.spent.nodes + most > self.limits.nodes:
                raise self._crowded()
        value = msgspec.json.decode(body)
        if containers > DEEPEST or most > _CHARGED_UNSEEN:
            self.charge_value(value)
        else:
            self.charge_nodes(most)
        return value

    def charge_value(self, value: Any) -> None:
        """Charges a value level by level, so that one that is too large is refused before all of it is counted."""
        level = [value]
        for _ in range(DEEPEST + 1):
            self.charge_nodes(len(level))
            level = [each for each in level if each.__class__ is dict or each.__class__ is list]
            if not level:
                return
            level = [each for inner in level for each in (inner.values() if inner.__class__ is dict else inner)]
        raise RecursionError("exceeded max depth")

    def charge_copy(self, size: int) -> None:
        """Charges bytes that a JSON patch copies. Raises PatchError, since Kubernetes takes such a patch for a bad one."""
        self.spent.copied_bytes += size
        if self.spent.copied_bytes > self.limits.copied_bytes:
            raise PatchError(
                f"expected all copy operations together to copy at most {self.limits.copied_bytes} bytes, got"
                f" {self.spent.copied_bytes}"
            )
        if self._step is not None and self.spent.copied_bytes > self._step.copied_bytes:
            raise StepExceededError

    def charge_cel(self, cost: int) -> None:
        """Charges cost units of CEL. What exceeding them means is for the caller to say; see `cel_left`."""
        self.spent.cel_cost += cost

    def charge_cel_source(self, size: int) -> None:
        """Charges the compilation of CEL of so many characters; refuses with 413."""
        self.charge_cel(_COMPILATION * size)
        if self.spent.cel_cost > self.limits.cel_cost:
            most = self.limits.cel_cost // _COMPILATION
            raise too_large(f"expected at most {most} characters of CEL in a request, got more")
        if self._step is not None and self.spent.cel_cost > self._step.cel_cost:
            raise StepExceededError

    def charge_pattern(self, steps: int) -> None:
        """Charges steps of regular expressions before they are made; refuses with 413."""
        self.spent.pattern_steps += steps
        if self.spent.pattern_steps > self.limits.pattern_steps:
            raise too_large(
                f"expected regular expressions to take at most {self.limits.pattern_steps} steps in a request (bytes of"
                " text times instructions of the pattern), got more"
            )
        if self._step is not None and self.spent.pattern_steps > self._step.pattern_steps:
            raise StepExceededError

    async def run(self, step: Callable[[], T], *, size: int = 0) -> T:
        """Returns the result of a step of the request, which reads so many bytes.

        A short step runs at once. One of a large request, or one that turns out to be long, runs in a thread; what it
        did before is done again and charged once. So a step changes nothing but the object of its request, and gives
        the same result when it is begun anew. What it needs of the server's state it reads with `in_loop`. Without
        `turns` there is nobody to give way to.
        """
        if self._turns is None:
            return step()
        if size <= _STEP.body_bytes and not self._in_thread and not self._is_large:
            before = replace(self.spent)
            self._step = Spent(
                nodes=before.nodes + _STEP.nodes,
                copied_bytes=before.copied_bytes + _STEP.copied_bytes,
                cel_cost=before.cel_cost + _STEP.cel_cost,
                pattern_steps=before.pattern_steps + _STEP.pattern_steps,
            )
            try:
                return step()
            except StepExceededError:
                self.spent = before
            finally:
                self._step = None
        self._loop = asyncio.get_running_loop()
        self._in_thread += 1
        try:
            async with self._turns:
                return await uninterrupted(asyncio.to_thread(step))
        finally:
            self._in_thread -= 1

    def in_loop(self, read: Callable[[], T]) -> T:
        """Returns what `read` returns of the state of the server, which belongs to the event loop; steps call it."""
        if self._loop is None or _is_in_loop():
            return read()
        result: Future[T] = Future()
        self._loop.call_soon_threadsafe(_resolve, result, read)
        return result.result()

    @property
    def _is_large(self) -> bool:
        spent = self.spent
        return spent.nodes > _STEP.nodes or spent.cel_cost > _STEP.cel_cost or spent.pattern_steps > _STEP.pattern_steps

    async def yield_loop(self) -> None:
        """Lets other requests go on, if this one is large; it is called between the steps of a write.

        Large requests take turns: between two steps of any of them there is a pause in which nothing but small ones are
        served.
        """
        if not self._is_large:
            return
        if self._turns is None:
            await SystemClock().sleep(0)
            return
        async with self._turns:
            await SystemClock().sleep(self.spent.nodes / _NODES_PER_SECOND)

    @property
    def cel_left(self) -> int:
        """How many cost units of CEL are left."""
        return max(0, self.limits.cel_cost - self.spent.cel_cost)

    @property
    def cel_left_in_step(self) -> int | None:
        """How many are left in the step that the event loop is in; None if there is none."""
        return None if self._step is None else max(0, self._step.cel_cost - self.spent.cel_cost)


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _resolve(result: Future[T], read: Callable[[], T]) -> None:
    try:
        result.set_result(read())
    except BaseException as error:  # noqa: BLE001 - whoever waits for the result gets it
        result.set_exception(error)


def _values_in(body: bytes) -> int:
    r"""How many values a JSON text has, those that duplicates replace among them.

    >>> _values_in(b'{"a": [1, "x,\\"[", {}], "a": [ ]}')
    6
    """
    for escape in _ESCAPES:
        body = body.replace(escape, b"")
    outside = b"0".join(body.split(b'"')[::2]).translate(None, _SPACE)
    filled = outside.count(b"{") + outside.count(b"[") - outside.count(b"{}") - outside.count(b"[]")
    return 1 + outside.count(b",") + filled


def too_large(why: str) -> StatusError:
    """413: the request costs more than one request may."""
    return StatusError(413, "RequestEntityTooLarge", f"Request entity too large: {why}")


_WITHOUT_LIMITS: Final = RequestLimits(
    nodes=sys.maxsize, copied_bytes=sys.maxsize, cel_cost=sys.maxsize, pattern_steps=sys.maxsize
)


def unlimited_budget(turns: asyncio.Lock | None = None) -> RequestBudget:
    """Returns a budget for what belongs to no request."""
    return RequestBudget(_WITHOUT_LIMITS, turns)


_UNLIMITED: Final = unlimited_budget()
"""For code that serves no request."""
_current: ContextVar[RequestBudget] = ContextVar("request_budget")


class OpenBudget(NamedTuple):
    """What `close_budget` restores."""

    budget: Token[RequestBudget]
    meter: Token[PatternMeter]


def current_budget() -> RequestBudget:
    """Returns the budget of the request that the present task serves."""
    return _current.get(_UNLIMITED)


def open_budget(budget: RequestBudget | None = None) -> OpenBudget:
    """Makes a budget, a new one unless it is given, the one that the present task charges, until `close_budget`."""
    budget = budget or RequestBudget()
    return OpenBudget(_current.set(budget), set_meter(budget.charge_pattern))


def close_budget(before: OpenBudget) -> None:
    """Ends what `open_budget` began."""
    reset_meter(before.meter)
    _current.reset(before.budget)


@contextmanager
def cel_budget(limit: int) -> Iterator[CostBudget]:
    """A budget for some of the request's expressions: `limit`, or what is left of the request's own."""
    request = current_budget()
    budget = CostBudget(min(limit, request.cel_left), step=request.cel_left_in_step)
    try:
        yield budget
    finally:
        request.charge_cel(budget.spent)


@contextmanager
def opened(budget: RequestBudget) -> Iterator[RequestBudget]:
    """The same for a block."""
    before = open_budget(budget)
    try:
        yield budget
    finally:
        close_budget(before)


def bounded_json(body: bytes) -> Any:
    """Returns the value of a JSON text that somebody else wrote, charged to the current budget.

    Raises msgspec.DecodeError, UnicodeDecodeError, RecursionError for what is nested too deep, or StatusError.
    """
    return current_budget().decode_json(body)
