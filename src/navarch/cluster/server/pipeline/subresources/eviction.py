"""The endpoint `pods/eviction`: deletes a pod if its PodDisruptionBudget allows it."""

from __future__ import annotations

from functools import partial
from typing import Final

import msgspec
from msgspec.structs import replace

from navarch.cluster.server.kinds.builtin.generic.checks import selects
from navarch.cluster.server.objects.fields import shape_of, updated
from navarch.cluster.server.objects.registry import Found, decoded, retry_on_conflict, stored_form
from navarch.cluster.server.objects.types import ResourceType
from navarch.cluster.server.pipeline.endpoints.call import ResourceCall
from navarch.cluster.server.pipeline.endpoints.delete import DeletePreconditions, check_preconditions, delete
from navarch.cluster.server.pipeline.endpoints.options import write_options
from navarch.cluster.server.pipeline.subresources.bodies import sent, success
from navarch.cluster.server.wire.request import Json, Reply
from navarch.cluster.server.wire.status_errors import StatusError, bad_request, forbidden

_VIOLATION: Final = "Cannot evict pod as it would violate the pod's disruption budget."
_ALLOWED: Final = "DisruptionAllowed"
_SERVER: Final = "kube-apiserver"
_EVICTION: Final = "io.k8s.api.policy.v1.Eviction"
_UNPROTECTED: Final = frozenset({"Succeeded", "Failed", "Pending"})
_TARGET: Final = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}


async def count_down(call: ResourceCall, budgets: ResourceType, found: Found, pod: str) -> None:
    """Notes in the budget that the pod goes, unless it is a dry run; 429 if the budget allows none."""
    budget, status = found.value, {**(found.value.get("status") or {})}
    name = budget["metadata"]["name"]
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise _too_many(f"The disruption budget {name} is still being processed by the server.", seconds=10)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed < 0:
        raise forbidden("policy", "poddisruptionbudget", name, "pdb disruptions allowed is negative")
    if not allowed:
        raise _too_many(_why_none(name, status))
    if call.dry_run:
        return
    status["disruptionsAllowed"] = allowed - 1
    status["disruptedPods"] = {**(status.get("disruptedPods") or {}), pod: call.now()}
    if allowed == 1:
        status["conditions"] = _conditions(status, call.now())
    value = _owned(call, budgets, budget, {**budget, "status": status})
    await call.kernel.registry.update(budgets, await stored_form(budgets, value), found.stored)


def _owned(call: ResourceCall, budgets: ResourceType, old: Json, value: Json) -> Json:
    """What the server changes itself belongs to it."""
    managed = updated(
        old,
        value,
        shape_of(budgets, call.kernel.catalog),
        manager=_SERVER,
        subresource="status",
        api_version=budgets.api_version,
        now=call.now(),
    )
    return {**value, "metadata": {**value["metadata"], "managedFields": managed}}


def _why_none(name: str, status: Json) -> str:
    needs, has = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    conditions: list[Json] = status.get("conditions") or []
    found = next((each for each in conditions if each.get("type") == _ALLOWED), Json())
    message = found.get("message", "") if found.get("status") == "False" else ""
    told = f"The disruption budget {name} does not allow evicting pods currently"
    if message and found.get("reason") == "SyncFailed":
        return f"{told} because it failed sync: {message}"
    if has <= needs:
        return f"The disruption budget {name} needs {needs} healthy pods and has {has} currently"
    return f"{told} ({found.get('reason', '')}): {message}" if message else told


def _conditions(status: Json, now: str) -> list[Json]:
    """With the one that says that no more pods may go."""
    known = list(status.get("conditions") or ())
    before = next((each for each in known if each.get("type") == _ALLOWED), None)
    since = before["lastTransitionTime"] if before is not None and before.get("status") == "False" else now
    condition = {
        "type": _ALLOWED,
        "status": "False",
        "observedGeneration": status.get("observedGeneration", 0),
        "lastTransitionTime": since,
        "reason": "InsufficientPods",
        "message": "",
    }
    if before is None:
        return [*known, condition]
    return [condition if each is before else each for each in known]


