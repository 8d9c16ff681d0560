"""The namespace of a deployment: whether it can be used, and what is in it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final

from navarch._base.tasks import gather_all
from navarch.api import Dynamic, Kind
from navarch.client import ApiResource, Client, MetadataOnly, PartialObjectMetadata
from navarch.errors import ApiError, DeployError, MethodNotAllowed, NotFound
from navarch.project.deploy.release import ObjectId

__all__ = ["NAMESPACES", "contents", "find_namespace", "until_deleted"]

NAMESPACES: Final = Kind("", "v1", "Namespace", plural="namespaces", namespaced=False)
_AT_ONCE: Final = 8
_PAUSE_SECONDS: Final = 0.2
_OF_EVERY_NAMESPACE: Final = frozenset(
    {ObjectId("", "ServiceAccount", "", "default"), ObjectId("", "ConfigMap", "", "kube-root-ca.crt")}
)
_DERIVED: Final = frozenset({"Endpoints", "EndpointSlice", "Event", "PodMetrics"})
"""Kinds whose objects the cluster writes, and deletes by itself."""


async def find_namespace(
    client: Client, name: str, seconds: float, say: Callable[[str], None] = lambda _: None
) -> Dynamic | None:
    """Returns the namespace, None if there is none. Waits for one that is being deleted.

    Raises `DeployError` if that takes longer than `seconds`; it says what holds the namespace.
    """
    found = await _get(client, name)
    if found is None or not found.metadata.get("deletionTimestamp"):
        return found
    say(f"namespace {name} is being deleted: waiting until it is gone")
    await until_deleted(client, name, seconds)
    return await _get(client, name)


async def until_deleted(client: Client, name: str, seconds: float) -> None:
    """Returns when the namespace that is being deleted is gone. Raises `DeployError` after `seconds`, with what holds it."""
    limit = client.clock.monotonic() + seconds
    while (found := await _get(client, name)) is not None and found.metadata.get("deletionTimestamp"):
        if client.clock.monotonic() >= limit:
            raise DeployError(
                f"namespace {name}: expected one that stays, got one that is being deleted since "
                f"{found.metadata['deletionTimestamp']} and is not gone after {seconds:g} s{_held_by(found)}; wait until it is "
                f"gone and run the command again, or use another one: --namespace"
            )
        await client.clock.sleep(_PAUSE_SECONDS)


async def _get(client: Client, name: str) -> Dynamic | None:
    try:
        return await client.get(NAMESPACES, name)
    except NotFound:
        return None


def _held_by(found: Dynamic) -> str:
    conditions = (found.get("status") or {}).get("conditions") or ()
    messages = [each.get("message", "") for each in conditions if each.get("status") == "True"]
    return f" ({'; '.join(filter(None, messages))})" if any(messages) else ""


async def contents(
    client: Client, namespace: str, known: Iterable[ObjectId], *, without: Collection[str] = ()
) -> list[str]:
    """Returns the objects of a namespace that are neither known, nor parts of others, nor in every namespace.

    Kinds in `without` do not count. A kind that cannot be listed is named as well: the namespace must not be deleted with objects that nobody has seen.
    """
    served: dict[tuple[str, str], ApiResource] = {}
    for each in await client.discovery.all():
        is_kept = each.kind.namespaced and {"list", "delete"} <= {*each.verbs}
        if is_kept and each.kind.kind not in {*without, *_DERIVED}:
            served.setdefault((each.kind.group, each.kind.plural), each)
    lists = await gather_all(
        [_NamespaceContent(client, each, namespace).read for each in served.values()], at_once=_AT_ONCE
    )
    wanted = {each._replace(namespace="") for each in known} | _OF_EVERY_NAMESPACE
    return sorted({str(each) for found in lists for each in found if _unknown(each, wanted)})


def _unknown(found: ObjectId | str, wanted: set[ObjectId] | frozenset[ObjectId]) -> bool:
    return isinstance(found, str) or found not in wanted


class _NamespaceContent:
    """The objects of one resource in one namespace."""

    def __init__(self, client: Client, resource: ApiResource, namespace: str) -> None:
        self._client = client
        self._resource = resource
        self._namespace = namespace

    async def read(self) -> list[ObjectId | str]:
        """Returns the objects that nobody owns; a text for a resource that cannot be listed."""
        kind = self._resource.kind
        try:
            found = await self._client.list(MetadataOnly(kind), namespace=self._namespace)
        except (NotFound, MethodNotAllowed):
            return []
        except ApiError as error:
            return [f"{kind.plural} that cannot be listed ({error.reason or error.code})"]
        return [ObjectId(kind.group, kind.kind, "", each.name) for each in found if not _is_part(each)]


def _is_part(found: PartialObjectMetadata) -> bool:
    return bool(found.metadata.owner_references)
