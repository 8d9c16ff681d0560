"""Bringing a custom kind to a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from navarch._base.backoff import Backoff, Delays
from navarch.api import Dynamic, Kind
from navarch.client.reads import Reads
from navarch.client.transport import Request
from navarch.client.writes import Writes
from navarch.errors import ApiError, DeadlineError, Forbidden, InvalidValueError, NotFound

__all__ = ["Installs"]

_CRD = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", plural="customresourcedefinitions", namespaced=False
)
_PACE = Backoff(initial=0.02, factor=1.5, maximum=0.5)


class Installs(Reads, Writes):
    """Custom resource definitions, until they are served."""

    async def install(self, crd: Mapping[str, Any], *, resource_version: str | None = None) -> None:
        """Applies a CustomResourceDefinition and returns when the server serves all of its versions; a dry run does not wait.

        Raises `DeadlineError` if that takes longer than the client's time limit, `Invalid` if the definition is refused,
        and, where a `resource_version` is given, `Conflict` if that is not the version of the one that is there.
        """
        _require_definition(crd)
        applied = await self.apply(Dynamic(crd), force=True, resource_version=resource_version)
        if self.options.dry_run:
            return
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
                    f"{await self._obstacle(crd.name)}"
                )
            await self._caller.clock.sleep(delays.next_delay())

    async def _obstacle(self, name: str) -> str:
        """What the definition's own conditions say; where they cannot be read, who can show them."""
        try:
            conditions = (await self.get(_CRD, name)).get("status", {}).get("conditions", [])
        except ApiError:
            conditions = []
        broken = [condition for condition in conditions if condition["status"] == "False"]
        found = [f"{condition['type']} is False: {condition.get('message')}" for condition in broken]
        return "; ".join(found) or f"`kubectl describe crd {name}` shows its conditions"

    async def _is_served(self, request: Request, kind: Kind) -> bool:
        try:
            await self._caller.call(request, f"list {kind.resource}")
        except NotFound:
            return False
        except Forbidden:  # said before it is looked whether the kind is served
            return await self._is_discovered(kind)
        return True

    async def _is_discovered(self, kind: Kind) -> bool:
        """What the server says of itself may be read by everybody, also by those who may not list all objects."""
        try:
            served = await self.discovery.resources(kind.api_version, fresh=True)
        except NotFound:
            return False
        return any(resource.kind.plural == kind.plural for resource in served)


def _require_definition(given: object) -> None:
    got = given.get("kind") if isinstance(given, Mapping) else given
    if got != _CRD.kind:
        raise InvalidValueError(
            f"expected a CustomResourceDefinition as a mapping, got {got!r}; write install(navarch.schema.crd(MyKind))"
        )
