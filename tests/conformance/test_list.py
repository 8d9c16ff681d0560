"""Lists: pages, namespaces, selectors."""

from collections.abc import Awaitable, Callable

import pytest

from gadgets import CONFIG_MAP, EVENT, Gadget, GadgetSpec, config_map, installed, note
from navarch.api import Dynamic
from navarch.client import ALL, Client, MetadataOnly, Request, Response, Transport
from navarch.client.transport import WrappedTransport
from navarch.errors import BadRequest, NavarchError
from navarch.k8s.core.v1 import ConfigMap


class Recorded(WrappedTransport):
    """Keeps every request."""

    def __init__(self, transport: Transport, requests: list[Request]) -> None:
        super().__init__(transport)
        self._requests = requests

    async def send(self, request: Request) -> Response:
        self._requests.append(request)
        return await super().send(request)


async def filled(client: Client, count: int = 5) -> list[str]:
    names = [f"item-{number}" for number in range(count)]
    for name in names:
        await client.create(config_map(name, metadata={"labels": {"listed": "yes", "number": name[-1]}}))
    return names


async def test_list_has_everything_in_order(client: Client) -> None:
    """With a class and without; each knows its kind."""
    names = await filled(client)
    typed = await client.list(ConfigMap, labels="listed")
    dynamic = await client.list(CONFIG_MAP, labels="listed")
    assert [item.name for item in typed] == [item.name for item in dynamic] == names
    assert {item.kind for item in typed} == {item.kind for item in dynamic} == {"ConfigMap"}
    assert int(typed.resource_version) >= int(typed[-1].metadata.resource_version)


async def test_pages_make_the_same_list(client: Client) -> None:
    """Whatever their size."""
    names = await filled(client)
    for size in (1, 2, 5, 500, 0):
        assert [item.name async for item in client.list(ConfigMap, labels="listed", page_size=size)] == names
        found = await client.list(ConfigMap, labels="listed", page_size=size)
        assert [item.name for item in found] == names
        assert found.resource_version


async def test_awaited_list_is_one_request(client: Client) -> None:
    """Of built-in and of custom kinds, whole and as metadata; a server at rest takes ten times as long for a second page."""
    await installed(client)
    names = await filled(client)
    for name in names:
        await client.create(Gadget(name=name, spec=GadgetSpec(size=1)))
    asked: list[Request] = []
    watched = client.through(lambda transport: Recorded(transport, asked))
    for kind in (ConfigMap, Gadget, MetadataOnly(ConfigMap), MetadataOnly(Gadget)):
        found = await watched.list(kind, fields={"metadata.namespace": client.options.namespace})
        assert {*names} <= {item.name for item in found}
        assert found.resource_version
    assert [request.query.get("limit") for request in asked] == [None] * 4


async def test_empty_list_has_a_revision(client: Client) -> None:
    """From which a watch can go on."""
    found = await client.list(ConfigMap, labels="nothing=here")
    assert len(found) == 0
    assert found.resource_version


async def test_all_namespaces_are_listed(client: Client) -> None:
    """Beside those of one's own."""
    other = f"{client.options.namespace}-other"
    await client.create(Dynamic({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}}))
    for namespace in (client.options.namespace, other):
        await client.using(namespace=namespace).create(config_map("a", metadata={"labels": {"both": "yes"}}))
    found = await client.list(ConfigMap, namespace=ALL, labels="both=yes", page_size=1)
    assert {item.namespace for item in found} >= {client.options.namespace, other}
    assert [item.namespace for item in await client.list(ConfigMap, labels="both=yes")] == [client.options.namespace]


async def test_selectors_choose(client: Client) -> None:
    """By labels as a mapping and as text, and by fields."""
    await filled(client)

    async def chosen(**how: object) -> list[str]:
        return [item.name async for item in client.list(ConfigMap, **how)]  # type: ignore[arg-type]  # selectors only

    assert await chosen(labels={"listed": "yes", "number": "3"}) == ["item-3"]
    assert await chosen(labels="number in (1,2)") == ["item-1", "item-2"]
    assert await chosen(labels="listed,number notin (0,1,2)") == ["item-3", "item-4"]
    assert await chosen(fields={"metadata.name": "item-4"}) == ["item-4"]
    assert await chosen(fields="metadata.name!=item-0", labels="listed") == ["item-1", "item-2", "item-3", "item-4"]


async def test_custom_kinds_are_chosen_by_the_fields_they_offer(client: Client) -> None:
    """Others are refused."""
    await installed(client)
    for name, colour in (("a", "red"), ("b", "blue")):
        await client.create(Gadget(name=name, spec=GadgetSpec(colour=colour)))
    assert [item.name async for item in client.list(Gadget, fields={"spec.colour": "blue"})] == ["b"]
    with pytest.raises(BadRequest, match="field label not supported"):
        await client.list(Gadget, fields={"spec.size": "1"})


async def test_selector_that_is_none_is_refused(client: Client) -> None:
    """Here or by the server."""
    with pytest.raises(NavarchError):
        await client.list(ConfigMap, labels="a=b=c")


async def test_metadata_alone_is_listed(client: Client) -> None:
    """Of every page."""
    names = await filled(client)
    found = await client.list(MetadataOnly(ConfigMap), labels="listed", page_size=2)
    assert [item.name for item in found] == names
    assert {item.kind for item in found} == {"PartialObjectMetadata"}


async def test_list_goes_on_when_its_revision_is_forgotten(
    client: Client, compacting: Callable[[str], Awaitable[None]]
) -> None:
    """What exists throughout comes once; the rest comes from a newer revision, here with an object more."""
    for number in range(5):
        await client.create(note(client, f"item-{number}"))
    seen, listing = [], client.list(EVENT, page_size=2)
    async for item in listing:
        seen.append(item.name)
        if len(seen) == 1:
            newest = await client.create(note(client, "item-9"))
            await compacting(newest.metadata["resourceVersion"])
    assert seen == ["item-0", "item-1", "item-2", "item-3", "item-4", "item-9"]
