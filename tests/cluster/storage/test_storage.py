"""What every store promises, whatever it is made of."""

from __future__ import annotations

import asyncio

import pytest

from cluster.storage.watching import SECONDS, begun, failure, take
from navarch.cluster.storage.protocol import ChangedError, CompactedError, Event, Storage, StorageError, Stored

POD = "/registry/pods/default/web"


async def filled(storage: Storage, *keys: str) -> list[int]:
    return [await storage.put(key, key.encode(), expected=0) for key in keys]


async def test_a_new_store_is_at_the_revision_etcd_begins_with(storage: Storage, engine: str) -> None:
    """Nothing was written: revision 1 (an etcd that is shared by tests has seen more)."""
    assert await storage.revision() == 1 or engine.startswith("http")


async def test_a_write_is_read_back_with_its_revision(storage: Storage) -> None:
    """What was put is what the key has, at the revision that the write returned."""
    revision = await storage.put(POD, b'{"kind":"Pod"}', expected=0)
    assert await storage.get(POD) == Stored(POD, b'{"kind":"Pod"}', revision)
    assert await storage.revision() == revision


async def test_every_write_takes_the_next_revision(storage: Storage) -> None:
    """One revision for the whole store, without gaps, deletions included."""
    before = await storage.revision()
    first = await storage.put("/a", b"1", expected=0)
    second = await storage.put("/b", b"1", expected=0)
    third = await storage.delete("/a", expected=first)
    assert [first, second, third] == [before + 1, before + 2, before + 3]


async def test_a_key_without_a_value_has_none(storage: Storage) -> None:
    """None, not an error."""
    assert await storage.get("/nothing") is None


async def test_any_bytes_are_kept_as_they_are(storage: Storage) -> None:
    """The store does not look into values; empty ones are values too."""
    for number, value in enumerate([b"", bytes(range(256)), "ü€😀".encode(), b"x" * 1_000_000]):
        await storage.put(f"/v/{number}", value, expected=0)
        stored = await storage.get(f"/v/{number}")
        assert stored is not None
        assert stored.value == value


async def test_a_key_may_have_any_letters(storage: Storage) -> None:
    """Keys come from names in requests."""
    keys = ["/ü/€", "/ü/😀", "/ü/a b%2F\n"]
    await filled(storage, *keys)
    page = await storage.page("/ü/")
    assert [item.key for item in page.items] == sorted(keys, key=str.encode)


async def test_a_write_to_another_revision_is_refused_and_shows_what_is_there(storage: Storage) -> None:
    """ChangedError carries what the key has now, so that nobody must read again."""
    revision = await storage.put(POD, b"1", expected=0)
    for expected in (0, revision - 1, revision + 7):
        with pytest.raises(ChangedError) as refused:
            await storage.put(POD, b"2", expected=expected)
        assert refused.value.current == Stored(POD, b"1", revision)
    assert await storage.revision() == revision


async def test_a_replacement_of_nothing_is_refused(storage: Storage) -> None:
    """A key that has nothing is at no revision but 0."""
    with pytest.raises(ChangedError) as refused:
        await storage.put(POD, b"2", expected=3)
    assert refused.value.current is None


async def test_a_deleted_key_has_nothing_and_can_be_created_again(storage: Storage) -> None:
    """Its old revision no longer counts."""
    first = await storage.put(POD, b"1", expected=0)
    await storage.delete(POD, expected=first)
    assert await storage.get(POD) is None
    with pytest.raises(ChangedError):
        await storage.put(POD, b"2", expected=first)
    second = await storage.put(POD, b"2", expected=0)
    assert await storage.get(POD) == Stored(POD, b"2", second)


async def test_a_deletion_is_refused_unless_the_key_is_at_that_revision(storage: Storage) -> None:
    """Nothing can be deleted that is not there, whatever was expected."""
    first = await storage.put(POD, b"1", expected=0)
    for expected in (0, first + 5):
        with pytest.raises(ChangedError) as refused:
            await storage.delete(POD, expected=expected)
        assert refused.value.current == Stored(POD, b"1", first)
    for expected in (0, first):
        with pytest.raises(ChangedError) as refused:
            await storage.delete("/nothing", expected=expected)
        assert refused.value.current is None


async def test_of_many_writers_of_one_key_one_wins(storage: Storage) -> None:
    """A conditional write is one step: no two of the same expectation succeed."""
    results = await asyncio.gather(
        *(storage.put(POD, b"%d" % number, expected=0) for number in range(20)), return_exceptions=True
    )
    won = [result for result in results if isinstance(result, int)]
    lost = [result for result in results if isinstance(result, ChangedError)]
    assert (len(won), len(lost)) == (1, 19)
    winner = results.index(won[0])
    assert all(error.current == Stored(POD, b"%d" % winner, won[0]) for error in lost)


