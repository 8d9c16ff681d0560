"""Disruption budgets: whether a pod may go, and that it does."""

from __future__ import annotations

from typing import Final

from navarch.cluster.server.objects.fields import shape_of, updated
from navarch.cluster.server.objects.registry import Found
from navarch.cluster.server.objects.types import ResourceType
from navarch.cluster.server.objects.views import stored_form
from navarch.cluster.server.pipeline.endpoints.call import Call
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_errors import StatusError, forbidden

__all__ = ["count_down"]
_VIOLATION: Final = "Cannot evict pod as it would violate the pod's disruption budget."
_ALLOWED: Final = "DisruptionAllowed"
_SERVER: Final = "kube-apiserver"


async def count_down(call: Call, budgets: ResourceType, found: Found, pod: str) -> None:
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


def _owned(call: Call, budgets: ResourceType, old: Json, value: Json) -> Json:
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
