"""The budget of a request: what is charged to it, and what it refuses."""

from __future__ import annotations

import asyncio
import threading
import zlib
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from navarch.cluster.server.pipeline.proxy.proxy import unpacked
from navarch.cluster.server.wire.bodies import decode_json
from navarch.cluster.server.wire.budget import (
    DEEPEST,
    RequestBudget,
    RequestLimits,
    Spent,
    bounded_json,
    cel_budget,
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


def test_json_counts_all_that_its_text_says() -> None:
    """Of a name that comes often only the last value is decoded, but each of them is read."""
    body = b'{"a":{"b":"x,y"},"a":{"b":[]},"a":1}'
    with opened(RequestBudget(RequestLimits(nodes=6))):
        assert bounded_json(body) == {"a": 1}
    with opened(RequestBudget(RequestLimits(nodes=5))), pytest.raises(StatusError) as caught:
        bounded_json(body)
    assert caught.value.code == 413


def test_text_that_is_no_json_is_not_counted() -> None:
    """It is refused as what it is, since it may be YAML with long texts."""
    with opened(RequestBudget(RequestLimits(nodes=5))), pytest.raises(msgspec.DecodeError):
        bounded_json(b"a: one, two, three, four, five, six")


async def thread_of_step(charge: Callable[[RequestBudget], None], *, size: int = 0) -> tuple[bool, RequestBudget]:
    """Whether a step that charges this runs in a thread, and its budget; the last attempt counts."""
    budget, threads = RequestBudget(turns=asyncio.Lock()), list[int]()

    def step() -> None:
        threads.append(threading.get_ident())
        charge(budget)

    await budget.run(step, size=size)
    return threads[-1] != threading.get_ident(), budget


async def test_short_step_of_a_request_runs_at_once() -> None:
    """It costs less than to change threads."""
    is_in_thread, budget = await thread_of_step(lambda budget: budget.charge_nodes(100))
    assert (is_in_thread, budget.spent) == (False, Spent(nodes=100))


def evaluated(cost: int) -> None:
    with cel_budget(10_000_000) as budget:
        budget.charge(cost)


@pytest.mark.parametrize(
    ("charge", "spent"),
    [
        (lambda budget: budget.charge_nodes(50_000), Spent(nodes=50_000)),
        (lambda budget: budget.charge_copy(1_000_000), Spent(copied_bytes=1_000_000)),
        (lambda budget: budget.charge_pattern(50_000_000), Spent(pattern_steps=50_000_000)),
        (lambda budget: budget.charge_cel_source(10_000), Spent(cel_cost=600_000)),
        (lambda budget: opened_charge(budget, 500_000), Spent(cel_cost=500_000)),
    ],
    ids=["nodes", "copies", "patterns", "compilation", "evaluation"],
)
async def test_step_that_turns_out_to_be_long_runs_in_a_thread(
    charge: Callable[[RequestBudget], None], spent: Spent
) -> None:
    """What it has cost until then is charged once."""
    is_in_thread, budget = await thread_of_step(charge)
    assert (is_in_thread, budget.spent) == (True, spent)


def opened_charge(budget: RequestBudget, cost: int) -> None:
    with opened(budget):
        evaluated(cost)


async def test_step_that_reads_much_runs_in_a_thread_from_the_start() -> None:
    """As do all steps of a large request."""
    is_in_thread, budget = await thread_of_step(lambda _: None, size=100_000)
    assert is_in_thread
    budget.charge_nodes(50_000)
    assert await budget.run(threading.get_ident) != threading.get_ident()


async def test_step_reads_the_state_of_the_server_in_its_loop() -> None:
    """From a thread and from the loop itself; what is raised there is raised in the step."""
    budget, ident = RequestBudget(turns=asyncio.Lock()), threading.get_ident()

    def step() -> int:
        return budget.in_loop(threading.get_ident)

    assert [await budget.run(step, size=size) for size in (100_000, 0)] == [ident, ident]
    with pytest.raises(KeyError):
        await budget.run(lambda: budget.in_loop({}.popitem), size=100_000)


async def test_steps_of_one_request_side_by_side_are_charged_apart() -> None:
    """A short one waits while a long one is in a thread; webhooks are called side by side."""
    budget = RequestBudget(turns=asyncio.Lock())

    def charge(nodes: int) -> None:
        for _ in range(nodes // 1000):
            budget.charge_nodes(1000)

    await asyncio.gather(*(budget.run(lambda: charge(9000)) for _ in range(3)), budget.run(lambda: charge(1000)))
    assert budget.spent == Spent(nodes=28_000)
