"""Eventually for something to come true, and saying what was there instead."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Final, Generic, Protocol, TypeVar

from navarch._base.clock import Clock
from navarch._base.tasks import within
from navarch.api import Object
from navarch.errors import NotFound

__all__ = ["Eventually", "RevisionSource"]

T = TypeVar("T")

_LOOK_SECONDS: Final = 0.25
"""What does not depend on the cluster alone is looked at so often, even if nothing is written."""
_LONGEST_SHOWN: Final = 3000
_BEGINNING_SHOWN: Final = 500
"""Of what is longer. The rest is its end: there an object has its status."""


class RevisionSource(Protocol):
    """Where it is known when something was written."""

    async def revision(self) -> int:
        """How far the store has got."""
        ...

    async def changed_since(self, revision: int) -> int:
        """Returns how far the store has got once something was written after `revision`."""
        ...


class Eventually(Generic[T]):
    """One wait for one condition."""

    def __init__(
        self,
        changes: RevisionSource,
        clock: Clock,
        read: Callable[[], Awaitable[T]],
        holds: Callable[[T], Any],
        what: str,
    ) -> None:
        self._changes = changes
        self._clock = clock
        self._read = read
        self._holds = holds
        self._what = what
        self._last = "nothing yet"

    async def until_it_holds(self, seconds: float) -> T:
        """The value that holds; raises `AssertionError` if that takes longer than so many seconds."""
        __tracebackhide__ = True  # the test's own line is what pytest shows
        try:
            return await within(self._clock, seconds, self._looked_again_and_again())
        except TimeoutError:
            what = self._what or _text_of(self._holds)
            raise AssertionError(f"expected {what} within {seconds:g} s, got at last {self._last}") from None

    async def _looked_again_and_again(self) -> T:
        while True:
            revision = await self._changes.revision()
            try:
                value = await self._read()
                self._last = _shown(value)
                if self._holds(value):
                    return value
            except NotFound as error:
                self._last = str(error)
            except (AttributeError, LookupError, TypeError) as error:
                self._last = f"{self._last} ({type(error).__name__}: {error})"
            await self._something_new(revision)

    async def _something_new(self, revision: int) -> None:
        try:
            await within(self._clock, _LOOK_SECONDS, _nothing(self._changes.changed_since(revision)))
        except TimeoutError:
            return


async def _nothing(work: Awaitable[int]) -> None:
    await work


def _shown(value: object) -> str:
    text = repr([_without_managers(each) for each in value] if isinstance(value, list) else _without_managers(value))
    if len(text) <= _LONGEST_SHOWN:
        return text
    left_out = len(text) - _LONGEST_SHOWN
    return f"{text[:_BEGINNING_SHOWN]} ... ({left_out} characters) ... {text[_BEGINNING_SHOWN + left_out :]}"


def _without_managers(value: object) -> object:
    """An object without who manages which of its fields: that is longer than all the rest."""
    if not isinstance(value, Object) or not value.metadata.managed_fields:
        return value
    shown = value.copy()
    shown.metadata.managed_fields = []
    return shown


def _text_of(holds: Callable[..., Any]) -> str:
    """The line of the test that says what is awaited."""
    try:
        lines = [line.strip() for line in inspect.getsource(holds).splitlines()]
    except (OSError, TypeError):
        return repr(holds)
    return " ".join(line for line in lines if line)
