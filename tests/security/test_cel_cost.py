"""CEL costs what Kubernetes says it costs, and stops there: a rule, a policy or a condition cannot keep the server busy."""

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

MAPS = "/api/v1/namespaces/default/configmaps"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"
CALL_LIMIT = "operation cancelled: actual cost limit exceeded"
CPU_SECONDS = 20.0
"""What any of these requests may take on a machine that has much else to do; alone it is about one. Before there were
limits each took minutes."""

ITEMS = "object.data.map(k, k)"
CUBIC = f"{ITEMS}.all(a, {ITEMS}.all(b, {ITEMS}.all(c, a + b + c != '')))"
DOUBLED = "['aaaaaaaaaa']" + "".join(f".map(x{n}, x{n} + x{n})" for n in range(30)) + ".size() > 0"
EXPENSIVE = {
    "cubic": CUBIC,
    "doubled text": f"{ITEMS}.all(k, {DOUBLED})",
    "shared parts compared": "[dyn(1)]" + ".map(x, dyn([x, x, x, x, x, x, x, x, x, x]))" * 12 + ".all(x, x == x)",
    "text put between characters": f"{ITEMS}.all(k, {ITEMS}.join('a').replace('', {ITEMS}.join('b')) != '')",
    "separators": f"{ITEMS}.all(k, {ITEMS}.join({ITEMS}.join({ITEMS}.join('a'))) != '')",
    "lists added": f"{ITEMS}.all(k, ({ITEMS} + {ITEMS} + {ITEMS} + {ITEMS}).size() > 0)",
    "a long range": f"{ITEMS}.all(k, lists.range(100000000).size() > 0)",
    "patterns that are no constants": f"{ITEMS}.all(a, {ITEMS}.all(b, 'a'.matches(a + b) || true))",
    "patterns that repeat": f"{ITEMS}.all(a, 'a'.matches('(.{{999}}){{9}}' + a) || 'a'.matches('.{{999}}' + a) || true)",
    "written out": f"{ITEMS}.all(a, {ITEMS}.all(b, '%s'.format([object]) != ''))",
    "short strings": f"{ITEMS}.all(a, {ITEMS}.all(b, {ITEMS}.isSorted() || true))",
    "searched backwards": f"{ITEMS}.all(a, {ITEMS}.join().lastIndexOf('x' + {ITEMS}.join()) < 0)",
    "authorization": f"{ITEMS}.all(a, !authorizer.group('').resource(a).check('get').allowed() || true)",
}


