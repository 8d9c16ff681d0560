"""What the server derives from a request costs in proportion to it: no pairs, no products, no endless texts."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from navarch.cluster.embedded.cluster import EmbeddedCluster
from navarch.cluster.server.wire.request import ApiRequest
from navarch.cluster.storage.memory import MemoryStorage

CORE = "/api/v1/namespaces/default"
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
FLOOR_SECONDS = 0.4
"""What is not measured: on a busy machine a small request may take as long."""
MOST_RATIO = 8
"""For four times as much; what is quadratic takes sixteen times as long."""
LONGEST_ANSWER = 64 * 1024


class World:
    """A cluster and the loop that it runs in."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self._runner = runner
        self.cluster = EmbeddedCluster(MemoryStorage())

    def send(
        self, method: str, path: str, body: Any, *, token: str = "", content_type: str = "application/json"
    ) -> tuple[int, dict[str, Any], float]:
        """The status, the answer, and the CPU seconds that it took."""
        headers = {"authorization": f"Bearer {token or self.cluster.token}", "content-type": content_type}
        request = ApiRequest(method=method, path=path, headers=headers, body=json.dumps(body).encode())
        before = time.process_time()
        reply = self._runner.run(self.cluster.server.handle(request))
        return reply.status, json.loads(reply.body or b"{}"), time.process_time() - before

    def create(self, path: str, body: Any) -> float:
        """Returns the CPU seconds that it took."""
        status, answer, seconds = self.send("POST", path, body)
        assert status == 201, answer
        return seconds

    def user(self, name: str, rules: list[dict[str, Any]]) -> str:
        """Makes a service account with a role of these rules and returns its token."""
        self.create(f"{CORE}/serviceaccounts", {"metadata": {"name": name}})
        self.create(f"{RBAC}/roles", {"metadata": {"name": name}, "rules": rules})
        binding = {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
        }
        self.create(f"{RBAC}/rolebindings", binding)
        status, answer, _ = self.send("POST", f"{CORE}/serviceaccounts/{name}/token", {"spec": {}})
        assert status == 201, answer
        token: str = answer["status"]["token"]
        return token


@pytest.fixture
def world() -> Iterator[World]:
    with asyncio.Runner() as runner:
        made = World(runner)
        runner.run(made.cluster.__aenter__())
        yield made
        runner.run(made.cluster.__aexit__(None, None, None))


def pod(name: str, ports: list[dict[str, Any]] | None = None, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "example.com/main", "ports": ports or []}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def assert_proportional(small: float, large: float) -> None:
    assert large <= MOST_RATIO * max(small, FLOOR_SECONDS / MOST_RATIO), (small, large)


TRIES = range(3)
"""The best of them counts: the garbage collector may run in the others."""
PORTS = {
    "equal": lambda _: {"containerPort": 1},
    "distinct": lambda number: {"containerPort": number + 1},
    "distinct of the node": lambda number: {"containerPort": 1, "hostPort": number + 1},
    "distinct addresses": lambda number: {
        "containerPort": 1,
        "hostPort": 1,
        "hostIP": f"10.0.{number >> 8}.{number & 255}",
    },
}


@pytest.mark.parametrize("port", PORTS.values(), ids=PORTS.keys())
def test_ports_of_a_pod_are_compared_in_proportion(world: World, port: Any) -> None:
    """Whether they clash or not."""
    seconds = []
    for n in (1000, 4000):
        ports = [port(each) for each in range(n)]
        seconds.append(min(world.create(f"{CORE}/pods", pod(f"p{n}-{each}", ports)) for each in TRIES))
    assert_proportional(*seconds)


FIELDS = {
    "schedulingGates": lambda number: {"name": f"gate-{number}"},
    "tolerations": lambda number: {"key": f"key-{number}", "operator": "Exists"},
}


@pytest.mark.parametrize("field", FIELDS)
def test_update_of_a_pod_with_long_lists_is_proportional(world: World, field: str) -> None:
    """A label is changed, nothing else."""
    seconds = []
    for n in (1500, 6000):
        world.create(f"{CORE}/pods", pod(f"p{n}", **{field: [FIELDS[field](each) for each in range(n)]}))
        spent = []
        for each in TRIES:
            status, answer, taken = world.send(
                "PATCH",
                f"{CORE}/pods/p{n}",
                {"metadata": {"labels": {"a": str(each)}}},
                content_type="application/merge-patch+json",
            )
            assert status == 200, answer
            spent.append(taken)
        seconds.append(min(spent))
    assert_proportional(*seconds)


