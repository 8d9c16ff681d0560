"""A cluster forgets its past, as Kubernetes does: what happened more than five to ten minutes ago."""

from __future__ import annotations

import logging
from typing import Final

from navarch._base.clock import Clock
from navarch.cluster.embedded.cluster import EmbeddedCluster
from navarch.cluster.storage import StorageError

__all__ = ["forget_the_past"]

_log = logging.getLogger("navarch.cluster")

_SECONDS: Final = 300.0


async def forget_the_past(cluster: EmbeddedCluster, clock: Clock) -> None:
    """Until it is cancelled. Watches and pages that reach further back are then told so, with 410."""
    before = await cluster.revision()
    while True:
        await clock.liveness.sleep(_SECONDS)
        try:
            await cluster.compact(before)
            before = await cluster.revision()
        except StorageError as error:
            _log.warning("the past could not be forgotten: %s; tried again in %.0f s", error, _SECONDS)
