"""Random histories on a store, compared with a model that keeps every version of everything."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.storage.engines import opened
from cluster.storage.watching import take
from example_counts import examples
from navarch.cluster.storage.protocol import ChangedError, CompactedError, Event, Storage, StoragePage, Stored, Watcher

KEYS = ["/p/a", "/p/a/b", "/p/aa", "/p/b", "/q/a", "/q"]
PREFIXES = ["", "/", "/p", "/p/", "/p/a", "/p/a/", "/q/", "/none"]

Step = tuple[object, ...]

steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from(KEYS), st.binary(max_size=3), st.sampled_from(["right", "wrong"])),
        st.tuples(st.just("delete"), st.sampled_from(KEYS), st.sampled_from(["right", "wrong"])),
        st.tuples(
            st.just("page"),
            st.sampled_from(PREFIXES),
            st.integers(0, 40),
            st.integers(0, 4),
            st.sampled_from(["", "/", *KEYS]),
        ),
        st.tuples(st.just("watch"), st.sampled_from(PREFIXES), st.integers(0, 40)),
        st.tuples(st.just("compact"), st.integers(0, 40)),
    ),
    max_size=40,
)


@dataclass
class Model:
    """Every state of the store so far, by revision."""

    first: int
    oldest: int
    states: list[dict[str, Stored]] = field(default_factory=lambda: [{}])
    events: list[Event] = field(default_factory=list)

    @property
    def revision(self) -> int:
        return self.first + len(self.states) - 1

    @property
    def now(self) -> dict[str, Stored]:
        return self.states[-1]

    def write(self, key: str, value: bytes | None) -> int:
        after = dict(self.now)
        previous = after.pop(key, None)
        if value is not None:
            after[key] = Stored(key, value, self.revision + 1)
        self.events.append(Event(key, value, self.revision + 1, previous))
        self.states.append(after)
        return self.revision

    def page(self, prefix: str, revision: int, limit: int, after: str) -> StoragePage:
        state = self.states[revision - self.first]
        keys = sorted(key for key in state if key.startswith(prefix) and key > after)
        chosen = keys[:limit] if limit else keys
        return StoragePage([state[key] for key in chosen], revision, len(keys) - len(chosen))

    def after(self, revision: int, prefix: str) -> list[Event]:
        return [event for event in self.events if event.revision > revision and event.key.startswith(prefix)]


@dataclass
class Pair:
    """A store and its model, which are asked the same questions."""

    storage: Storage
    model: Model

    async def put(self, key: str, value: bytes, condition: str) -> None:
        current = self.model.now.get(key)
        if condition == "right":
            revision = await self.storage.put(key, value, expected=_revision(current))
            assert revision == self.model.write(key, value)
            return
        with pytest.raises(ChangedError) as refused:
            await self.storage.put(key, value, expected=_revision(current) + 1)
        assert refused.value.current == current

    async def delete(self, key: str, condition: str) -> None:
        current = self.model.now.get(key)
        if condition == "right" and current:
            assert await self.storage.delete(key, expected=current.revision) == self.model.write(key, None)
            return
        with pytest.raises(ChangedError) as refused:
            await self.storage.delete(key, expected=_revision(current) + (condition == "wrong"))
        assert refused.value.current == current

    async def page(self, prefix: str, back: int, limit: int, after: str) -> None:
        revision = max(self.model.revision - back, self.model.first)
        with self._refused_if_forgotten(revision):
            page = await self.storage.page(prefix, revision=revision, limit=limit, after=after)
            assert page == self.model.page(prefix, revision, limit, after)

    async def watch(self, prefix: str, back: int) -> None:
        after = max(self.model.revision - back, self.model.first)
        with self._refused_if_forgotten(after):
            async with self.storage.watch(prefix, after=after) as watcher:
                expected = self.model.after(after, prefix)
                assert await take(watcher, len(expected)) == expected

    @contextmanager
    def _refused_if_forgotten(self, revision: int) -> Iterator[None]:
        if revision >= self.model.oldest:
            yield
            return
        with pytest.raises(CompactedError) as refused:
            yield
        assert refused.value.oldest == self.model.oldest

    async def compact(self, back: int) -> None:
        revision = max(self.model.revision - back, self.model.first)
        await self.storage.compact(revision)
        self.model.oldest = max(self.model.oldest, revision)


def _revision(current: Stored | None) -> int:
    return current.revision if current else 0


async def agree(storage: Storage, history: list[Step]) -> None:
    """Does every step on both, then compares all that is left of the past."""
    first = await storage.revision()
    pair = Pair(storage, Model(first, oldest=0))
    async with storage.watch("", after=first) as everything:
        for name, *arguments in history:
            await getattr(pair, str(name))(*arguments)
        await _see_everything(everything, pair)
    for back in range(pair.model.revision - first + 1):
        await pair.page("", back, 0, "")
        await pair.watch("", back)


async def _see_everything(watcher: Watcher, pair: Pair) -> None:
    if pair.model.oldest <= pair.model.first:
        assert await take(watcher, len(pair.model.events)) == pair.model.events


@examples(50)
@given(history=steps)
def test_a_store_agrees_with_a_model(engine: str, history: list[Step]) -> None:
    """Whatever is written, deleted, listed, watched and forgotten, in whatever order."""

    async def play() -> None:
        with tempfile.TemporaryDirectory() as folder:
            async with opened(engine, Path(folder)) as storage:
                await agree(storage, history)

    asyncio.run(play())
