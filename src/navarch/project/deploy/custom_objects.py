"""Deletes all objects of the kinds that a deployment defines, while its operator still removes their finalizers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from navarch._base.tasks import gather_all
from navarch.api import Kind
from navarch.client import ALL, Client, MetadataOnly, PartialObjectMetadata
from navarch.errors import DeployError, NotFound
from navarch.project.crd_installation import served_kinds
from navarch.project.manifests.model import Json

__all__ = ["delete_custom_objects"]

_AT_ONCE: Final = 16
_PAUSE_SECONDS: Final = 0.2
_SHOWN: Final = 5


async def delete_custom_objects(
    client: Client, crds: Sequence[Json], seconds: float, say: Callable[[str], None] = lambda _: None
) -> None:
    """Deletes the objects, and returns when all are gone.

    Raises `DeployError` after `seconds`: it names the objects that are left, with their finalizers and the remedy.
    """
    limit = client.clock.monotonic() + seconds
    kinds = [kind for crd in crds for kind in served_kinds(crd)]
    while left := [each for kind in kinds for each in await _objects(client, kind)]:
        if client.clock.monotonic() >= limit:
            raise DeployError(_stuck(left, seconds))
        new = [(kind, each) for kind, each in left if each.metadata.deletion_timestamp is None]
        await gather_all([partial(_delete, client, kind, each) for kind, each in new], at_once=_AT_ONCE)
        say(f"waiting until the operator has cleaned up {len(left)} custom objects")
        await client.clock.sleep(_PAUSE_SECONDS)


async def _objects(client: Client, kind: Kind) -> list[tuple[Kind, PartialObjectMetadata]]:
    try:
        return [(kind, each) for each in await client.list(MetadataOnly(kind), namespace=ALL)]
    except NotFound:  # its CRD is gone
        return []


async def _delete(client: Client, kind: Kind, found: PartialObjectMetadata) -> None:
    try:
        await client.delete(MetadataOnly(kind), found.name, namespace=found.namespace or None)
    except NotFound:
        return


def _stuck(left: Sequence[tuple[Kind, Any]], seconds: float) -> str:
    named = [
        f"{kind.kind} {each.namespace + '/' if each.namespace else ''}{each.name} (finalizers: "
        f"{', '.join(each.metadata.finalizers or ()) or 'none'})"
        for kind, each in left[:_SHOWN]
    ]
    more = f", and {len(left) - _SHOWN} more" if len(left) > _SHOWN else ""
    kind, first = left[0]
    place = f" -n {first.namespace}" if first.namespace else ""
    return (
        f"expected the custom objects to be gone within {seconds:g} s, but {len(left)} are left: {', '.join(named)}{more}; the "
        f"operator still runs, and its log says what it waits for (navarch status). Run the command again once they are gone, "
        f"or give up what the finalizers protect: kubectl patch {kind.resource}{place} {first.name} --type merge "
        f"""-p '{{"metadata":{{"finalizers":null}}}}'"""
    )
