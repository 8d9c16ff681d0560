"""Bringing a custom kind to a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from navarch._base.backoff import Backoff, Delays
from navarch.api import Dynamic, Kind
from navarch.client.transport import Request
from navarch.client.writes import Writes
from navarch.errors import DeadlineError, InvalidValueError, NotFound

__all__ = ["Installs"]

_PACE = Backoff(initial=0.02, factor=1.5, maximum=0.5)


class Installs(Writes):
    """Custom resource definitions, until they are served."""

    async def install(self, crd: Mapping[str, Any]) -> None:
        """Applies a CustomResourceDefinition and returns when the server serves all of its versions.

        Raises `DeadlineError` if that takes longer than the client's time limit, `Invalid` if the definition is refused.
        """
        if not isinstance(crd, Mapping):
            raise InvalidValueError(
                f"expected a CustomResourceDefinition as a mapping, got {crd!r}; write install(navarch.schema.crd(MyKind))"
            )
        applied = await self.apply(Dynamic(crd), force=True)
        self.discovery.forget()
        limit = self._caller.clock.monotonic() + self.options.timeout
        for version in applied["spec"]["versions"]:
            if version["served"]:
                await self._until_served(applied, version["name"], limit)

    async def _until_served(self, crd: Dynamic, version: str, limit: float) -> None:
        """A definition is accepted a moment before it is served; nothing but asking tells when."""
        spec = crd["spec"]
        kind = Kind(spec["group"], version, spec["names"]["kind"], plural=spec["names"]["plural"])
        request = Request(method="GET", path=kind.path(), query={"limit": "1"}, timeout=self.options.timeout)
        delays = Delays(_PACE, self._caller.rng)
        while not await self._is_served(request, kind):
            if self._caller.clock.monotonic() > limit:
                raise DeadlineError(
                    f"install {crd.name}: expected the server to serve {kind} within {self.options.timeout:g} s; "
                    f"`kubectl describe crd {crd.name}` shows its conditions"
                )
            await self._caller.clock.sleep(delays.next_delay())

    async def _is_served(self, request: Request, kind: Kind) -> bool:
        try:
            await self._caller.call(request, f"list {kind.resource}")
        except NotFound:
            return False
        return True