def _too_many(said: str, *, seconds: int = 0) -> StatusError:
    details: Json = {"causes": [{"reason": "DisruptionBudget", "message": said}]}
    if seconds:
        details["retryAfterSeconds"] = seconds
    headers = {"Retry-After": str(seconds)} if seconds else None
    return StatusError(429, "TooManyRequests", _VIOLATION, details=details, headers=headers)


async def evict(call: ResourceCall) -> Reply:
    """Deletes the pod, and counts that down in the status of its budget; 429 if the budget allows none."""
    asked = write_options("CreateOptions", call.request)
    eviction = await sent(call, _EVICTION)
    if eviction["metadata"].get("name") != call.info.name:
        raise bad_request("name in URL does not match name in Eviction object")
    options = _delete_options(call, eviction)
    attributes = await call.admitted("CREATE", eviction, None, asked)
    await call.validated(attributes, eviction)
    await retry_on_conflict(partial(_ask, call))
    if not call.dry_run:
        options = await retry_on_conflict(partial(_say_why, call, options))
    await _delete(call, options)
    return success(call)


def _delete_options(call: ResourceCall, eviction: Json) -> Json:
    """How the pod is to be deleted; that it is a dry run is said there, in the query, or in both."""
    options: Json = eviction.get("deleteOptions") or {}
    inside, outside = options.get("dryRun") or [], list(call.request.query.get("dryRun", ()))
    if inside and outside and inside != outside:
        shown = (f"[{' '.join(each)}]" for each in (outside, inside))
        raise bad_request(f"Non-matching dry-run options in request and content: {' and '.join(shown)}")
    call.dry_run = bool(inside or outside)
    return {**options, "dryRun": inside or outside} if call.dry_run else options


async def _ask(call: ResourceCall) -> None:
    """Refuses what the budget of the pod does not allow."""
    pod = await call.kernel.registry.get(call.resource, call.info.namespace, call.info.name)
    if not _is_unprotected(pod.value):
        await _ask_budget(call, pod.value)


def _is_unprotected(pod: Json) -> bool:
    """A pod that does not run, or is being deleted, can be disturbed no more."""
    return pod["status"].get("phase") in _UNPROTECTED or bool(pod["metadata"].get("deletionTimestamp"))


async def _ask_budget(call: ResourceCall, pod: Json) -> None:
    budgets = call.kernel.catalog.find("policy", "v1", "poddisruptionbudgets")
    assert budgets is not None, "budgets are always served"
    found = await _budgets_of(call, budgets, pod)
    if len(found) > 1:
        said = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise StatusError(500, "", said)
    if found and not _may_go_unready(pod, found[0].value):
        await count_down(call, budgets, found[0], pod["metadata"]["name"])


async def _budgets_of(call: ResourceCall, budgets: ResourceType, pod: Json) -> list[Found]:
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


async def _say_why(call: ResourceCall, options: Json) -> Json:
    """Says in the pod's status why it goes; the options, which then mean the pod as it is after that."""
    found = await call.kernel.registry.get(call.resource, call.info.namespace, call.info.name)
    pod, wanted = found.value, options.get("preconditions") or {}
    check_preconditions(call, pod["metadata"], msgspec.convert(wanted, DeletePreconditions))
    others = [each for each in pod["status"].get("conditions") or () if each.get("type") != _TARGET["type"]]
    condition = {**_TARGET, "lastProbeTime": None, "lastTransitionTime": call.now()}
    value = {**pod, "status": {**pod["status"], "conditions": [*others, condition]}}
    stored = await call.kernel.registry.update(call.resource, await stored_form(call.resource, value), found.stored)
    if "resourceVersion" not in wanted:
        return options
    return {**options, "preconditions": {**wanted, "resourceVersion": str(stored.revision)}}


async def _delete(call: ResourceCall, options: Json) -> None:
    body = {name: part for name, part in options.items() if name not in {"apiVersion", "kind"}}
    request = replace(
        call.request,
        method="DELETE",
        body=msgspec.json.encode(body),
        headers={**call.request.headers, "content-type": "application/json"},
    )
    info = replace(call.info, verb="delete", subresource="")
    await delete(ResourceCall(call.kernel, request, info, call.resource, call.user, call.warnings))
