"""One watch for all who watch."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

import pytest

from cluster.storage.watching import failure, take
from navarch._base.background import Background
from navarch.cluster.storage import etcd_watch
from navarch.cluster.storage.etcd_watch import SharedEtcdWatch
from navarch.cluster.storage.memory import MemoryStorage
from navarch.cluster.storage.protocol import CompactedError, StorageError, Watcher


class Source(MemoryStorage):
    """What is watched, and how often it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.watches = 0

    def opened(self, prefix: str, after: int) -> AbstractAsyncContextManager[Watcher]:
        self.watches += 1
        return self.watch(prefix, after=after)


@pytest.fixture
def source() -> Source:
    """With nothing in it."""
    return Source()


@pytest.fixture
async def feed(source: Source) -> AsyncIterator[SharedEtcdWatch]:
    """From the first revision on."""
    found, background = SharedEtcdWatch(source.opened, "/registry/", 1), Background()
    background.start(found.run(), "feed")
    yield found
    await background.stop()


async def test_all_share_one_watch(source: Source, feed: SharedEtcdWatch) -> None:
    """Each is shown what is under its prefix, after the revision that it asked for."""
    with feed.watch("/registry/pods/", 1) as pods, feed.watch("/registry/", 2) as late:
        await source.put("/registry/pods/a", b"1", expected=0)
        await source.put("/registry/nodes/b", b"2", expected=0)
        await source.put("/registry/pods/c", b"3", expected=0)
        assert [event.key for event in await take(pods, 2)] == ["/registry/pods/a", "/registry/pods/c"]
        assert [event.key for event in await take(late, 2)] == ["/registry/nodes/b", "/registry/pods/c"]
        with feed.watch("/registry/nodes/", 1) as nodes:  # what has happened meanwhile is kept
            assert [event.revision for event in await take(nodes, 1)] == [3]
        assert (pods.seen, late.seen) == (4, 4)
    assert source.watches == 1


async def test_what_it_does_not_have_it_does_not_serve(
    source: Source, feed: SharedEtcdWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other keys, and the past beyond what is kept."""
    monkeypatch.setattr(etcd_watch, "_MOST_EVENTS", 2)
    assert feed.serves("/registry/pods/", 1)
    assert not feed.serves("/registry/pods/", 0)
    assert not feed.serves("/other/", 1)
    with feed.watch("/registry/", 1) as everything:
        for number in range(4):
            await source.put(f"/registry/pods/{number}", b"", expected=0)
        await take(everything, 4)
    assert [feed.serves("/registry/", after) for after in (1, 2, 3, 4)] == [False, False, True, True]


async def test_who_does_not_take_it_is_given_up(
    source: Source, feed: SharedEtcdWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others are not held up, and nothing piles up without end."""
    monkeypatch.setattr(etcd_watch, "_MOST_WAITING", 3)
    with feed.watch("/registry/", 1) as quick, feed.watch("/registry/", 1) as slow:
        for number in range(4):
            await source.put(f"/registry/pods/{number}", b"", expected=0)
            await take(quick, 1)
        assert isinstance(await failure(slow), CompactedError)


async def test_everybody_is_told_when_it_fails(source: Source, feed: SharedEtcdWatch) -> None:
    """And it serves nobody any more."""
    with feed.watch("/registry/", 1) as watcher:
        await source.close()
        assert isinstance(await failure(watcher), StorageError)
    assert feed.has_failed
    assert not feed.serves("/registry/", 1)
