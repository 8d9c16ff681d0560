"""A pod's status, written whenever it is another one; changes that come together are written together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

from navarch._base.backoff import Backoff, Delays
from navarch.api import to_builtins
from navarch.client import StrategicPatch
from navarch.cluster.nodes.pods.home import Home
from navarch.errors import ApiError, Conflict, NavarchError, NotFound, ServerError, TooManyRequests
from navarch.k8s.core.v1 import Pod, PodStatus

__all__ = ["StatusWriter"]

_log = logging.getLogger("navarch.nodes")
_PAUSE: Final = Backoff(initial=0.2, maximum=10.0)
_WHOLE: Final = ("podIPs", "hostIPs")
_CLEARED: Final = {"reason": None, "message": None}


class StatusWriter:
    """Writes what `compute` says while `run` runs, each time after `changed`."""

    def __init__(self, home: Home, compute: Callable[[], PodStatus]) -> None:
        self._home = home
        self._compute = compute
        self._dirty = asyncio.Event()
        self._written: dict[str, Any] | None = None

    def changed(self) -> None:
        """There may be something new to write."""
        self._dirty.set()

    async def run(self) -> None:
        """Writes until it is cancelled."""
        while True:
            await self._dirty.wait()
            await self._home.site.clock.sleep(0)
            await self.write()

    async def write(self) -> None:
        """Writes the status as it is now, unless it was; tries until the server has taken it or knows no such pod."""
        delays = Delays(_PAUSE, self._home.site.client.rng)
        while True:
            self._dirty.clear()
            try:
                await self._write_once()
            except (NotFound, Conflict):  # it is gone, or another one has its name
                return
            except NavarchError as error:
                if not _may_pass(error):
                    _log.warning("status of pod %s/%s: %s", self._home.pod.namespace, self._home.pod.name, error)
                    return
                await self._home.site.clock.sleep(delays.next_delay())
            else:
                return

    async def _write_once(self) -> None:
        status = _wire(self._compute())
        if status == self._written:
            return
        pod = self._home.pod
        patch = StrategicPatch({"metadata": {"uid": pod.metadata.uid}, "status": status})
        found = await self._home.site.client.patch(Pod, pod.name, patch, namespace=pod.namespace, subresource="status")
        self._written = status
        if int(found.metadata.resource_version) > int(self._home.pod.metadata.resource_version):
            self._home.pod = found


def _may_pass(error: NavarchError) -> bool:
    return not isinstance(error, ApiError) or isinstance(error, (ServerError, TooManyRequests))


def _wire(status: PodStatus) -> dict[str, Any]:
    """The status as it is patched: lists that are merged by key say what is no longer there."""
    found: dict[str, Any] = to_builtins(status)
    found["conditions"] = [{**_CLEARED, **condition} for condition in found["conditions"]]
    for name in _WHOLE:
        if name in found:
            found[name] = [*found[name], {"$patch": "replace"}]
    return found
