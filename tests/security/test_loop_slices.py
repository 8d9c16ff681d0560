"""No request keeps the event loop: what takes long is done where others are served meanwhile.

What is measured is processor time between two turns of another task (`LoopSlices`). Each of these requests took more than
half a second of it at once before it was divided.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from navarch.cluster.embedded.cluster import EmbeddedCluster
from navarch.cluster.server.wire.request import ApiRequest
from navarch.cluster.storage.memory import MemoryStorage
from security.attacked_cluster import AttackedCluster, attacked_cluster
from security.loop_slices import measured_slices
from security.test_cel_cost import ADMISSION, CRDS, MAPS, THINGS, World, bind, config_map, definition, thing, validating
from security.test_request_budget import (
    MEBIBYTE,
    Attack,
    asked,
    label_selector,
    protobuf_parts,
    repeated_below_a_long_name,
    repeated_objects,
    yaml_pairs,
)
from security.test_request_budget import config_map as map_with

MOST_SECONDS = 0.4
"""Of processor time at once. Most slices are far below a tenth; a machine that does much else doubles them."""
TRIES = 3
LARGEST = 2_500_000
DENSE = "[" + ",".join(["[]"] * 13_000) + "].size() > 0"
"""Every third character is an expression to be parsed, checked and planned."""


@pytest.fixture(scope="module")
def target() -> Iterator[AttackedCluster]:
    with attacked_cluster() as cluster:
        yield cluster


def assert_short(attempt: Callable[[], float]) -> None:
    """The best of some tries, since a machine that does much else spoils some."""
    longest = math.inf
    for _ in range(TRIES):
        longest = min(longest, attempt())
        if longest <= MOST_SECONDS:
            return
    pytest.fail(f"expected the event loop to be kept for at most {MOST_SECONDS} s of processor time, got {longest} s")


def many_lists(size: int) -> Attack:
    return Attack(f"POST {MAPS}?dryRun=All", map_with(b'"x":[%b]' % b",".join([b"[]"] * (size // 3))))


def duplicates_below_the_limit(size: int) -> Attack:
    """As many values as a request may have; all are read."""
    objects = b",".join(b'"data":{"k%d":"%b"}' % (number, b"a" * (size // 50_000)) for number in range(48_000))
    return Attack(f"POST {MAPS}?dryRun=All", map_with(objects))


@pytest.mark.parametrize(
    "make",
    [
        repeated_objects,
        pytest.param(repeated_below_a_long_name, marks=pytest.mark.long),
        pytest.param(duplicates_below_the_limit, marks=pytest.mark.long),
        pytest.param(many_lists, marks=pytest.mark.long),
        pytest.param(yaml_pairs, marks=pytest.mark.long),
        protobuf_parts,
        pytest.param(label_selector, marks=pytest.mark.long),
    ],
)
def test_large_request_does_not_keep_the_event_loop(target: AttackedCluster, make: Callable[[int], Attack]) -> None:
    """Whether it is served or refused."""
    attack = make(LARGEST)

    def attempt() -> float:
        target.longest_slice()
        assert asked(target, attack).status in {200, 201, 400, 404, 413, 422}
        return target.longest_slice()

    assert_short(attempt)


@pytest.mark.long
def test_patch_that_copies_much_does_not_keep_the_event_loop(target: AttackedCluster) -> None:
    """Up to the limit of what copies may be."""
    operations = [{"op": "add", "path": "/data", "value": {f"k{number}": "v" for number in range(2000)}}]
    operations += [{"op": "copy", "from": "/data", "path": f"/d{number}"} for number in range(120)]
    body = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "copied"}}).encode()
    assert target.wire.ask(f"POST {MAPS}", body=body).status == 201
    attack = Attack(f"PATCH {MAPS}/copied?dryRun=All", json.dumps(operations).encode(), "application/json-patch+json")

    def attempt() -> float:
        target.longest_slice()
        assert asked(target, attack).status in {200, 413, 422}
        return target.longest_slice()

    assert_short(attempt)


def test_json_of_too_many_values_is_refused_before_it_is_decoded(target: AttackedCluster) -> None:
    """A few bytes each would be a hundred megabytes in memory."""
    before = target.begin_peak()
    assert asked(target, many_lists(LARGEST)).status == 413
    assert target.peak() - before < 20 * MEBIBYTE


class MeasuredWorld(World):
    """A cluster in the test's own loop."""

    def longest_slice(self, method: str, path: str, body: Any, expected: int) -> float:
        """For how long a request kept the loop; it has to have that status."""
        return self._runner.run(self._measured(method, path, body, expected))

    async def _measured(self, method: str, path: str, body: Any, expected: int) -> float:
        headers = {"authorization": f"Bearer {self.cluster.token}", "content-type": "application/json"}
        request = ApiRequest(method=method, path=path, headers=headers, body=json.dumps(body).encode())
        async with measured_slices() as slices:
            reply = await self.cluster.server.handle(request)
            longest = slices.take()
        assert reply.status == expected, reply.body
        return longest


