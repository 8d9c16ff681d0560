"""Looking at a cluster until it is as expected."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, TypeVar

from chaos.waiting import until_none
from navarch._base.clock import SystemClock
from navarch.client import Client
from navarch.errors import NotFound
from navarch.k8s.core.v1 import Event, Pod

T = TypeVar("T")

SECONDS = 60.0


async def until(
    read: Callable[[], Awaitable[T]], holds: Callable[[T], Any], what: str, *, seconds: float = SECONDS
) -> T:
    """What `read` gives, once it `holds`."""
    found: list[T] = []

    async def look() -> str | None:
        try:
            found[:] = [await read()]
        except NotFound as error:
            return f"expected {what}, got {error}"
        return None if holds(found[0]) else f"expected {what}, got {found[0]}"

    await until_none(look, seconds=seconds)
    return found[0]


async def for_a_while(
    read: Callable[[], Awaitable[T]], holds: Callable[[T], Any], what: str, *, seconds: float
) -> None:
    """Fails if it does not hold at any time within so many seconds: for what must not happen."""
    clock = SystemClock()
    end = clock.monotonic() + seconds
    while clock.monotonic() < end:
        found = await read()
        assert holds(found), f"expected {what}, got {found}"
        await clock.sleep(0.05)


async def until_gone(client: Client, what: Any, name: str) -> None:
    """Returns when there is no such object any more."""

    async def look() -> str | None:
        try:
            found = await client.get(what, name)
        except NotFound:
            return None
        return f"expected {name} to be gone, got {found}"

    await until_none(look, seconds=SECONDS)


async def pods_of(client: Client, labels: str = "") -> list[Pod]:
    """All pods, those that are to go included, by name."""
    return sorted([pod async for pod in client.list(Pod, labels=labels)], key=lambda pod: pod.name)


async def active_pods(client: Client, labels: str = "") -> list[Pod]:
    """The pods that are to stay."""
    return [
        pod
        for pod in await pods_of(client, labels)
        if pod.metadata.deletion_timestamp is None and pod.status.phase not in {"Succeeded", "Failed"}
    ]


def ready_since(pod: Pod) -> datetime:
    """When it became so, in whole seconds."""
    (since,) = [each.last_transition_time for each in pod.status.conditions or () if each.type == "Ready"]
    assert since is not None
    return since


async def until_event(client: Client, name: str, reason: str, message: str) -> Event:
    """The event about the object of that name whose message begins so."""

    async def events() -> list[Event]:
        return [event async for event in client.list(Event) if event.involved_object.name == name]

    def matching(found: list[Event]) -> list[Event]:
        return [each for each in found if each.reason == reason and (each.message or "").startswith(message)]

    return matching(await until(events, matching, f"an event {reason} about {name}: {message}"))[0]
