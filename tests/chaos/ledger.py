"""A subscriber that believes every change it is told, and what the server says instead."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Iterable
from typing import Any, NamedTuple

from navarch.api import Key
from navarch.cache import Change, Entry


class Seen(NamedTuple):
    """One version of one object."""

    key: Key
    version: int


Holding = dict[str, Seen]
"""Objects by uid: another object of the same name is another one, so no deletion can hide behind a creation."""


def holding_of(entries: Iterable[Entry]) -> Holding:
    """What a collection holds."""
    return {entry.uid: Seen(entry.key, entry.version) for entry in entries}


class Ledger:
    """Adds up changes: `holds` is what a controller would believe in. `contradictions` says which changes do not follow
    from the ones before.
    """

    def __init__(self) -> None:
        self.holds: Holding = {}
        self.told: set[int] = set()
        """Every version that was told."""
        self.deleted: set[str] = set()
        """The uid of every object whose deletion was told."""
        self.contradictions: list[str] = []

    def __call__(self, change: Change) -> None:
        if change.old is not None and self.holds.get(change.old.uid) != Seen(change.old.key, change.old.version):
            self.contradictions.append(f"{change.old!r} was told as the past of {change.new!r}, but was never told")
        if change.old is None and change.new is not None and change.new.uid in self.holds:
            self.contradictions.append(f"{change.new!r} was told as new, but is known")
        if change.new is not None:
            self.told.add(change.new.version)
            self.holds[change.new.uid] = Seen(change.new.key, change.new.version)
        elif change.old is not None:
            self.holds.pop(change.old.uid, None)
            self.deleted.add(change.old.uid)


def difference(expected: Holding, got: Holding, who: str) -> str | None:
    """What `who` has wrong, in words; None if nothing."""
    complaints = [f"lacks {expected[uid].key} at {expected[uid].version}" for uid in expected.keys() - got.keys()]
    complaints += [f"still has {got[uid].key} at {got[uid].version}" for uid in got.keys() - expected.keys()]
    complaints += [
        f"has {got[uid].key} at {got[uid].version} instead of {expected[uid].version}"
        for uid in expected.keys() & got.keys()
        if expected[uid] != got[uid]
    ]
    if not complaints:
        return None
    return (
        f"expected {who} to have what the server has ({len(expected)} objects), but it {'; it '.join(complaints[:5])}"
    )


@contextlib.asynccontextmanager
async def running(*parts: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Runs long-lived parts beside the block and ends them with it; one that fails fails the block."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(part) for part in parts]
        yield
        for task in tasks:
            task.cancel()
