"""Waiting for something that nobody announces, within bounds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from navarch._base.clock import SystemClock

_PAUSE_SECONDS = 0.02


async def until_none(look: Callable[[], Awaitable[str | None]], *, seconds: float) -> float:
    """Looks until nothing is found to complain about, and says how long that took; fails with the last complaint."""
    clock = SystemClock()
    began = clock.monotonic()
    while (complaint := await look()) is not None:
        if clock.monotonic() - began > seconds:
            pytest.fail(f"{complaint} (waited {seconds:g} s)")
        await clock.sleep(_PAUSE_SECONDS)
    return clock.monotonic() - began


async def until(condition: Callable[[], bool], what: str, *, seconds: float = 60.0) -> float:
    """Waits for the condition, and says how long that took; fails with what was awaited."""

    async def look() -> str | None:
        return None if condition() else f"expected {what}"

    return await until_none(look, seconds=seconds)
