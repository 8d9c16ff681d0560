"""Letting changes gather: whoever has many children would otherwise go through all of them for each one that changes."""

from __future__ import annotations

from navarch.controller import Context

__all__ = ["gathered"]

_FEW = 50
_SECONDS_PER_CHILD = 0.0001


async def gathered(ctx: Context, children: int | None) -> None:
    """Waits for a moment that grows with the number of children, so that looking at them takes a small part of the time.

    What is read afterwards has whatever changed meanwhile: the work grows with the children, not with their square.
    """
    if children is not None and children > _FEW:
        await ctx.client.clock.sleep(children * _SECONDS_PER_CHILD)
