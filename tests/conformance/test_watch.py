"""Watches: nothing lost, nothing twice, whatever happens in between."""

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable
from http.client import HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

import pytest

import navarch.client.watch
import rig
from chaos.waiting import until
from gadgets import CONFIG_MAP, EVENT, Gadget, GadgetSpec, config_map, installed, note
from navarch.client import ALL, Client, Config, MergePatch, MetadataOnly, Watch, WatchOptions
from navarch.errors import Gone, NotFound
from navarch.k8s.core.v1 import ConfigMap

LIMIT = 60.0
MINE = {"watched": "yes"}


async def take(watch: Watch[Any], count: int) -> list[tuple[str, str]]:
    """The next events as type and name; fails if they do not come."""
    seen: list[tuple[str, str]] = []
    try:
        async with asyncio.timeout(LIMIT):
            while len(seen) < count:
                event = await anext(watch)
                seen.append((event.type, event.object.name))
    except TimeoutError:
        pytest.fail(f"expected {count} events within {LIMIT:g} s, got {seen}")
    return seen


def labelled(name: str, **data: str) -> ConfigMap:
    return ConfigMap(name=name, labels=MINE, data=data)


async def test_changes_come_in_order(client: Client) -> None:
    """From the moment the watch is entered."""
    await client.create(labelled("before"))
    async with client.watch(ConfigMap, labels=MINE) as watch:
        await client.create(labelled("a"))
        await client.patch(ConfigMap, "a", MergePatch({"data": {"k": "v"}}))
        await client.delete(ConfigMap, "a")
        assert await take(watch, 3) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


async def test_event_carries_the_object_as_it_was_then(client: Client) -> None:
    """Each with its own revision, rising."""
    async with client.watch(ConfigMap, labels=MINE) as watch:
        await client.create(labelled("a", k="1"))
        for value in ("2", "3"):
            await client.patch(ConfigMap, "a", MergePatch({"data": {"k": value}}))
        events = [await anext(watch) for _ in range(3)]
    assert [event.object.data for event in events] == [{"k": "1"}, {"k": "2"}, {"k": "3"}]
    revisions = [int(event.object.metadata.resource_version) for event in events]
    assert revisions == sorted(set(revisions))
    assert watch.resource_version == str(revisions[-1])


async def test_watch_goes_on_where_a_list_ended(client: Client) -> None:
    """Nothing between the two is missed."""
    await client.create(labelled("a"))
    found = await client.list(ConfigMap, labels=MINE)
    await client.create(labelled("b"))
    async with client.watch(ConfigMap, labels=MINE, resource_version=found.resource_version) as watch:
        assert await take(watch, 1) == [("ADDED", "b")]


async def test_object_that_no_longer_matches_is_deleted_for_the_watch(client: Client) -> None:
    """And added when it matches again."""
    await client.create(labelled("a"))
    async with client.watch(ConfigMap, labels=MINE) as watch:
        for value in ("no", "yes"):
            await client.patch(ConfigMap, "a", MergePatch({"metadata": {"labels": {"watched": value}}}))
        assert await take(watch, 2) == [("DELETED", "a"), ("ADDED", "a")]


async def test_initial_events_are_followed_by_a_bookmark(client: Client) -> None:
    """Everything that is there, then what changes."""
    for name in ("a", "b"):
        await client.create(labelled(name))
    options = WatchOptions(initial=True, bookmarks=True)
    async with client.watch(ConfigMap, labels=MINE, options=options) as watch:
        first = await take(watch, 3)
        assert sorted(first[:2]) == [("ADDED", "a"), ("ADDED", "b")]
        assert first[2] == ("BOOKMARK", "")
        await client.create(labelled("c"))
        assert await take(watch, 1) == [("ADDED", "c")]