async def test_a_page_has_the_keys_under_the_prefix_in_order(storage: Storage) -> None:
    """Neighbours that only look alike are not part of it."""
    await filled(storage, "/registry/pods/b/x", "/registry/podsets/a", "/registry/pods/a/y", "/registry/pod", "/z")
    page = await storage.page("/registry/pods/")
    assert [item.key for item in page.items] == ["/registry/pods/a/y", "/registry/pods/b/x"]
    assert [item.value for item in page.items] == [b"/registry/pods/a/y", b"/registry/pods/b/x"]
    assert (page.revision, page.remaining) == (await storage.revision(), 0)


async def test_an_empty_prefix_is_everything(storage: Storage) -> None:
    """All keys of the store."""
    await filled(storage, "/b", "a")
    assert [item.key for item in (await storage.page("")).items] == ["/b", "a"]


async def test_pages_follow_each_other(storage: Storage) -> None:
    """Each begins after the last key of the one before and counts what remains."""
    await filled(storage, *(f"/p/{number}" for number in range(5)), "/q")
    first = await storage.page("/p/", limit=2)
    second = await storage.page("/p/", limit=2, after=first.items[-1].key, revision=first.revision)
    third = await storage.page("/p/", limit=2, after=second.items[-1].key, revision=first.revision)
    assert [[item.key[-1] for item in page.items] for page in (first, second, third)] == [["0", "1"], ["2", "3"], ["4"]]
    assert [page.remaining for page in (first, second, third)] == [3, 1, 0]


async def test_a_page_after_the_last_key_is_empty(storage: Storage) -> None:
    """Also if the key it comes after lies outside the prefix."""
    await filled(storage, "/p/1", "/q/1")
    assert (await storage.page("/p/", after="/p/1", limit=3)).items == []
    assert (await storage.page("/p/", after="/q/9")).items == []
    assert [item.key for item in (await storage.page("/p/", after="/a")).items] == ["/p/1"]


async def test_a_page_of_the_past_shows_what_was_there(storage: Storage) -> None:
    """Created, changed, deleted and created again since then: all of it is undone."""
    a, b, c = await filled(storage, "/p/a", "/p/b", "/p/c")
    await storage.put("/p/a", b"new", expected=a)
    deleted = await storage.delete("/p/b", expected=b)
    again = await storage.put("/p/b", b"again", expected=0)
    await storage.put("/p/d", b"d", expected=0)
    then = await storage.page("/p/", revision=c)
    assert then == ([Stored("/p/a", b"/p/a", a), Stored("/p/b", b"/p/b", b), Stored("/p/c", b"/p/c", c)], c, 0)
    assert [item.key for item in (await storage.page("/p/", revision=deleted)).items] == ["/p/a", "/p/c"]
    assert (await storage.page("/p/", revision=again, limit=1, after="/p/a")).items == [Stored("/p/b", b"again", again)]


async def test_pages_of_one_revision_are_one_snapshot(storage: Storage) -> None:
    """Writes between two pages do not show."""
    revisions = await filled(storage, *(f"/p/{number}" for number in range(4)))
    first = await storage.page("/p/", limit=2)
    await storage.delete("/p/2", expected=revisions[2])
    await storage.put("/p/21", b"", expected=0)
    second = await storage.page("/p/", limit=2, after="/p/1", revision=first.revision)
    assert [item.key for item in second.items] == ["/p/2", "/p/3"]
    assert second.revision == first.revision


async def test_a_page_of_the_future_is_refused(storage: Storage) -> None:
    """There is no such revision yet."""
    with pytest.raises(StorageError, match="revision"):
        await storage.page("/", revision=await storage.revision() + 1)


async def test_a_page_of_a_forgotten_revision_is_refused(storage: Storage) -> None:
    """The error names the oldest revision that can be had, and that one can be had."""
    first, second, third = await filled(storage, "/a", "/b", "/c")
    await storage.compact(second)
    with pytest.raises(CompactedError) as refused:
        await storage.page("/", revision=first)
    assert refused.value.oldest == second
    assert [item.key for item in (await storage.page("/", revision=second)).items] == ["/a", "/b"]
    assert [item.key for item in (await storage.page("/", revision=third)).items] == ["/a", "/b", "/c"]


async def test_forgetting_twice_is_no_error(storage: Storage) -> None:
    """What is forgotten stays forgotten, and the future cannot be."""
    first, second = await filled(storage, "/a", "/b")
    await storage.compact(second)
    await storage.compact(second)
    await storage.compact(first)
    with pytest.raises(CompactedError) as refused:
        await storage.page("/", revision=first)
    assert refused.value.oldest == second
    with pytest.raises(StorageError, match="revision"):
        await storage.compact(second + 1)


async def test_a_watch_shows_writes_with_what_was_there_before(storage: Storage) -> None:
    """Creation, change and deletion, in order."""
    async with storage.watch("/registry/pods/", after=await storage.revision()) as watcher:
        first = await storage.put(POD, b"1", expected=0)
        second = await storage.put(POD, b"2", expected=first)
        third = await storage.delete(POD, expected=second)
        assert await take(watcher, 3) == [
            Event(POD, b"1", first, None),
            Event(POD, b"2", second, Stored(POD, b"1", first)),
            Event(POD, None, third, Stored(POD, b"2", second)),
        ]