@pytest.mark.parametrize(("count", "status"), [(8, 403), (36, 413)])
def test_rule_that_is_a_large_product_is_refused(world: World, count: int, status: int) -> None:
    """A role of less than a kilobyte would have to be compared part by part; what is missing is listed in bounds."""
    writing = {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["create"]}
    token = world.user("low", [writing, {"apiGroups": [""], "resources": ["*"], "verbs": ["*"]}])
    rule = {
        "verbs": [f"v{number}" for number in range(count)],
        "apiGroups": [f"g{number}" for number in range(count)],
        "resources": [f"r{number}" for number in range(count)],
        "resourceNames": [f"n{number}" for number in range(count)],
    }
    got, answer, seconds = world.send(
        "POST", f"{RBAC}/roles", {"metadata": {"name": "large"}, "rules": [rule]}, token=token
    )
    assert (got, len(json.dumps(answer)) < LONGEST_ANSWER) == (status, True), answer["message"][:1000]
    assert seconds < 2 * FLOOR_SECONDS


def test_large_rule_that_is_covered_as_a_whole_is_allowed(world: World) -> None:
    """Whoever may everything of a group grants any part of it, however many parts there are."""
    writing = {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["create"]}
    token = world.user("high", [writing, {"apiGroups": ["apps"], "resources": ["*"], "verbs": ["*"]}])
    many = [f"x{number}" for number in range(100)]
    rule = {"verbs": many, "apiGroups": ["apps"], "resources": many, "resourceNames": many}
    status, answer, seconds = world.send(
        "POST", f"{RBAC}/roles", {"metadata": {"name": "large"}, "rules": [rule]}, token=token
    )
    assert status == 201, answer
    assert seconds < FLOOR_SECONDS


def test_node_ports_of_a_service_are_found_in_proportion(world: World) -> None:
    """The large one takes nearly all that there are."""
    seconds = []
    for n in (600, 2100):
        ports = [{"port": number + 1, "name": f"p{number}"} for number in range(n)]
        body = {"metadata": {"name": f"s{n}"}, "spec": {"type": "NodePort", "ports": ports}}
        seconds.append(world.create(f"{CORE}/services", body))
    assert_proportional(*seconds)


def test_defaults_of_a_limit_range_are_charged_for_each_container(world: World) -> None:
    """Many resources for many containers are refused before they are filled in."""
    most = {f"example.com/r{number}": "5" for number in range(3000)}
    limits = [{"type": "Container", "max": most}]
    world.create(f"{CORE}/limitranges", {"metadata": {"name": "many"}, "spec": {"limits": limits}})
    containers = [{"name": f"c{number}", "image": "example.com/main"} for number in range(300)]
    status, answer, seconds = world.send(
        "POST", f"{CORE}/pods", {"metadata": {"name": "wide"}, "spec": {"containers": containers}}
    )
    assert (status, len(json.dumps(answer)) < LONGEST_ANSWER) == (413, True), answer.get("message", "")[:1000]
    assert seconds < 2 * FLOOR_SECONDS


def limit_ranges(world: World, count: int, limit: dict[str, Any], prefix: str = "r") -> None:
    """Makes so many LimitRanges with that limit."""
    for number in range(count):
        body = {"metadata": {"name": f"{prefix}{number}"}, "spec": {"limits": [limit]}}
        world.create(f"{CORE}/limitranges", body)


def test_limit_ranges_of_pods_are_compared_in_proportion(world: World) -> None:
    """What the containers of a pod ask for together is added up once, however many LimitRanges there are."""
    amounts = {f"example.com/r{number}": "1" for number in range(20)}
    resources = {"requests": amounts, "limits": amounts}
    seconds = []
    for n in (50, 200):
        limit_ranges(world, n, {"type": "Pod", "max": {"example.com/r1": "1000"}}, f"of-{n}-")
        containers = [{"name": f"c{each}", "image": "example.com/main", "resources": resources} for each in range(n)]
        seconds.append(
            world.create(f"{CORE}/pods", {"metadata": {"name": f"p{n}"}, "spec": {"containers": containers}})
        )
    assert_proportional(*seconds)


MANY_BOUNDS = {"min": {f"example.com/r{number}": "0" for number in range(600)}}


@pytest.mark.parametrize("limit", [{"type": "Container"}, {"type": "Pod", **MANY_BOUNDS}], ids=["empty", "many bounds"])
def test_many_limit_ranges_are_charged_to_the_pod(world: World, limit: dict[str, Any]) -> None:
    """Each container, or each amount, would be compared with all of them: the pod is refused soon."""
    limit_ranges(world, 200, limit)
    containers: list[dict[str, Any]] = [{"name": f"c{number}", "image": "example.com/main"} for number in range(600)]
    containers[0]["resources"] = {kind: dict.fromkeys(MANY_BOUNDS["min"], "1") for kind in ("requests", "limits")}
    status, answer, seconds = world.send(
        "POST", f"{CORE}/pods", {"metadata": {"name": "wide"}, "spec": {"containers": containers}}
    )
    assert (status, answer["reason"]) == (413, "RequestEntityTooLarge"), answer["message"][:1000]
    assert seconds < 2 * FLOOR_SECONDS
