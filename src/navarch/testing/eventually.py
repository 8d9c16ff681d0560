"""`Eventually`: waits until a condition holds, or fails with what was awaited and what was there last."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Final, Generic, Protocol, TypeVar

from navarch._base.clock import Clock
from navarch._base.tasks import within
from navarch.api import Object
from navarch.errors import NotFound

T = TypeVar("T")

_LOOK_SECONDS: Final = 0.25
"""The pause between two reads when nothing is written: a condition may depend on more than the cluster."""
_LONGEST_SHOWN: Final = 3000
_BEGINNING_SHOWN: Final = 500
"""The head of a longer text that a message shows; its tail follows, which has the status of an object."""


class RevisionSource(Protocol):
    """Reports writes to the store."""

    async def revision(self) -> int:
        """Returns the store's current revision."""
        ...

    async def changed_since(self, revision: int) -> int:
        """Waits for a write after `revision`, and returns the store's revision then."""
        ...


class Eventually(Generic[T]):
    """One wait for one condition; `awaited` names it in the message of a time-out."""

    def __init__(
        self,
        source: RevisionSource,
        clock: Clock,
        read: Callable[[], Awaitable[T]],
        holds: Callable[[T], Any],
        awaited: str,
    ) -> None:
        self._source = source
        self._clock = clock
        self._read = read
        self._holds = holds
        self._awaited = awaited
        self._last = "nothing: no read has ended"

    async def wait(self, seconds: float) -> T:
        """Returns the value for which the condition holds; raises `AssertionError` after so many seconds."""
        __tracebackhide__ = True  # the test's own line is what pytest shows
        try:
            return await within(self._clock, seconds, self._poll())
        except TimeoutError:
            raise AssertionError(f"expected {self._awaited} within {seconds:g} s, got at last {self._last}") from None

    async def _poll(self) -> T:
        while True:
            revision = await self._source.revision()
            try:
                value = await self._read()
                self._last = _shown(value)
                if self._holds(value):
                    return value
            except NotFound as error:
                self._last = str(error)
            except (AttributeError, LookupError, TypeError) as error:
                self._last = f"{self._last} ({type(error).__name__}: {error})"
            await self._written_or_paused(revision)

    async def _written_or_paused(self, revision: int) -> None:
        try:
            await within(self._clock, _LOOK_SECONDS, _discard(self._source.changed_since(revision)))
        except TimeoutError:
            return


async def _discard(work: Awaitable[int]) -> None:
    """Awaits the work without its result."""
    await work


def _shown(value: object) -> str:
    """Returns the `repr` of the value without managedFields, cut in its middle if it is long."""
    text = repr([_without_managers(each) for each in value] if isinstance(value, list) else _without_managers(value))
    if len(text) <= _LONGEST_SHOWN:
        return text
    left_out = len(text) - _LONGEST_SHOWN
    return f"{text[:_BEGINNING_SHOWN]} ... ({left_out} characters) ... {text[_BEGINNING_SHOWN + left_out :]}"


def _without_managers(value: object) -> object:
    """Returns the object without managedFields, which are longer than all other fields."""
    if not isinstance(value, Object) or not value.metadata.managed_fields:
        return value
    shown = value.copy()
    shown.metadata.managed_fields = []
    return shown


def source_of(holds: Callable[..., Any]) -> str:
    """Returns the source of the condition on one line, for messages."""
    try:
        lines = [line.strip() for line in inspect.getsource(holds).splitlines()]
    except (OSError, TypeError):
        return repr(holds)
    return " ".join(line for line in lines if line)
