"""The budget of a request: what is charged to it, and what it refuses."""

from __future__ import annotations

import asyncio
import zlib
from typing import Any

import pytest

from navarch.cluster.server.pipeline.proxy.proxy import unpacked
from navarch.cluster.server.wire.bodies import decode_json
from navarch.cluster.server.wire.budget import (
    DEEPEST,
    RequestBudget,
    RequestLimits,
    Spent,
    bounded_json,
    current_budget,
    opened,
)
from navarch.cluster.server.wire.byte_pipe import BytePipe
from navarch.cluster.server.wire.duplicate_fields import (
    MOST_FAULTS,
    duplicate_paths,
    faults_in_order,
    merged_duplicates,
)
from navarch.cluster.server.wire.status_errors import StatusError
from navarch.errors import PatchError


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


def test_budget_counts_what_a_body_costs() -> None:
    """Its bytes, and its values, those that aliases stand for too."""
    body = b"a: &a [1, 2, 3]\nb: *a\n"
    with opened(RequestBudget()) as budget:
        decode_json(body, "application/yaml")
    assert budget.spent == Spent(body_bytes=len(body), nodes=11)


def test_budget_is_that_of_the_present_request() -> None:
    """And behind the block there is none again."""
    with opened(RequestBudget()) as budget:
        assert current_budget() is budget
    assert current_budget() is not budget


@pytest.mark.parametrize("body", [b"[1,2,3,4,5,6,7,8,9]", b'{"a":{"b":{"c":{"d":{"e":{"f":{}}}}}}}'])
def test_more_values_than_a_request_may_have_are_refused(body: bytes) -> None:
    """However they are nested."""
    with opened(RequestBudget(RequestLimits(nodes=5))), pytest.raises(StatusError) as caught:
        bounded_json(body)
    assert (caught.value.code, caught.value.reason) == (413, "RequestEntityTooLarge")


def test_text_counts_as_one_value_whatever_is_in_it() -> None:
    """A file in a ConfigMap may have any number of commas and brackets."""
    with opened(RequestBudget()) as budget:
        bounded_json(b'["%b"]' % (b"[{,:" * 200_000))
    assert budget.spent.nodes == 2


def test_depth_has_an_end() -> None:
    """Values that are nested deeper would end somewhere in the stack."""
    assert bounded_json(nested(DEEPEST))
    with pytest.raises(RecursionError):
        bounded_json(nested(DEEPEST + 1))


def test_copies_are_charged_together() -> None:
    """A patch may copy much once, or little many times."""
    budget = RequestBudget(RequestLimits(copied_bytes=100))
    budget.charge_copy(60)
    with pytest.raises(PatchError, match="at most 100 bytes"):
        budget.charge_copy(60)


def test_faults_are_told_in_order_and_no_more_than_kubernetes_tells() -> None:
    """Go does not look into what is unknown, and tells a hundred."""
    body = b'{"a":[{"b":1,"b":2,"x":{"c":1,"c":2}}],"a":1}'
    found = ['duplicate field "a[0].b"', 'unknown field "a[0].x"', 'duplicate field "a"']
    assert faults_in_order(body, ["a[0].x"]) == found
    many = b"{%b}" % b",".join(b'"%d":1,"%d":1' % (number, number) for number in range(1000))
    assert len(duplicate_paths(many)) == len(faults_in_order(many, ())) == MOST_FAULTS


def test_objects_of_one_name_are_merged_as_go_reads_them() -> None:
    """At every depth; anything else takes the place of what was before."""
    body = b'{"a":{"b":{"c":1},"l":[1]},"a":{"b":{"d":2},"l":[2]},"e":{"f":1},"e":1}'
    assert merged_duplicates(body) == {"a": {"b": {"c": 1, "d": 2}, "l": [2]}, "e": 1}


@pytest.mark.parametrize("encoding", ["gzip", "deflate", ""])
def test_packed_bytes_are_unpacked_up_to_a_limit(encoding: str) -> None:
    """And not a byte further."""
    forms: dict[str, Any] = {"gzip": 31, "deflate": -15}
    body = bytes(1000)
    packed = zlib.compress(body, wbits=forms[encoding]) if encoding else body
    assert unpacked(packed, encoding, 1000) == body
    assert unpacked(packed, encoding, 999) is None


def test_packed_bytes_without_an_end_are_told() -> None:
    """And so are several in one, unless they are very many."""
    packed = zlib.compress(b"a", wbits=31)
    assert unpacked(packed * 3, "gzip", 100) == b"aaa"
    assert unpacked(packed * 1000, "gzip", 10_000) is None
    with pytest.raises(EOFError):
        unpacked(packed[:-1], "gzip", 100)


async def test_lane_holds_few_bytes_as_well_as_few_pieces() -> None:
    """A client may send its pieces as large as it likes."""
    lane = BytePipe()
    assert await lane.put(bytes(2**20))
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(lane.put(b"x"))
        await asyncio.wait([waiting], timeout=0)
        assert not waiting.done()
        assert await lane.get() == bytes(2**20)
    assert waiting.result()