async def test_fields_choose_and_kinds_without_a_class_are_watched(client: Client) -> None:
    """As for lists."""
    async with client.watch(CONFIG_MAP, fields={"metadata.name": "b"}) as watch:
        await client.create(config_map("a"))
        await client.create(config_map("b", data={"k": "v"}))
        event = await anext(watch)
    assert event.object["data"] == {"k": "v"}


async def test_all_namespaces_are_watched(client: Client) -> None:
    """With the one of the test among them; what belongs to tests before may be going meanwhile."""
    own = {"watched": client.options.namespace}
    async with client.watch(ConfigMap, namespace=ALL, labels=own) as watch:
        await client.create(ConfigMap(name="a", labels=own))
        assert await take(watch, 1) == [("ADDED", "a")]


async def test_metadata_alone_is_watched(client: Client) -> None:
    """From now on, and from the beginning."""
    await client.create(labelled("a", k="v"))
    async with client.watch(MetadataOnly(ConfigMap), labels=MINE) as watch:
        await client.create(labelled("b", k="v"))
        event = await anext(watch)
        assert (event.object.kind, event.object.name) == ("PartialObjectMetadata", "b")
    async with client.watch(MetadataOnly(ConfigMap), labels=MINE, options=WatchOptions(initial=True)) as watch:
        assert sorted(await take(watch, 2)) == [("ADDED", "a"), ("ADDED", "b")]


async def test_revision_that_is_no_longer_kept_is_gone(
    client: Client, compacting: Callable[[str], Awaitable[None]]
) -> None:
    """The caller has to list again."""
    await installed(client)
    await compacting((await client.create(note(client, "a"))).metadata["resourceVersion"])
    with pytest.raises(Gone):
        async with client.watch(Gadget, resource_version="1") as watch:
            await anext(watch)


async def test_revision_that_the_store_has_forgotten_is_gone(
    client: Client, compacting: Callable[[str], Awaitable[None]]
) -> None:
    """Also where no cache stands in front of it."""
    first, _, last = [await client.create(note(client, name)) for name in "abc"]
    await compacting(last.metadata["resourceVersion"])
    with pytest.raises(Gone):
        async with client.watch(EVENT, resource_version=first.metadata["resourceVersion"]) as watch:
            await anext(watch)


async def test_kind_that_is_not_served_cannot_be_watched(client: Client) -> None:
    """It is not waited for."""
    with pytest.raises(NotFound):
        async with client.watch(type(CONFIG_MAP)("nowhere.example.com", "v1", "Thing", plural="things")):
            pass


async def write(client: Client, is_enough: Callable[[], bool], written: list[tuple[str, str]]) -> None:
    """Makes, changes and deletes objects until it is enough, then makes a last one; `written` is what a watch must see."""
    for number in itertools.count():
        if number > 100 and is_enough():
            break
        name = f"item-{number}"
        await client.create(labelled(name))
        await client.patch(ConfigMap, name, MergePatch({"data": {"k": "v"}}))
        await client.delete(ConfigMap, name)
        written += [(change, name) for change in ("ADDED", "MODIFIED", "DELETED")]
    await client.create(labelled("last"))
    written.append(("ADDED", "last"))