async def test_a_watch_begins_after_the_revision_it_was_asked_for(storage: Storage) -> None:
    """What happened since is shown first, what was before is not."""
    _, second, third = await filled(storage, "/p/1", "/p/2", "/p/3")
    async with storage.watch("/p/", after=second) as watcher:
        fourth = await storage.put("/p/4", b"", expected=0)
        assert [event.revision for event in await take(watcher, 2)] == [third, fourth]


async def test_a_watch_shows_only_its_prefix(storage: Storage) -> None:
    """Prefixes need not end with a slash."""
    before = await storage.revision()
    async with storage.watch("/p/a", after=before) as one, storage.watch("", after=before) as all_of_it:
        await filled(storage, "/p/", "/p/b", "/p/ab", "/p/a", "/q/a", "/p/a/b")
        assert [event.key for event in await take(one, 3)] == ["/p/ab", "/p/a", "/p/a/b"]
        assert len(await take(all_of_it, 6)) == 6


async def test_a_watch_from_the_future_begins_there(storage: Storage) -> None:
    """Writes up to that revision are not shown."""
    async with storage.watch("/p/", after=await storage.revision() + 2) as watcher:
        revisions = await filled(storage, "/p/1", "/p/2", "/p/3")
        assert [event.revision for event in await take(watcher, 1)] == revisions[2:]


async def test_a_watch_is_refused_if_its_revision_is_forgotten(storage: Storage) -> None:
    """On entry; one revision later is good, and nothing that it shows lacks what was before."""
    first, second, _ = await filled(storage, "/p/1", "/p/2", "/p/3")
    await storage.put("/p/1", b"new", expected=first)
    await storage.compact(second)
    with pytest.raises(CompactedError) as refused:
        async with storage.watch("/p/", after=second - 1):
            pass
    assert refused.value.oldest == second
    async with storage.watch("/p/", after=refused.value.oldest) as watcher:
        assert [event.key for event in await take(watcher, 2)] == ["/p/3", "/p/1"]


async def test_a_watch_that_waits_survives_that_the_past_is_forgotten(storage: Storage) -> None:
    """It has seen all of it."""
    async with storage.watch("/p/", after=await storage.revision()) as watcher:
        await storage.put("/p/0", b"", expected=0)
        await take(watcher, 1)
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(take(watcher, 1))
            await begun(waiting)
            _, second, _ = await filled(storage, "/a", "/b", "/c")
            await storage.compact(second)
            created = await storage.put("/p/1", b"", expected=0)
        assert [event.revision for event in waiting.result()] == [created]


async def test_a_watch_has_nothing_ready_before_something_happens(storage: Storage) -> None:
    """`ready` does not wait."""
    async with storage.watch("/p/", after=await storage.revision()) as watcher:
        assert list(watcher.ready()) == []


async def test_a_waiting_watch_can_be_woken(storage: Storage) -> None:
    """For another reason than an event, also before it waits; and it goes on after that."""
    async with storage.watch("/p/", after=await storage.revision()) as watcher, asyncio.timeout(SECONDS):
        watcher.wake()
        await watcher.wait()
        async with asyncio.TaskGroup() as tasks:
            await begun(tasks.create_task(watcher.wait()))
            watcher.wake()
        assert list(watcher.ready()) == []
        await storage.put("/p/1", b"", expected=0)
        assert [event.key for event in await take(watcher, 1)] == ["/p/1"]


async def test_a_cancelled_wait_loses_nothing(storage: Storage) -> None:
    """Neither an event before nor one after the cancellation."""
    async with storage.watch("/p/", after=await storage.revision()) as watcher:
        for number in range(3):
            async with asyncio.TaskGroup() as tasks:
                waiting = tasks.create_task(watcher.wait())
                await begun(waiting)
                await storage.put(f"/p/{number}", b"", expected=0)
                waiting.cancel()
            await storage.put(f"/p/{number}/x", b"", expected=0)
            assert [event.key for event in await take(watcher, 2)] == [f"/p/{number}", f"/p/{number}/x"]


async def test_watchers_do_not_disturb_each_other(storage: Storage) -> None:
    """Each sees everything once, whenever it looks."""
    before = await storage.revision()
    async with storage.watch("/p/", after=before) as early, storage.watch("/p/", after=before) as late:
        await storage.put("/p/1", b"", expected=0)
        await take(early, 1)
        await storage.put("/p/2", b"", expected=0)
        await take(early, 1)
        assert [event.key for event in await take(late, 2)] == ["/p/1", "/p/2"]


async def test_a_closed_store_refuses_writes_and_ends_watches(storage: Storage) -> None:
    """Nobody waits for ever; closing twice is fine."""
    async with storage.watch("/p/", after=await storage.revision()) as watcher:
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(failure(watcher))
            await begun(waiting)
            await storage.close()
        assert "closed" in str(waiting.result())
    await storage.close()
    with pytest.raises(StorageError, match="closed"):
        await storage.put("/p/1", b"", expected=0)
