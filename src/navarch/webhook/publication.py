"""Brings webhook configurations and CRDs up to date, beside other replicas that do the same.

Replicas see a new CA in the Secret one after the other. The invariant: the published bundle never becomes older. A replica
reads the object, then the Secret, and writes the object only if it still has the version that was read. The bundle in the
object came from the Secret before the object was read, so the Secret that is read afterwards is at least as new.

Replicas of two releases may want different webhooks. What is missing, and a bundle, every replica writes. Anything else
that differs only the leader changes, so that two releases do not undo each other's declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from navarch.errors import AlreadyExists, Conflict, NotFound

_ATTEMPTS: Final = 10

Published = Mapping[str, Any]
"""A webhook configuration, or a CRD, as it is in the cluster."""


class TrustSource(Protocol):
    """The CAs that API servers have to trust."""

    @property
    def ca_bundle(self) -> bytes:
        """Returns the bundle as this replica knows it."""
        ...

    async def refresh(self) -> None:
        """Reads the bundle from where all replicas share it; `ca_bundle` is then not older. Raises `NavarchError`."""
        ...


class Publication(Protocol):
    """One object that names the webhooks and the CAs to trust."""

    name: str

    def cached(self) -> Published | None:
        """Returns the object as the cache has it; None if it has none."""
        ...

    async def read(self) -> Published | None:
        """Reads the object from the API server; None if it does not exist."""
        ...

    def is_current(self, found: Published | None, bundle: bytes) -> bool:
        """Reports whether nothing has to be written; for an empty bundle, that of the object does not matter."""
        ...

    def has_bundle(self, found: Published | None, bundle: bytes) -> bool:
        """Reports whether the object has this bundle, whatever else it has."""
        ...

    def is_foreign(self, found: Published | None) -> bool:
        """Reports whether the object may be the declaration of another release, which only the leader changes."""
        ...

    async def write(self, found: Published | None, bundle: bytes) -> None:
        """Writes the object if it is still the found one. Raises `Conflict`, `AlreadyExists` or `NotFound` if not."""
        ...


Changes = Callable[[Publication, bool], None]
"""Is called before a write; the second argument tells whether more than the bundle differs."""


async def bring_up_to_date(target: Publication, trust: TrustSource, *, leading: bool, changes: Changes) -> bool:
    """Writes the object if it is not as declared, and calls `changes` before; returns whether it has the bundle of `trust`."""
    cached = target.cached()
    if cached is not None and target.is_current(cached, trust.ca_bundle):
        return True
    for _ in range(_ATTEMPTS):
        found = await target.read()
        if target.is_current(found, trust.ca_bundle):
            return True
        await trust.refresh()  # after the object was read: see above
        bundle = trust.ca_bundle
        if target.is_current(found, bundle):
            return True
        if target.is_foreign(found) and not leading:
            return target.has_bundle(found, bundle)
        changes(target, not target.is_current(found, b""))
        try:
            await target.write(found, bundle)
        except (Conflict, AlreadyExists, NotFound):
            continue
        return True
    raise Conflict(
        f"{target.name}: expected to write it, but others changed it {_ATTEMPTS} times meanwhile; stop the other writer",
        code=409,
        reason="Conflict",
    )