async def test_watch_survives_the_servers_time_limits_under_a_writer(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One connection a second: nothing lost, nothing twice, all in order."""
    opened, really_open = [], Watch._open

    async def open_and_count(watch: Watch[Any]) -> Any:
        opened.append(watch.resource_version)
        return await really_open(watch)

    monkeypatch.setattr(Watch, "_open", open_and_count)
    seen: list[tuple[str, str]] = []
    written: list[tuple[str, str]] = []
    options = WatchOptions(timeout_seconds=1)
    async with client.watch(ConfigMap, labels=MINE, options=options) as watch, asyncio.TaskGroup() as group:
        group.create_task(write(client, lambda: len(opened) > 2, written))
        while ("ADDED", "last") not in seen[-1:]:
            seen += await take(watch, 1)
    assert seen == written


async def added_or_gone(client: Client, watch: Watch[Any], name: str) -> None:
    """A server that has just started keeps no history of what it caches: it must say so, and a list must do."""
    try:
        assert await take(watch, 1) == [("ADDED", name)]
    except Gone:
        assert (await client.get(ConfigMap, name)).name == name


async def test_watches_and_reads_survive_a_restart_of_the_server(client: Client, rig_cluster: rig.Cluster) -> None:
    """What changed before and after comes, or is told to be gone; a read in between is answered."""
    events = client.watch(EVENT)
    async with events, client.watch(ConfigMap, labels=MINE) as config_maps:
        await client.create(labelled("before"))
        await client.create(note(client, "before"))
        assert await take(config_maps, 1) == await take(events, 1) == [("ADDED", "before")]
        async with asyncio.TaskGroup() as group:
            restart = group.create_task(asyncio.to_thread(rig_cluster.restart, "kube-apiserver"))
            await asyncio.wait([restart], timeout=0.3)
            assert (await client.using(timeout=LIMIT).get(ConfigMap, "before")).name == "before"
        await client.create(labelled("after"))
        await client.create(note(client, "after"))
        assert await take(events, 1) == [("ADDED", "after")]
        await added_or_gone(client, config_maps, "after")


async def test_server_that_falls_silent_is_noticed(
    client: Client, rig_cluster: rig.Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The connection stays open but nothing comes: the watch gives it up and goes on when the server does."""
    monkeypatch.setattr(navarch.client.watch, "_GRACE_SECONDS", 1.0)
    async with client.watch(ConfigMap, labels=MINE, options=WatchOptions(timeout_seconds=1)) as watch:
        await client.create(labelled("before"))
        assert await take(watch, 1) == [("ADDED", "before")]
        async with asyncio.TaskGroup() as group:
            with rig_cluster.suspended("kube-apiserver"):
                waiting = group.create_task(take(watch, 1))
                await until(lambda: "expected an answer from" in caplog.text, "the silence to be told", seconds=LIMIT)
                assert not waiting.done()
            await client.create(labelled("after"))
        assert waiting.result() == [("ADDED", "after")]


async def test_watch_of_a_custom_kind_sees_status_and_spec(client: Client) -> None:
    """Each change of either is one event."""
    await installed(client)
    for name in ("first", "second", "third"):
        try:
            phases = await _phases_seen(client, name)
        except Gone:  # Kubernetes drops the history of a kind when it takes up a change of its CRD, as of a new one
            continue
        assert phases == [None, "Ready"]
        return
    pytest.fail("expected a watch with history, got 410 Gone three times")


async def _phases_seen(client: Client, name: str) -> list[str | None]:
    async with client.watch(Gadget, fields={"metadata.name": name}) as watch:
        made = await client.create(Gadget(name=name, spec=GadgetSpec(size=1)))
        made.status.phase = "Ready"
        await client.replace_status(made)
        return [(await anext(watch)).object.status.phase for _ in range(2)]


async def test_tables_of_a_watch_say_once_what_their_columns_are(client: Client, config: Config) -> None:
    """And a bookmark is a table, too: with a row that has nothing but its metadata."""
    await client.create(ConfigMap(name="one"))
    await client.create(ConfigMap(name="two"))
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    connection = HTTPSConnection(urlsplit(config.server).netloc, timeout=LIMIT, context=config.ssl_context())
    headers = {"Authorization": f"Bearer {config.token}", "Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    connection.request("GET", f"/api/v1/namespaces/{client.options.namespace}/configmaps?{query}", headers=headers)
    events: list[Any] = []
    with connection.getresponse() as answer:
        while not events or events[-1]["type"] != "BOOKMARK":
            events.append(json.loads(answer.readline()))
    connection.close()
    first, *others = [each["object"] for each in events]
    assert [column["name"] for column in first["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert {each["columnDefinitions"] is None for each in others} == {True}
    mark = events[-1]["object"]
    assert mark["kind"] == "Table"
    assert mark["rows"][0]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
