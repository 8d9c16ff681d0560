"""Requests that do not insist on what was read: somebody else's write in between is nothing that a client is told of."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from cluster.builtin.serving import MERGE, Asking, serving
from navarch.cluster.storage.memory import MemoryStorage

Json = dict[str, Any]

NAMESPACE = "/api/v1/namespaces/default"
POD = f"{NAMESPACE}/pods/p"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
ALLOWED = {"observedGeneration": 1, "currentHealthy": 2, "desiredHealthy": 1, "disruptionsAllowed": 1}


class BusyStorage(MemoryStorage):
    """Somebody else is faster, once for each of `keys`: the old text in what is stored becomes the new one."""

    def __init__(self) -> None:
        super().__init__()
        self.overtaken: dict[str, tuple[bytes, bytes]] = {}

    async def put(self, key: str, value: bytes, *, expected: int) -> int:
        await self._overtake(key)
        return await super().put(key, value, expected=expected)

    async def delete(self, key: str, *, expected: int) -> int:
        await self._overtake(key)
        return await super().delete(key, expected=expected)

    async def _overtake(self, key: str) -> None:
        old, new = self.overtaken.pop(key, (b"", b""))
        if old:
            stored = await self.get(key)
            assert stored is not None
            assert old in stored.value, stored.value
            await super().put(key, stored.value.replace(old, new), expected=stored.revision)


class Busy:
    """A server whose objects others change, too."""

    def __init__(self, ask: Asking, storage: BusyStorage) -> None:
        self.ask = ask
        self.overtaken = storage.overtaken


@pytest.fixture
async def busy() -> AsyncIterator[Busy]:
    """With a pod that runs and has a budget that lets it go."""
    storage = BusyStorage()
    async with serving(storage) as ask:
        spec: Json = {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"e": "f"}}, "spec": spec}
        await ask("POST", f"{NAMESPACE}/pods", pod)
        await ask("PATCH", f"{POD}/status", {"status": READY}, MERGE)
        spec = {"minAvailable": 1, "selector": {"matchLabels": {"e": "f"}}}
        budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": spec}
        await ask("POST", BUDGETS, budget)
        await ask("PATCH", f"{BUDGETS}/b/status", {"status": ALLOWED}, MERGE)
        yield Busy(ask, storage)


def _eviction(**options: Any) -> Json:
    eviction: Json = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    return {**eviction, "deleteOptions": options} if options else eviction


BUDGET_KEY, POD_KEY = "/registry/poddisruptionbudgets/default/b", "/registry/pods/default/p"


async def test_an_eviction_asks_a_budget_again_that_was_written_meanwhile(busy: Busy) -> None:
    """The eviction decrements the budget that was written meanwhile."""
    busy.overtaken[BUDGET_KEY] = (b'"disruptionsAllowed":1', b'"disruptionsAllowed":5')
    busy.overtaken[POD_KEY] = (b'"e":"f"', b'"e":"f","new":"label"')
    assert (await busy.ask("POST", f"{POD}/eviction", _eviction()))[0] == 201
    assert not busy.overtaken
    _, budget = await busy.ask("GET", f"{BUDGETS}/b")
    _, pod = await busy.ask("GET", POD)
    assert budget["status"]["disruptionsAllowed"] == 4
    assert (pod["metadata"]["labels"]["new"], pod["metadata"]["deletionGracePeriodSeconds"]) == ("label", 30)


async def test_an_eviction_is_refused_by_what_the_budget_says_by_then(busy: Busy) -> None:
    """The eviction gets 429, and the pod stays."""
    busy.overtaken[BUDGET_KEY] = (b'"disruptionsAllowed":1', b'"disruptionsAllowed":0')
    code, refused = await busy.ask("POST", f"{POD}/eviction", _eviction())
    assert (code, refused["reason"]) == (429, "TooManyRequests")
    assert "deletionTimestamp" not in (await busy.ask("GET", POD))[1]["metadata"]


async def test_an_eviction_means_the_version_that_it_names(busy: Busy) -> None:
    """Another resourceVersion is a conflict; the eviction's own write of the pod status is none."""
    _, pod = await busy.ask("GET", POD)
    code, refused = await busy.ask("POST", f"{POD}/eviction", _eviction(preconditions={"resourceVersion": "1"}))
    assert (code, refused["reason"]) == (409, "Conflict")
    await busy.ask("PATCH", f"{BUDGETS}/b/status", {"status": ALLOWED}, MERGE)
    version = pod["metadata"]["resourceVersion"]
    assert (await busy.ask("POST", f"{POD}/eviction", _eviction(preconditions={"resourceVersion": version})))[0] == 201


@pytest.mark.parametrize(("path", "options"), [("?dryRun=All", {}), ("", {"dryRun": ["All"]})])
async def test_an_eviction_for_show_changes_nothing(busy: Busy, path: str, options: Json) -> None:
    """A dry run in the query or in the body changes nothing."""
    before = await busy.ask("GET", POD), await busy.ask("GET", f"{BUDGETS}/b")
    assert (await busy.ask("POST", f"{POD}/eviction{path}", _eviction(**options)))[0] == 201
    assert before == (await busy.ask("GET", POD), await busy.ask("GET", f"{BUDGETS}/b"))


async def test_a_deletion_takes_what_is_there(busy: Busy) -> None:
    """A deletion without a resourceVersion deletes the object, even if it changed meanwhile."""
    busy.overtaken[BUDGET_KEY] = (b'"disruptionsAllowed":1', b'"disruptionsAllowed":5')
    assert (await busy.ask("DELETE", f"{BUDGETS}/b"))[0] == 200
    busy.overtaken[POD_KEY] = (b'"e":"f"', b'"e":"f","new":"label"')
    assert (await busy.ask("DELETE", f"{NAMESPACE}/pods"))[0] == 200
    assert "deletionTimestamp" in (await busy.ask("GET", POD))[1]["metadata"]


async def test_a_replacement_that_names_no_version_replaces_what_is_there(busy: Busy) -> None:
    """An update without a resourceVersion replaces the object; one with an old resourceVersion is refused."""
    data = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "1"}}
    _, made = await busy.ask("POST", f"{NAMESPACE}/configmaps", data)
    busy.overtaken["/registry/configmaps/default/m"] = (b'"a":"1"', b'"a":"2"')
    code, replaced = await busy.ask("PUT", f"{NAMESPACE}/configmaps/m", {**data, "data": {"a": "3"}})
    assert (code, replaced["data"]) == (200, {"a": "3"})
    code, _ = await busy.ask("PUT", f"{NAMESPACE}/configmaps/m", {**made, "data": {"a": "4"}})
    assert code == 409
