"""An object that does not fit its model: it is marked, and stops nothing else."""

from __future__ import annotations

from typing import Any

from navarch.api import Dynamic, Object, Status, decode, format_time, truncate_to_seconds
from navarch.cache import Entry
from navarch.controller.reach import Reach
from navarch.errors import BadRequest, DecodeError, Forbidden, Invalid, NotFound

__all__ = ["MISMATCH", "clear_mismatch", "mark_mismatch"]

MISMATCH = "ModelMismatch"
"""The condition that is true while an object does not fit its model, and absent otherwise."""

_REASON = "DoesNotFitModel"


async def mark_mismatch(reach: Reach, entry: Entry, kind: type[Object], error: DecodeError) -> None:
    """Puts the condition on the object, if it has a status, and records an event; both once per generation."""
    found = Dynamic(decode(dict[str, Any], entry.data))
    status = found.get("status")
    conditions = _conditions(status)
    told = next((known for known in conditions if known.get("type") == MISMATCH), {})
    if told.get("message") == str(error) and told.get("observedGeneration", 0) == entry.generation:
        return
    reach.recorder.record(found, _REASON, str(error), type="Warning")
    if kind.__kind__.has_status and isinstance(status or {}, dict):
        others = [known for known in conditions if known is not told]
        found["status"] = {**(status or {}), "conditions": [*others, _condition(reach, entry, error)]}
        await _write(reach, found)


def clear_mismatch(primary: Any) -> None:
    """Takes the condition off an object that fits again; it is written with the rest of the status."""
    status = getattr(primary, "status", None)
    if isinstance(status, Status) and status.condition(MISMATCH) is not None:
        status.conditions = [known for known in status.conditions if known.type != MISMATCH]


def _conditions(status: Any) -> list[dict[str, Any]]:
    """The conditions as they are, as far as they can be told."""
    found = status.get("conditions") if isinstance(status, dict) else None
    return [known for known in found if isinstance(known, dict)] if isinstance(found, list) else []


def _condition(reach: Reach, entry: Entry, error: DecodeError) -> dict[str, Any]:
    return {
        "type": MISMATCH,
        "status": "True",
        "reason": _REASON,
        "message": str(error),
        "lastTransitionTime": format_time(truncate_to_seconds(reach.clock.now())),
        "observedGeneration": entry.generation,
    }


async def _write(reach: Reach, found: Dynamic) -> None:
    """Without its class: the answer does not fit the model either. One that is refused is told by its event alone.

    Raises what may pass, so that it is tried again.
    """
    try:
        await reach.client.replace(found, subresource="status")
    except (BadRequest, Forbidden, Invalid, NotFound):
        return
