"""The model server says what a real API server would: what is built on it is only as good as this."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gadgets import CONFIG_MAP, Gadget, GadgetSpec, Part, config_map
from model_server import ModelServer
from navarch._base.clock import ManualClock
from navarch.api import Dynamic
from navarch.api.kind import Key
from navarch.client import ALL, Client, JsonPatch, MergePatch, MetadataOnly, Preconditions, Watch, WatchOptions
from navarch.errors import AlreadyExists, Conflict, ConnectionLostError, Gone, Invalid, NotFound, ServerError
from navarch.k8s.core.v1 import Namespace
from scripted import LeapingClock

FROM_THE_START = WatchOptions(initial=True, bookmarks=True)


@pytest.fixture
def server() -> ModelServer:
    return ModelServer(Gadget, CONFIG_MAP, Namespace, clock=LeapingClock())


@pytest.fixture
async def client(server: ModelServer) -> AsyncIterator[Client]:
    async with server.client() as client:
        yield client


async def take(watch: Watch[Any], count: int) -> list[tuple[str, str]]:
    """The next events as type and name."""
    async with asyncio.timeout(30):
        events = [await anext(watch) for _ in range(count)]
    return [(event.type, event.object.name) for event in events]


def gadget(name: str, **spec: Any) -> Gadget:
    return Gadget(name=name, spec=GadgetSpec(**spec))


async def test_created_object_gets_what_the_server_sets(client: Client) -> None:
    """A version, a uid, a generation, a date; no status."""
    new = gadget("a", size=1)
    new.status.phase = "Ready"
    made = await client.create(new)
    assert made.metadata.uid
    assert made.metadata.creation_timestamp is not None
    assert (made.namespace, made.metadata.generation, made.status.phase) == ("default", 1, None)
    assert (await client.get(Gadget, "a")).metadata.resource_version == made.metadata.resource_version
    with pytest.raises(AlreadyExists):
        await client.create(gadget("a"))


async def test_kinds_without_a_class_and_without_a_namespace_are_served(client: Client) -> None:
    """By discovery."""
    await client.create(config_map("a", data={"k": "v"}))
    await client.create(Dynamic({"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "n-"}}))
    assert (await client.get(CONFIG_MAP, "a"))["data"] == {"k": "v"}
    assert [found.name[:2] for found in await client.list(Namespace)] == ["n-"]
    with pytest.raises(NotFound):
        await client.create(Dynamic({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}))


async def test_update_of_something_older_conflicts(client: Client) -> None:
    """And one that changes nothing makes no version."""
    first = await client.create(gadget("a", size=1))
    first.spec.size = 2
    second = await client.replace(first)
    assert second.metadata.generation == 2
    assert (await client.replace(second)).metadata.resource_version == second.metadata.resource_version
    with pytest.raises(Conflict):
        await client.replace(first)
    with pytest.raises(Invalid, match="must be specified"):
        await client.replace(gadget("a"))


async def test_status_and_the_rest_are_written_apart(client: Client) -> None:
    """Each ignores the other; only the spec makes a generation."""
    made = await client.create(gadget("a", size=1))
    made.status.phase, made.spec.size = "Ready", 9
    written = await client.replace_status(made)
    assert (written.spec.size, written.status.phase, written.metadata.generation) == (1, "Ready", 1)
    written.status.phase, written.spec.size = "Lost", 9
    written = await client.replace(written)
    assert (written.spec.size, written.status.phase, written.metadata.generation) == (9, "Ready", 2)


async def test_patches_change_what_they_name(client: Client) -> None:
    """Merge and JSON, of the object and of its status."""
    await client.create(gadget("a", size=1, colour="red"))
    await client.patch(Gadget, "a", MergePatch({"spec": {"size": 2}}))
    await client.patch(Gadget, "a", JsonPatch([{"op": "remove", "path": "/spec/colour"}]))
    await client.patch(Gadget, "a", MergePatch({"status": {"phase": "Ready"}}), subresource="status")
    found = await client.get(Gadget, "a")
    assert (found.spec.size, found.spec.colour, found.status.phase) == (2, None, "Ready")
    with pytest.raises(Invalid):
        await client.patch(Gadget, "a", JsonPatch([{"op": "test", "path": "/spec/size", "value": 7}]))
    with pytest.raises(Conflict):
        await client.patch(Gadget, "a", MergePatch({"metadata": {"resourceVersion": "1"}}))


async def test_apply_gives_up_what_is_no_longer_applied(client: Client) -> None:
    """What others set stays; the first apply creates; one that changes nothing makes no version."""
    await client.apply(gadget("a", size=1, colour="red", parts=[Part(name="p")]))
    await client.patch(Gadget, "a", MergePatch({"spec": {"replicas": 3}}))
    applied = await client.apply(gadget("a", size=2))
    assert (applied.spec.size, applied.spec.colour, applied.spec.parts, applied.spec.replicas) == (2, None, None, 3)
    assert (await client.apply(gadget("a", size=2))).metadata.resource_version == applied.metadata.resource_version


async def test_apply_can_be_tied_to_a_version(client: Client) -> None:
    """Of an object that is there; one that is not is created all the same."""
    applied = await client.apply(gadget("a", size=1))
    version = applied.metadata.resource_version
    assert (await client.apply(gadget("a", size=1), resource_version=version)).metadata.resource_version == version
    await client.apply(gadget("a", size=2), resource_version=version)
    with pytest.raises(Conflict):
        await client.apply(gadget("a", size=3), resource_version=version)
    await client.delete(Gadget, "a")
    assert (await client.apply(gadget("a", size=3), resource_version=version)).spec.size == 3


async def test_dry_run_keeps_nothing(client: Client, server: ModelServer) -> None:
    """Neither objects nor versions."""
    await client.create(gadget("a", size=1))
    before, dry = server.store.version, client.using(dry_run=True)
    await dry.create(gadget("b"))
    await dry.apply(gadget("a", size=5))
    await dry.delete(Gadget, "a")
    assert server.store.version == before
    assert set(server.objects(Gadget)) == {Key("default", "a")}


async def test_object_with_a_finalizer_stays_until_that_is_gone(client: Client) -> None:
    """Marked once; no finalizer can be added any more; then it is deleted for every watch."""
    new = gadget("a")
    new.metadata.finalizers = ["example.com/f"]
    await client.create(new)
    async with client.watch(Gadget) as watch:
        marked = await client.delete(Gadget, "a")
        assert marked is not None
        assert marked.metadata.deletion_timestamp is not None
        again = await client.delete(Gadget, "a")
        assert again is not None
        assert again.metadata.resource_version == marked.metadata.resource_version
        with pytest.raises(Invalid, match="no new finalizers"):
            await client.patch(Gadget, "a", MergePatch({"metadata": {"finalizers": ["example.com/f", "b.com/g"]}}))
        await client.patch(Gadget, "a", MergePatch({"metadata": {"finalizers": None}}))
        assert await take(watch, 2) == [("MODIFIED", "a"), ("DELETED", "a")]
    with pytest.raises(NotFound):
        await client.get(Gadget, "a")


async def test_delete_heeds_its_preconditions(client: Client) -> None:
    """Another uid or version is a conflict; everything of a namespace goes at once."""
    made = await client.create(gadget("a"))
    with pytest.raises(Conflict):
        await client.delete(Gadget, "a", preconditions=Preconditions(uid="another"))
    assert await client.delete(Gadget, "a", preconditions=Preconditions(uid=made.metadata.uid)) is None
    await client.create(gadget("b"))
    await client.delete_all(Gadget)
    assert not await client.list(Gadget)


async def test_pages_show_one_moment(client: Client, server: ModelServer) -> None:
    """What is written between two pages is not seen; once it is forgotten, the rest comes from now."""
    for name in "abcd":
        await client.create(gadget(name))
    pages = aiter(client.list(Gadget, page_size=2))
    first = [(await anext(pages)).name for _ in range(2)]
    await client.delete(Gadget, "c")
    assert first + [found.name async for found in pages] == ["a", "b", "c", "d"]
    pages = aiter(client.list(Gadget, page_size=1))
    assert (await anext(pages)).name == "a"
    await client.delete(Gadget, "b")
    server.compact()
    assert [found.name async for found in pages] == ["d"]


async def test_reads_may_be_stale_unless_they_ask_for_the_newest(client: Client, server: ModelServer) -> None:
    """With resourceVersion 0; a revision of the future is refused."""
    await client.create(gadget("a"))
    last = await client.create(gadget("b"))
    server.stale_by = 1
    assert [found.name for found in await client.list(Gadget, resource_version="0")] == ["a"]
    newest = last.metadata.resource_version
    assert len(await client.list(Gadget, resource_version=newest)) == len(await client.list(Gadget)) == 2
    with pytest.raises(ServerError, match="Too large resource version"):
        await client.list(Gadget, resource_version="999")


async def test_selectors_choose_objects_and_their_changes(client: Client) -> None:
    """An object that no longer matches is deleted for the watch; namespaces and metadata alone work as well."""
    async with client.watch(MetadataOnly(Gadget), labels={"on": "yes"}, namespace=ALL) as watch:
        for name, namespace in (("a", "x"), ("b", "y")):
            await client.create(Gadget(name=name, labels={"on": "yes"}), namespace=namespace)
        await client.patch(Gadget, "a", MergePatch({"metadata": {"labels": {"on": "no"}}}), namespace="x")
        assert await take(watch, 3) == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "a")]
    assert [found.name for found in await client.list(Gadget, namespace=ALL, labels={"on": "yes"})] == ["b"]
    assert [found.name for found in await client.list(Gadget, namespace="x")] == ["a"]
    assert [found.name for found in await client.list(Gadget, namespace=ALL, fields={"metadata.name": "b"})] == ["b"]


async def test_initial_events_end_with_a_bookmark(client: Client, server: ModelServer) -> None:
    """Then changes and further bookmarks come in order."""
    await client.create(gadget("a"))
    async with client.watch(Gadget, options=FROM_THE_START) as watch:
        assert await take(watch, 2) == [("ADDED", "a"), ("BOOKMARK", "")]
        await client.create(gadget("b"))
        server.bookmark()
        await client.create(gadget("c"))
        assert await take(watch, 3) == [("ADDED", "b"), ("BOOKMARK", ""), ("ADDED", "c")]
        assert server.open_watches == 1
    assert server.open_watches == 0


async def test_older_servers_do_not_stream_lists(client: Client, server: ModelServer) -> None:
    """They say so."""
    server.streams_lists = False
    with pytest.raises(Invalid, match="sendInitialEvents"):
        async with client.watch(Gadget, options=FROM_THE_START):
            pass


async def test_watch_goes_on_after_its_connection_ended(client: Client, server: ModelServer) -> None:
    """In good order or not; nothing is lost and nothing comes twice."""
    async with client.watch(Gadget) as watch:
        for number, error in enumerate([None, ConnectionLostError("cut")]):
            await client.create(gadget(f"before-{number}"))
            server.end_watches(error)
            await client.create(gadget(f"after-{number}"))
            assert await take(watch, 2) == [("ADDED", f"before-{number}"), ("ADDED", f"after-{number}")]


async def test_revision_that_was_forgotten_is_gone(client: Client, server: ModelServer) -> None:
    """A watch from there ends with 410; one from now on goes on."""
    old = (await client.create(gadget("a"))).metadata.resource_version
    newest = (await client.create(gadget("b"))).metadata.resource_version
    server.compact()
    with pytest.raises(Gone):
        async with client.watch(Gadget, resource_version=old) as watch:
            await take(watch, 1)
    async with client.watch(Gadget, resource_version=newest) as watch:
        await client.create(gadget("c"))
        assert await take(watch, 1) == [("ADDED", "c")]


async def test_watch_from_the_future_is_silent_until_then(client: Client, server: ModelServer) -> None:
    """As on a real server, which does not say so."""
    made = await client.create(gadget("a"))
    async with client.watch(Gadget, resource_version=str(int(made.metadata.resource_version or 0) + 1)) as watch:
        await client.create(gadget("skipped"))
        await client.create(gadget("b"))
        assert await take(watch, 1) == [("ADDED", "b")]


async def test_withdrawn_kind_is_gone_with_its_objects(client: Client, server: ModelServer) -> None:
    """Until it is served again, empty."""
    await client.create(gadget("a"))
    async with client.watch(Gadget) as watch:
        server.withdraw(Gadget)
        with pytest.raises(NotFound):
            await take(watch, 1)
    with pytest.raises(NotFound, match="is the CRD installed"):
        await client.list(Gadget)
    server.serve(Gadget)
    assert not await client.list(Gadget)
    await client.create(gadget("a"))


async def test_watch_waits_for_the_next_change() -> None:
    """It does not spin, and it is woken by a write."""
    clock = ManualClock()
    server = ModelServer(Gadget, clock=clock)
    async with server.client() as client, client.watch(Gadget) as watch, asyncio.TaskGroup() as group:
        taken = group.create_task(take(watch, 1))
        await clock.settle()
        assert not taken.done()
        await client.create(gadget("a"))
        assert await taken == [("ADDED", "a")]