class World:
    """A cluster and the loop that it runs in."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self._runner = runner
        self.cluster = EmbeddedCluster(MemoryStorage())

    def send(self, method: str, path: str, body: Any = None, accept: str = "") -> tuple[int, dict[str, Any], float]:
        """The status, the answer, and the CPU seconds that it took."""
        headers = {"authorization": f"Bearer {self.cluster.token}", "content-type": "application/json"}
        headers |= {"accept": accept} if accept else {}
        request = ApiRequest(
            method=method, path=path, headers=headers, body=b"" if body is None else json.dumps(body).encode()
        )
        before = time.process_time()
        reply = self._runner.run(self.cluster.server.handle(request))
        return reply.status, json.loads(reply.body or b"{}"), time.process_time() - before

    def create(self, path: str, body: Any) -> None:
        status, answer, _ = self.send("POST", path, body)
        assert status == 201, answer

    def define(self, crd: dict[str, Any], path: str = "") -> None:
        """Creates a CRD and returns when its objects are served."""
        self.create(CRDS, crd)
        self._runner.run(self._served(path or THINGS))

    async def _served(self, path: str) -> None:
        headers = {"authorization": f"Bearer {self.cluster.token}"}
        request = ApiRequest(method="GET", path=path, headers=headers, body=b"")
        async with asyncio.timeout(SECONDS):
            while (await self.cluster.server.handle(request)).status != 200:
                await self.cluster.clock.sleep(0.01)


@pytest.fixture
def world() -> Iterator[World]:
    with asyncio.Runner() as runner:
        made = World(runner)
        runner.run(made.cluster.__aenter__())
        yield made
        runner.run(made.cluster.__aexit__(None, None, None))


def config_map(entries: int = 200) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "victim"},
        "data": {f"key-{number:04}": "value" for number in range(entries)},
    }


def rules(operations: list[str]) -> list[dict[str, Any]]:
    return [{"apiGroups": [""], "apiVersions": ["v1"], "operations": operations, "resources": ["configmaps"]}]


def validating(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "attack"},
        "spec": {"failurePolicy": "Fail", "matchConstraints": {"resourceRules": rules(["CREATE"])}, **spec},
    }


def bind(world: World, policy: dict[str, Any]) -> None:
    kind = policy["kind"]
    plural = {
        "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
        "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    }
    spec: dict[str, Any] = {"policyName": "attack"}
    if kind == "ValidatingAdmissionPolicy":
        spec["validationActions"] = ["Deny"]
    world.create(f"{ADMISSION}/{plural[kind]}", policy)
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}Binding",
        "metadata": {"name": "attack"},
        "spec": spec,
    }
    world.create(f"{ADMISSION}/{plural[kind][:-3]}ybindings", binding)


@pytest.mark.parametrize("expression", EXPENSIVE.values(), ids=EXPENSIVE.keys())
def test_expensive_validation_of_a_policy_is_stopped(world: World, expression: str) -> None:
    """The request is refused, as the failure policy says, within the cost of one expression."""
    bind(world, validating(validations=[{"expression": expression}]))
    status, answer, seconds = world.send("POST", MAPS, config_map())
    assert status == 422, answer
    assert CALL_LIMIT in answer["message"] or OUT_OF_BUDGET in answer["message"]
    assert seconds < CPU_SECONDS


def test_many_validations_of_a_policy_share_a_budget(world: World) -> None:
    """Each is affordable, all together are not."""
    square = f"{ITEMS}.all(a, {ITEMS}.all(b, a + b != ''))"
    bind(world, validating(validations=[{"expression": square}] * 100))
    status, answer, seconds = world.send("POST", MAPS, config_map())
    assert (status, OUT_OF_BUDGET in answer["message"]) == (422, True)
    assert seconds < CPU_SECONDS


def test_variables_of_a_policy_share_its_budget(world: World) -> None:
    """One expression that asks for a hundred variables is stopped too."""
    square = f"{ITEMS}.all(a, {ITEMS}.all(b, a + b != ''))"
    variables = [{"name": f"v{number}", "expression": square} for number in range(100)]
    asking = " && ".join(f"variables.v{number}" for number in range(100))
    bind(world, validating(variables=variables, validations=[{"expression": asking}]))
    status, answer, seconds = world.send("POST", MAPS, config_map())
    assert (status, OUT_OF_BUDGET in answer["message"]) == (422, True)
    assert seconds < CPU_SECONDS


@pytest.mark.parametrize("where", ["matchConditions", "messageExpression", "auditAnnotations"])
def test_other_expressions_of_a_policy_are_stopped(world: World, where: str) -> None:
    """Wherever a policy has an expression, it has a limit."""
    spec: dict[str, Any] = {"validations": [{"expression": "true"}]}
    if where == "matchConditions":
        spec["matchConditions"] = [{"name": "cubic", "expression": CUBIC}]
    elif where == "messageExpression":
        spec["validations"] = [{"expression": "false", "messageExpression": f"string({CUBIC})"}]
    else:
        spec["auditAnnotations"] = [{"key": "cubic", "valueExpression": f"string({CUBIC})"}]
    bind(world, validating(**spec))
    status, answer, seconds = world.send("POST", MAPS, config_map())
    assert status == 422, answer
    assert seconds < CPU_SECONDS


@pytest.mark.parametrize("failure_policy", ["Fail", "Ignore"])
def test_failure_policy_decides_about_what_costs_too_much(world: World, failure_policy: str) -> None:
    """An expression that is stopped is an expression without a value."""
    bind(world, validating(failurePolicy=failure_policy, validations=[{"expression": CUBIC}]))
    status, answer, _ = world.send("POST", MAPS, config_map())
    assert status == (422 if failure_policy == "Fail" else 201), answer


@pytest.mark.parametrize("patch_type", ["JSONPatch", "ApplyConfiguration"])
@pytest.mark.parametrize("shared", [False, True], ids=["cubic", "shared parts"])
def test_mutating_policy_is_stopped(world: World, patch_type: str, shared: bool) -> None:
    """What it builds is counted as it would be written: a part that occurs often counts as often."""
    tree = "['a']" + ".map(x, [x, x, x, x, x, x, x, x, x, x].join())" * 3 if not shared else "[dyn('a')]"
    tree += ".map(x, [x, x, x, x, x, x, x, x, x, x])" * 12 if shared else ""
    text = f"string({CUBIC})" if not shared else f"'%s'.format([{tree}])"
    if patch_type == "JSONPatch":
        value = tree if shared else text
        expression = f"[JSONPatch{{op: 'add', path: '/data/a', value: {value}}}]"
        mutation = {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}
    else:
        expression = f"Object{{data: Object.data{{a: {text}}}}}"
        mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": "attack"},
        "spec": {
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "matchConstraints": {"resourceRules": rules(["CREATE"])},
            "mutations": [mutation],
        },
    }
    bind(world, policy)
    status, answer, seconds = world.send("POST", MAPS, config_map())
    assert status in {403, 422}, answer
    assert CALL_LIMIT in answer["message"] or OUT_OF_BUDGET in answer["message"]
    assert seconds < CPU_SECONDS


def test_match_condition_of_a_webhook_is_stopped(world: World) -> None:
    """The webhook is never called; nobody listens there."""
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "attack"},
        "webhooks": [
            {
                "name": "attack.example.com",
                "clientConfig": {"url": "https://127.0.0.1:9/"},
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "rules": rules(["CREATE"]),
                "matchConditions": [{"name": "cubic", "expression": CUBIC}],
            }
        ],
    }
    world.create(f"{ADMISSION}/validatingwebhookconfigurations", configuration)
    status, answer, seconds = world.send("POST", MAPS, config_map())
    assert (status, CALL_LIMIT in answer["message"]) == (403, True), answer
    assert seconds < CPU_SECONDS


def definition(spec: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "things", "kind": "Thing"},
            "scope": "Cluster",
            "versions": [version],
        },
    }


SECONDS = 30.0
THINGS = "/apis/example.com/v1/things"


def thing(spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "victim"}, "spec": spec}


def test_rule_of_a_crd_that_costs_too_much_for_an_object_is_stopped(world: World) -> None:
    """Its estimate is within bounds, but by a factor of ten more generous than what one evaluation may cost."""
    rule = "self.list.all(a, self.list.all(b, a + b != 1))"
    spec = {
        "type": "object",
        "properties": {"list": {"type": "array", "maxItems": 1000, "items": {"type": "integer"}}},
        "x-kubernetes-validations": [{"rule": rule}],
    }
    world.define(definition(spec))
    status, answer, seconds = world.send("POST", THINGS, thing({"list": [1] * 1000}))
    assert status == 422, answer
    assert "no further validation rules will be run due to call cost exceeds limit for rule" in answer["message"]
    assert seconds < CPU_SECONDS


def test_rules_of_a_crd_share_a_budget(world: World) -> None:
    """Rules of items run once for each of them."""
    rule = "self.all(a, self.all(b, a + b != 1))"
    row = {
        "type": "array",
        "maxItems": 100,
        "items": {"type": "integer"},
        "x-kubernetes-validations": [{"rule": rule}],
    }
    spec = {"type": "object", "properties": {"rows": {"type": "array", "maxItems": 100, "items": row}}}
    world.define(definition(spec))
    status, answer, seconds = world.send("POST", THINGS, thing({"rows": [[1] * 100] * 100}))
    assert (status, OUT_OF_BUDGET in answer["message"]) == (422, True), answer
    assert seconds < CPU_SECONDS


def test_rules_on_every_level_convert_the_object_at_their_own_cost(world: World) -> None:
    """What is made ready for each level of rules is counted, though the rules themselves cost nothing."""
    schema: dict[str, Any] = {"type": "array", "items": {"type": "integer"}}
    value: Any = list(range(20_000))
    for _ in range(80):
        schema = {"type": "object", "properties": {"a": schema}, "x-kubernetes-validations": [{"rule": "true"}]}
        value = {"a": value}
    world.define(definition(schema))
    status, answer, seconds = world.send("POST", THINGS, thing(value))
    assert (status, OUT_OF_BUDGET in answer["message"]) == (422, True), answer
    assert seconds < CPU_SECONDS


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 5000 + "true" + ")" * 5000,
        "[" * 20_000,
        "true" + " && true" * 30_000,
        "!" * 90_000 + "true",
        "[" + ",".join(["[]"] * 30_000) + "].size() > 0",
        "true" + " && 'a'.matches('.{999}')" * 4000,
        "'" * 90_001,
        "1" * 90_000 + " == 1",
        "self.a" * 10_000,
        "[1]" + ".map(x, [x])" * 2000 + " == []",
        "''.format([" + "1," * 40_000,
        "true ? " * 10_000,
        " || ".join(f"a{number}" for number in range(15_000)),
    ],
    ids=range(13),
)
def test_expression_that_is_hard_to_compile_is_answered(world: World, expression: str) -> None:
    """Whether it is refused or not: without an error of the server, and without end."""
    status, answer, seconds = world.send(
        "POST", f"{ADMISSION}/validatingadmissionpolicies", validating(validations=[{"expression": expression}])
    )
    assert status in {201, 413, 422}, answer
    assert seconds < CPU_SECONDS


def test_policy_with_many_expressions_is_refused(world: World) -> None:
    """All expressions of a request together are compiled in bounded time."""
    variables = [{"name": f"v{number}", "expression": "1 + 1"} for number in range(50_000)]
    status, answer, seconds = world.send(
        "POST",
        f"{ADMISSION}/validatingadmissionpolicies",
        validating(variables=variables, validations=[{"expression": "true"}]),
    )
    assert status == 413, answer
    assert seconds < CPU_SECONDS
