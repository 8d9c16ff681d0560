"""`StatusWriter`: writes the status once, if it differs; and the condition of objects that do not fit their model."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any, cast

from navarch._base.clock import Clock
from navarch.api import (
    Dynamic,
    Object,
    Status,
    decode,
    encode,
    format_time,
    from_builtins,
    to_builtins,
    truncate_to_seconds,
)
from navarch.api.meta import PENDING_TIME
from navarch.api.model_shape import shape_of
from navarch.api.unknown_fields import carry
from navarch.cache import Collection, Entry
from navarch.client import Client
from navarch.client.target import Readable
from navarch.controller.deps import ControllerDeps
from navarch.controller.outcomes import mark_failed
from navarch.controller.write_recorder import record_write, wire_of
from navarch.errors import BadRequest, Conflict, DecodeError, Forbidden, Invalid, NotFound

__all__ = ["MISMATCH", "StatusWriter", "clear_mismatch", "mark_mismatch"]


MISMATCH = "ModelMismatch"
"""The condition that is true while an object does not fit its model, and absent otherwise."""

_REASON = "DoesNotFitModel"


async def mark_mismatch(deps: ControllerDeps, entry: Entry, kind: type[Object], error: DecodeError) -> None:
    """Sets the condition, if the kind has a status, and records an event; both once per generation."""
    found = Dynamic(decode(dict[str, Any], entry.data))
    status = found.get("status")
    conditions = _conditions(status)
    told = next((known for known in conditions if known.get("type") == MISMATCH), {})
    if told.get("message") == str(error) and told.get("observedGeneration", 0) == entry.generation:
        return
    deps.recorder.record(found, _REASON, str(error), type="Warning")
    if kind.__kind__.has_status and isinstance(status or {}, dict):
        others = [known for known in conditions if known is not told]
        found["status"] = {**(status or {}), "conditions": [*others, _condition(deps, entry, error)]}
        await _write(deps, found)


def clear_mismatch(primary: Any) -> None:
    """Removes the condition from an object that fits its model again; the reconcile writes it."""
    status = getattr(primary, "status", None)
    if isinstance(status, Status) and status.condition(MISMATCH) is not None:
        status.conditions = [known for known in status.conditions if known.type != MISMATCH]


def _conditions(status: Any) -> list[dict[str, Any]]:
    """Returns the conditions of a status, as far as they can be read."""
    found = status.get("conditions") if isinstance(status, dict) else None
    return [known for known in found if isinstance(known, dict)] if isinstance(found, list) else []


def _condition(deps: ControllerDeps, entry: Entry, error: DecodeError) -> dict[str, Any]:
    return {
        "type": MISMATCH,
        "status": "True",
        "reason": _REASON,
        "message": str(error),
        "lastTransitionTime": format_time(truncate_to_seconds(deps.clock.now())),
        "observedGeneration": entry.generation,
    }


async def _write(deps: ControllerDeps, found: Dynamic) -> None:
    """Writes the status without its class: the answer does not fit the model either. Raises transient errors."""
    try:
        await deps.client.replace(found, subresource="status")
    except (BadRequest, Forbidden, Invalid, NotFound):
        return


_ATTEMPTS = 5


class StatusWriter:
    """Compares the status with the one before the reconcile, and writes the difference."""

    __slots__ = ("_before", "_entry")

    def __init__(self, entry: Entry, primary: Object) -> None:
        self._entry = entry
        self._before = encode(getattr(primary, "status", None))

    async def write(
        self, deps: ControllerDeps, primary: Object, *, succeeded: bool, failure: Exception | None = None
    ) -> None:
        """Writes the status if it differs, with `observedGeneration`, which stays current once it is set.

        A lasting `failure` becomes a condition, which observes no generation. After a conflict the difference is applied to the
        newer object. An object that is deleted, or has another uid, is left alone.
        """
        is_due = self._is_due(primary, succeeded=succeeded)
        if not (failure is not None and mark_failed(primary, failure, deps.clock)) and not is_due:
            return
        _supply_times(primary, deps.clock)
        collection = deps.collections[type(primary).__kind__]
        before = collection.entry(self._entry.key)
        try:
            written, attempt = await self._written(deps.client, collection, primary)
        except NotFound:
            return
        if written is not None:
            # It follows what is seen, as often as that changes: no sign of a loop.
            quiet = replace(deps, on_write=None)
            record_write(quiet, self._entry.key, collection, wire_of(written), before=before, exact=attempt == 0)
            primary.metadata.resource_version = written.metadata.resource_version

    def _is_due(self, primary: Object, *, succeeded: bool) -> bool:
        status = getattr(primary, "status", None)
        if status is None:
            return False
        changed, generation = encode(status) != self._before, self._entry.generation
        # What a built-in kind's own controller has observed is for that one to say.
        if not isinstance(status, Status) or not generation:
            return changed
        if not changed and not (succeeded and status.observed_generation not in {None, generation}):
            return False
        status.observed_generation = generation
        return encode(status) != self._before  # one that was made anew may be the same with it

    async def _written(self, client: Client, collection: Collection[Any], primary: Any) -> tuple[Any, int]:
        """Returns the stored object, None if it has another uid by now, and the number of conflicts.

        Raises `NotFound` if it is deleted.
        """
        key = self._entry.key
        current = collection.fresh(collection.entry(key) or self._entry)
        for attempt in range(_ATTEMPTS):
            if current.metadata.uid != self._entry.uid:
                break
            current.status = self._carried(primary, current)
            try:
                return await client.replace_status(current), attempt
            except Conflict:
                if attempt == _ATTEMPTS - 1:
                    raise
            current = await client.get(cast(Readable[Any], type(primary)), key.name, namespace=key.namespace or None)
        return None, 0

    def _carried(self, primary: Any, current: Any) -> Any:
        """Returns the status of `current` with the reconciler's change."""
        if current.metadata.resource_version == str(self._entry.version):
            return primary.status
        kind = type(primary.status)
        then, now = to_builtins(decode(kind, self._before)), to_builtins(primary.status)
        return from_builtins(kind, carry(to_builtins(current.status), then, now, shape_of(cast(Hashable, kind))))


def _supply_times(primary: Any, clock: Clock) -> None:
    """Gives each condition that the reconciler set in this reconcile its transition time."""
    status = getattr(primary, "status", None)
    if isinstance(status, Status):
        for condition in status.conditions:
            if condition.last_transition_time == PENDING_TIME:
                condition.last_transition_time = truncate_to_seconds(clock.now())
