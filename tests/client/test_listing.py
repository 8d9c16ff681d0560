"""Lists page by page, and what happens when the server forgets where it was."""

import asyncio
import json
from typing import Any

import pytest

from navarch import errors
from navarch.api import Kind
from navarch.client import ALL, MetadataOnly
from scripted import Scripted, answer, config_map, page, refusal, scripted

KIND = Kind("", "v1", "ConfigMap", plural="configmaps")


def items(*names: str) -> list[Any]:
    return [config_map(name) for name in names]


def expired(token: str = "") -> Any:
    return refusal(410, "Expired", "too old", metadata={"continue": token} if token else {})


async def test_pages_are_followed_to_the_end() -> None:
    """Each with the token of the one before, and without the parameters that chose the revision."""
    client, transport = scripted(page(*items("a", "b"), version=5, token="t1"), page(*items("c"), version=5))
    found = await client.list(
        KIND, labels={"x": "y"}, resource_version="3", resource_version_match="NotOlderThan", page_size=500
    )
    assert [item.name for item in found] == ["a", "b", "c"]
    assert found.resource_version == "5"
    assert transport.requests[0].query == {
        "labelSelector": "x=y",
        "resourceVersion": "3",
        "resourceVersionMatch": "NotOlderThan",
        "limit": "500",
    }
    assert transport.requests[1].query == {"labelSelector": "x=y", "limit": "500", "continue": "t1"}


async def test_awaited_list_is_one_answer() -> None:
    """A page after the first comes from etcd where the server keeps no snapshot of its revision, and is slow."""
    client, transport = scripted(page(*items("a", "b", "c"), version=5))
    found = await client.list(KIND)
    assert ([item.name for item in found], found.resource_version) == (["a", "b", "c"], "5")
    assert [request.query for request in transport.requests] == [{}]


async def test_lists_are_gathered() -> None:
    """`asyncio.gather` takes them as it takes coroutines."""
    client, _ = scripted(page(*items("a"), version=5), page(*items("b"), version=5))
    one, other = await asyncio.gather(client.list(KIND), client.list(KIND))
    assert [item.name for item in (*one, *other)] == ["a", "b"]


@pytest.mark.parametrize("fault", [errors.ConnectionLostError("cut"), b"<html>504</html>"])
async def test_answer_that_is_cut_short_is_read_page_by_page(fault: Any) -> None:
    """From the beginning: what has arrived may be of another revision."""
    half = json.dumps({"metadata": {}, "items": items("a", "b", "c")}).encode()[:150]
    client, transport = scripted(
        Scripted(200, [half, fault]), page(*items("a", "b"), version=5, token="t1"), page(*items("c"), version=5)
    )
    found = await client.list(KIND)
    assert ([item.name for item in found], found.resource_version) == (["a", "b", "c"], "5")
    assert [request.query.get("limit") for request in transport.requests] == [None, "500", "500"]


async def test_going_through_a_list_asks_for_a_page_only_when_it_is_needed() -> None:
    """One page is held at a time."""
    client, transport = scripted(page(*items("a", "b"), token="t1"), page(*items("c")))
    seen = [(item.name, len(transport.requests)) async for item in client.list(KIND, page_size=2)]
    assert seen == [("a", 1), ("b", 1), ("c", 2)]
    assert transport.requests[0].query["limit"] == "2"


async def test_page_size_of_nothing_asks_for_everything_at_once() -> None:
    """No limit is sent."""
    client, transport = scripted(page())
    assert list(await client.list(KIND, page_size=0)) == []
    assert "limit" not in transport.requests[0].query


async def test_expired_token_is_replaced_by_the_one_the_server_offers() -> None:
    """The rest comes from a newer revision; the list keeps the older one, so that a watch misses nothing."""
    client, transport = scripted(
        page(*items("a", "b"), version=5, token="t1"), expired("t2"), page(*items("c"), version=9)
    )
    found = await client.list(KIND, page_size=2)
    assert [item.name for item in found] == ["a", "b", "c"]
    assert found.resource_version == "5"
    assert transport.requests[2].query["continue"] == "t2"


async def test_expired_token_without_another_starts_anew_and_skips_what_was_seen() -> None:
    """Also twice in a row: nothing is missed and nothing comes twice."""
    client, _ = scripted(
        page(*items("a", "c"), version=5, token="t1"),
        expired(),
        page(*items("a", "b", "c"), version=9, token="t2"),
        page(*items("d", "e"), version=9, token="t3"),
        expired(),
        page(*items("a", "b"), version=12, token="t4"),
        expired(),
        page(*items("a", "b", "c", "d", "e", "f"), version=15),
    )
    assert [item.name async for item in client.list(KIND)] == ["a", "c", "d", "e", "f"]


async def test_list_in_all_namespaces_goes_on_by_namespace_and_name() -> None:
    """In the order of the server's store, where a-b comes before a."""
    places = [config_map("x", metadata={"namespace": space}) for space in ("a-b", "a", "b")]
    client, transport = scripted(page(*places[:2], token="t"), expired(), page(*places))
    found = await client.list(KIND, namespace=ALL, page_size=2)
    assert [item.namespace for item in found] == ["a-b", "a", "b"]
    assert transport.requests[0].path == "/api/v1/configmaps"


@pytest.mark.parametrize("ending", [expired(), expired("t2")])
async def test_server_that_forgets_every_page_is_given_up(ending: Any) -> None:
    """Twice without a page in between is an error, not a loop."""
    client, _ = scripted(page(*items("a"), token="t1"), ending, ending)
    with pytest.raises(errors.Gone):
        await client.list(KIND, page_size=1)


async def test_first_page_that_is_gone_is_an_error() -> None:
    """There is nothing to go on from: the caller asked for a revision that is no longer kept."""
    client, _ = scripted(expired())
    with pytest.raises(errors.Gone):
        await client.list(KIND, resource_version="1", resource_version_match="Exact")


async def test_items_without_their_type_get_it() -> None:
    """Built-in kinds are listed without; what is listed can be written."""
    client, _ = scripted(page({"metadata": {"name": "a"}}))
    [found] = await client.list(KIND)
    assert (found.api_version, found.kind) == ("v1", "ConfigMap")


async def test_null_in_the_place_of_items_is_an_empty_list() -> None:
    """As some servers written in Go send it."""
    client, _ = scripted(answer({"kind": "ConfigMapList", "metadata": {}, "items": None}))
    assert list(await client.list(KIND)) == []


async def test_metadata_only_list_asks_for_its_form() -> None:
    """And gives metadata."""
    item = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "a"}}
    client, transport = scripted(page(item))
    [found] = await client.list(MetadataOnly(KIND))
    assert found.name == "a"
    assert "as=PartialObjectMetadataList;" in transport.requests[0].headers["Accept"]
