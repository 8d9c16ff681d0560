"""`pods/eviction`: a pod is deleted if its disruption budget allows it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import msgspec

from navarch.cluster.server.builtin.checks.common import selects
from navarch.cluster.server.builtin.endpoints.bodies import sent, success
from navarch.cluster.server.endpoints.call import Call
from navarch.cluster.server.endpoints.options import write_options
from navarch.cluster.server.endpoints.removal import delete
from navarch.cluster.server.refusal import Refusal, bad_request
from navarch.cluster.server.registry import Found, decoded
from navarch.cluster.server.request import Json, Reply
from navarch.cluster.server.types import ResourceType
from navarch.cluster.server.views import stored_form

__all__ = ["evict"]

_EVICTION: Final = "io.k8s.api.policy.v1.Eviction"
_UNPROTECTED: Final = frozenset({"Succeeded", "Failed", "Pending"})
_VIOLATION: Final = "Cannot evict pod as it would violate the pod's disruption budget."
_TARGET: Final = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}


async def evict(call: Call) -> Reply:
    """Deletes the pod, and counts that down in the status of its budget; 429 if the budget allows none."""
    eviction = sent(call, _EVICTION)
    if eviction["metadata"].get("name") != call.info.name:
        raise bad_request("name in URL does not match name in Eviction object")
    attributes = await call.admitted("CREATE", eviction, None, write_options("CreateOptions", call.request))
    await call.validated(attributes, eviction)
    found = await call.kernel.registry.get(call.resource, call.info.namespace, call.info.name)
    if not _is_unprotected(found.value):
        await _ask_budget(call, found.value)
    await _delete(call, found, eviction.get("deleteOptions") or {})
    return success(call)


def _is_unprotected(pod: Json) -> bool:
    """A pod that does not run, or is being deleted, can be disturbed no more."""
    return pod["status"].get("phase") in _UNPROTECTED or bool(pod["metadata"].get("deletionTimestamp"))


async def _ask_budget(call: Call, pod: Json) -> None:
    budgets = call.kernel.catalog.find("policy", "v1", "poddisruptionbudgets")
    assert budgets is not None, "budgets are always served"
    found = await _budgets_of(call, budgets, pod)
    if len(found) > 1:
        said = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise Refusal(500, "", said)
    if found and not _may_go_unready(pod, found[0].value):
        await _count_down(call, budgets, found[0], pod)


async def _budgets_of(call: Call, budgets: ResourceType, pod: Json) -> list[Found]:
    namespace, labels = call.info.namespace, pod["metadata"].get("labels") or {}
    page = await call.kernel.registry.storage.page(budgets.prefix(namespace))
    found = [Found(decoded(stored), stored) for stored in page.items]
    return [each for each in found if _selects(each.value["spec"].get("selector"), labels)]


def _selects(selector: Json | None, labels: Json) -> bool:
    return selector is not None and selects(selector, labels)


def _may_go_unready(pod: Json, budget: Json) -> bool:
    """A pod that is not ready counts for nothing, so it may go if enough others are."""
    conditions = pod["status"].get("conditions") or ()
    if any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions):
        return False
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    desired: int = status.get("desiredHealthy", 0)
    return desired > 0 and status.get("currentHealthy", 0) >= desired


async def _count_down(call: Call, budgets: ResourceType, found: Found, pod: Json) -> None:
    budget, status = found.value, {**(found.value.get("status") or {})}
    name = budget["metadata"]["name"]
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise _too_many(f"The disruption budget {name} is still being processed by the server.", seconds=10)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed <= 0:
        needs, has = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        raise _too_many(f"The disruption budget {name} needs {needs} healthy pods and has {has} currently")
    status["disruptionsAllowed"] = allowed - 1
    status["disruptedPods"] = {**(status.get("disruptedPods") or {}), pod["metadata"]["name"]: call.now()}
    if not call.dry_run:
        value = {**budget, "status": status}
        await call.kernel.registry.update(budgets, await stored_form(budgets, value), found.stored)


def _too_many(said: str, *, seconds: int = 0) -> Refusal:
    details: Json = {"causes": [{"reason": "DisruptionBudget", "message": said}]}
    if seconds:
        details["retryAfterSeconds"] = seconds
    headers = {"Retry-After": str(seconds)} if seconds else None
    return Refusal(429, "TooManyRequests", _VIOLATION, details=details, headers=headers)


async def _delete(call: Call, found: Found, options: Json) -> None:
    """Says in the pod's status why it goes, and deletes it as its options ask."""
    if not call.dry_run:
        pod = found.value
        others = [each for each in pod["status"].get("conditions") or () if each.get("type") != _TARGET["type"]]
        condition = {**_TARGET, "lastProbeTime": None, "lastTransitionTime": call.now()}
        value = {**pod, "status": {**pod["status"], "conditions": [*others, condition]}}
        await call.kernel.registry.update(call.resource, await stored_form(call.resource, value), found.stored)
    body = {name: part for name, part in options.items() if name not in {"apiVersion", "kind"}}
    request = replace(
        call.request,
        method="DELETE",
        body=msgspec.json.encode(body),
        headers={**call.request.headers, "content-type": "application/json"},
    )
    info = replace(call.info, verb="delete", subresource="")
    await delete(Call(call.kernel, request, info, call.resource, call.user, call.warnings))
