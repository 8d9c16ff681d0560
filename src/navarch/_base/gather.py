"""Several things at once, none of them given up because another one fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

__all__ = ["gather_all"]

T = TypeVar("T")


async def gather_all(work: Sequence[Callable[[], Awaitable[T]]], *, at_once: int) -> list[T]:
    """The results in the order of the work, of which at most `at_once` is under way.

    If something fails, the rest is still done; then the first error is raised, and its text has the others too.
    Cancellation ends everything.
    """
    turn = asyncio.Semaphore(at_once)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_outcome(turn, each)) for each in work]
    outcomes = [task.result() for task in tasks]
    failures = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    if failures:
        raise _first_with_all(failures, len(work))
    return [outcome for outcome in outcomes if not isinstance(outcome, Exception)]


async def _outcome(turn: asyncio.Semaphore, work: Callable[[], Awaitable[T]]) -> T | Exception:
    async with turn:
        try:
            return await work()
        except Exception as error:  # noqa: BLE001 - it is raised when the others have ended
            return error


def _first_with_all(failures: list[Exception], count: int) -> Exception:
    first, *others = failures
    if others:
        rest = "; ".join(str(error) for error in others)
        first.args = (f"{first} (and {len(others)} more of {count} failed: {rest})",)
    return first
