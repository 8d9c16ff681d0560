"""A list that is split into its objects while it arrives."""

from __future__ import annotations

import json
from typing import Any

import pytest

from navarch.client import Request
from navarch.client.list_body import ListBody
from navarch.errors import BadAnswerError, ConnectionLostError
from scripted import Scripted, ScriptedTransport

REQUEST = Request(method="GET", path="/apis/test.example.com/v1/gadgets")
COMPACT, SPACED = (",", ":"), (", ", ": ")
TYPE = {"apiVersion": "test.example.com/v1", "kind": "Gadget"}
END = {"resourceVersion": "7"}


def gadgets(count: int, spec: Any = None) -> list[dict[str, Any]]:
    return [{**TYPE, "metadata": {"name": f"g{number}"}, "spec": spec} for number in range(count)]


def bare(count: int) -> list[dict[str, Any]]:
    return [{"metadata": {"name": f"g{number}"}, "data": {"a": "},{"}} for number in range(count)]


CUSTOM = {"apiVersion": TYPE["apiVersion"], "items": gadgets(9), "kind": "GadgetList", "metadata": END}
BUILT_IN = {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": END, "items": bare(9)}
NESTED = {"items": gadgets(9, spec=[{"a": 1}, {**TYPE, "metadata": {}}]), "metadata": END}
UNLIKE = {"items": [*gadgets(3), *bare(3), *gadgets(3)], "metadata": END}
EMPTY: dict[str, Any] = {"items": [], "metadata": END}
NULL = {"items": None, "metadata": END}


async def body_of(*chunks: bytes | BaseException) -> ListBody:
    response = await ScriptedTransport(Scripted(200, chunks)).send(REQUEST)
    return ListBody(REQUEST, response)


async def split(text: bytes, size: int) -> tuple[list[list[Any]], ListBody]:
    body = await body_of(*(text[start : start + size] for start in range(0, len(text), size)))
    found = []
    while (listed := await body.next()) is not None:
        assert all(each.head.name == json.loads(each.data)["metadata"]["name"] for each in listed)
        found.append([json.loads(each.data) for each in listed])
    return found, body


@pytest.mark.parametrize("size", [1, 7, 100, 100_000])
@pytest.mark.parametrize("separators", [COMPACT, SPACED])
@pytest.mark.parametrize("listed", [CUSTOM, BUILT_IN, NESTED, UNLIKE, EMPTY, NULL])
async def test_every_object_comes_once_and_in_order(
    listed: dict[str, Any], separators: tuple[str, str], size: int
) -> None:
    """Whatever the layout of the list and the size of the chunks."""
    found, body = await split(json.dumps(listed, separators=separators).encode(), size)
    assert [each for part in found for each in part] == (listed["items"] or [])
    assert body.metadata is not None
    assert body.metadata.resource_version == "7"


@pytest.mark.parametrize("listed", [CUSTOM, BUILT_IN])
async def test_objects_come_as_they_arrive(listed: dict[str, Any]) -> None:
    """So that no second copy of the whole list is held."""
    found, _ = await split(json.dumps(listed, separators=COMPACT).encode(), 100)
    assert max(map(len, found)) <= 3


@pytest.mark.parametrize(
    "text",
    [
        b"<html>Sign in</html>",
        b'{"kind":"Status","metadata":{}}',
        json.dumps(CUSTOM, separators=COMPACT).encode()[:-3],
        json.dumps({**EMPTY, "metadata": {"continue": "more"}}).encode(),
    ],
    ids=["no JSON", "no list", "a part of one", "a page"],
)
async def test_what_is_no_whole_list_is_refused(text: bytes) -> None:
    """Otherwise objects that are not in it would be taken for deleted ones."""
    with pytest.raises(BadAnswerError, match="expected a Kubernetes answer to GET"):
        await split(text, 100)


async def test_broken_connection_is_an_error_after_what_has_arrived() -> None:
    """The transport's own."""
    text = json.dumps(CUSTOM, separators=COMPACT).encode()
    body = await body_of(text[:300], ConnectionLostError("cut"))
    assert await body.next()
    with pytest.raises(ConnectionLostError, match="cut"):
        await body.next()
