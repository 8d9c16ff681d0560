"""Events are not kept for ever."""

from __future__ import annotations

import contextlib
import logging
from typing import Final, NamedTuple

from navarch._base.clock import Clock
from navarch.cluster.storage import ChangedError, Storage, StorageError

__all__ = ["EventExpiry"]

_log = logging.getLogger("navarch.cluster.server")

_PREFIX: Final = "/registry/events/"
_KEPT_SECONDS: Final = 3600.0
_LOOK_SECONDS: Final = 60.0


class _SeenEvent(NamedTuple):
    revision: int
    since: float


class EventExpiry:
    """Deletes events to which nothing has been added for an hour, as Kubernetes does.

    How old they are is counted from when this server saw them first: after a restart they have another hour.
    """

    def __init__(self, storage: Storage, clock: Clock) -> None:
        self._storage = storage
        self._clock = clock
        self._seen: dict[str, _SeenEvent] = {}

    async def run(self) -> None:
        """Works until it is cancelled; while the store does not answer, nothing is forgotten."""
        while True:
            await self._clock.liveness.sleep(_LOOK_SECONDS)
            try:
                await self._forget_old()
            except StorageError as error:
                _log.debug("events are not forgotten now: %s", error)

    async def _forget_old(self) -> None:
        now, page = self._clock.monotonic(), await self._storage.page(_PREFIX)
        self._seen = {item.key: self._known(item.key, item.revision, now) for item in page.items}
        for key, seen in self._seen.items():
            if now - seen.since >= _KEPT_SECONDS:
                with contextlib.suppress(ChangedError):  # somebody has added to it, or deleted it
                    await self._storage.delete(key, expected=seen.revision)

    def _known(self, key: str, revision: int, now: float) -> _SeenEvent:
        known = self._seen.get(key)
        return known if known is not None and known.revision == revision else _SeenEvent(revision, now)
