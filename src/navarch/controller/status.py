"""Writing a status: once, and only if it differs."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any, cast

from navarch.api import Object, Status, decode, encode, from_builtins, to_builtins
from navarch.api.shape import shape_of
from navarch.api.unknown import carry
from navarch.cache import Collection, Entry
from navarch.client import Client
from navarch.client.target import Readable
from navarch.controller.access import tell, wire_of
from navarch.controller.failure_report import mark_failed
from navarch.controller.reach import Reach
from navarch.errors import Conflict, NotFound

__all__ = ["StatusWriter"]

_ATTEMPTS = 5


class StatusWriter:
    """Compares a status with what it was when this was made, and writes the difference."""

    __slots__ = ("_before", "_entry")

    def __init__(self, entry: Entry, primary: Object) -> None:
        self._entry = entry
        self._before = encode(getattr(primary, "status", None))

    async def write(self, reach: Reach, primary: Object, *, succeeded: bool, failure: Exception | None = None) -> None:
        """Writes the status if it differs; `observedGeneration` goes with it, and is kept up to date once it is there.

        A `failure` that lasts becomes a condition; that alone observes no generation.
        If somebody else was faster, the difference is carried over to what he wrote. An object that is gone, or is another
        one by now, is left alone.
        """
        is_due = self._is_due(primary, succeeded=succeeded)
        if not (failure is not None and mark_failed(primary, failure, reach.clock)) and not is_due:
            return
        collection = reach.collections[type(primary).__kind__]
        before = collection.entry(self._entry.key)
        try:
            written, attempt = await self._written(reach.client, collection, primary)
        except NotFound:
            return
        if written is not None:
            # It follows what is seen, as often as that changes: no sign of a loop.
            quiet = replace(reach, on_write=None)
            tell(quiet, self._entry.key, collection, wire_of(written), before=before, exact=attempt == 0)
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
        """The object as it is afterwards, None if it is another one by now; and how often somebody else was faster.

        Raises `NotFound` if it is gone.
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
        """The status of `current` with the change that the reconciler made."""
        if current.metadata.resource_version == str(self._entry.version):
            return primary.status
        kind = type(primary.status)
        then, now = to_builtins(decode(kind, self._before)), to_builtins(primary.status)
        return from_builtins(kind, carry(to_builtins(current.status), then, now, shape_of(cast(Hashable, kind))))