@pytest.fixture
def world() -> Iterator[MeasuredWorld]:
    with asyncio.Runner() as runner:
        made = MeasuredWorld(runner)
        runner.run(made.cluster.__aenter__())
        yield made
        runner.run(made.cluster.__aexit__(None, None, None))


def test_rules_on_every_level_do_not_keep_the_event_loop(world: MeasuredWorld) -> None:
    """Each level is made ready for its rules."""
    schema: dict[str, Any] = {"type": "array", "items": {"type": "integer"}}
    value: Any = list(range(20_000))
    for _ in range(80):
        schema = {"type": "object", "properties": {"a": schema}, "x-kubernetes-validations": [{"rule": "true"}]}
        value = {"a": value}
    world.define(definition(schema))
    assert_short(lambda: world.longest_slice("POST", THINGS, thing(value), 422))


@pytest.mark.long
def test_patterns_do_not_keep_the_event_loop(world: MeasuredWorld) -> None:
    """Up to the budget of a request."""
    world.define(definition({"type": "array", "items": {"type": "string", "pattern": "(a?){990}b"}}))
    assert_short(lambda: world.longest_slice("POST", THINGS, thing(["a" * 1000] * 500), 413))


@pytest.mark.long
def test_patterns_of_a_crd_do_not_keep_the_event_loop(world: MeasuredWorld) -> None:
    """They are compiled when it is created."""
    fields = {f"f{number}": {"type": "string", "pattern": f"\\pL{{100}}{number}"} for number in range(2000)}
    crd = definition({"type": "object", "properties": fields})
    assert_short(lambda: world.longest_slice("POST", CRDS, crd, 413))


@pytest.mark.parametrize("form", ["validations", pytest.param("variables", marks=pytest.mark.long)])
def test_policy_does_not_keep_the_event_loop(world: MeasuredWorld, form: str) -> None:
    """A hundred expressions, until nothing is left of the budget."""
    items = "object.data.map(k, k)"
    square = f"{items}.all(a, {items}.all(b, a + b != ''))"
    if form == "validations":
        spec: dict[str, Any] = {"validations": [{"expression": square}] * 100}
    else:
        variables = [{"name": f"v{number}", "expression": square} for number in range(100)]
        asking = " && ".join(f"variables.v{number}" for number in range(100))
        spec = {"variables": variables, "validations": [{"expression": asking}]}
    bind(world, validating(**spec))
    assert_short(lambda: world.longest_slice("POST", MAPS, config_map(), 422))


def test_authorizer_of_a_policy_is_asked_from_wherever_it_is_evaluated(world: MeasuredWorld) -> None:
    """A long expression of a policy is evaluated in a thread, and what the server knows of rights stays in its loop."""
    items = "object.data.map(k, k)"
    square = f"{items}.all(a, {items}.all(b, a + b != ''))"
    check = "authorizer.group('').resource('pods').check('get').allowed()"
    bind(world, validating(validations=[{"expression": f"{square} && {check}"}]))
    assert world.longest_slice("POST", MAPS, config_map(100), 201) > 0


@pytest.mark.long
def test_compilation_of_a_policy_does_not_keep_the_event_loop(world: MeasuredWorld) -> None:
    """Neither when it is written, nor when another request is the first that it is about."""
    policy, numbers = validating(validations=[{"expression": DENSE}]), count()

    def attempt() -> float:
        policy["metadata"]["name"] = f"attack-{next(numbers)}"
        return world.longest_slice("POST", f"{ADMISSION}/validatingadmissionpolicies", policy, 201)

    assert_short(attempt)
    policy["metadata"]["name"] = "attack"
    bind(world, policy)
    assert world.longest_slice("POST", MAPS, config_map(1), 201) <= MOST_SECONDS


async def test_compilation_of_rules_does_not_keep_the_event_loop() -> None:
    """Those of a CRD, when its kind begins to be served."""
    schema = {"type": "object", "x-kubernetes-validations": [{"rule": DENSE}]}
    async with EmbeddedCluster(MemoryStorage()) as cluster, asyncio.timeout(60):
        headers = {"authorization": f"Bearer {cluster.token}", "content-type": "application/json"}
        body = json.dumps(definition(schema)).encode()
        async with measured_slices() as slices:
            reply = await cluster.server.handle(ApiRequest(method="POST", path=CRDS, headers=headers, body=body))
            assert reply.status == 201, reply.body
            while (await cluster.server.handle(ApiRequest(method="GET", path=THINGS, headers=headers))).status != 200:
                await cluster.clock.sleep(0.01)
            assert slices.take() <= MOST_SECONDS
