"""Letting changes gather: whoever has many children would otherwise go through all of them for each one that changes."""

from __future__ import annotations

from typing import cast

from navarch.api import Object
from navarch.client.target import Readable
from navarch.controller import Context

_FEW = 50
_SECONDS_PER_CHILD = 0.0001
_MOST_SECONDS = 1.0


async def gathered(ctx: Context, owner: Object, children: int | None) -> bool:
    """Waits for a moment that grows with the number of children, so that looking at them takes a small part of the time.

    What is read afterwards has whatever changed meanwhile: the work grows with the children, not with their square.
    The number is what a status says, and a status may say anything: the moment has an end. Returns whether the owner still asks for the same; if it does not, its change has called the reconciler anew.
    """
    if children is None or children <= _FEW:
        return True
    await ctx.client.clock.sleep(min(children * _SECONDS_PER_CHILD, _MOST_SECONDS))
    found = await ctx.get(cast(Readable[Object], type(owner)), owner.name)
    return found is not None and _asked(found) == _asked(owner)


def _asked(owner: Object) -> tuple[str, int, bool]:
    metadata = owner.metadata
    return metadata.uid, metadata.generation, metadata.deletion_timestamp is None
