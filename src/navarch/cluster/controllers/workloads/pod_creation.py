"""Creates and deletes pods in batches with events; computes percentages of replicas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

from navarch._base.gather import gather_all
from navarch.api import Object, ObjectMeta
from navarch.api.integers import parse_int64
from navarch.client.target import Readable
from navarch.controller import Context
from navarch.errors import ApiError, Forbidden, NavarchError
from navarch.k8s.core.v1 import Pod, PodTemplateSpec

_FEW = 50
_SECONDS_PER_CHILD = 0.0001
_MOST_SECONDS = 1.0


async def gathered(ctx: Context, owner: Object, children: int | None) -> bool:
    """Waits for a moment that grows with the number of children, so that looking at them takes a small part of the time.

    What is read afterwards has whatever changed meanwhile: the work grows with the children, not with their square.
    The number is what a status says, and a status may say anything: the moment has an end. Returns whether the owner still asks for the same; if it does not, its change has called the reconciler anew.
    """
    if children is None or children <= _FEW:
        return True
    await ctx.client.clock.sleep(min(children * _SECONDS_PER_CHILD, _MOST_SECONDS))
    found = await ctx.get(cast(Readable[Object], type(owner)), owner.name)
    return found is not None and _asked(found) == _asked(owner)


def _asked(owner: Object) -> tuple[str, int, bool]:
    metadata = owner.metadata
    return metadata.uid, metadata.generation, metadata.deletion_timestamp is None


def part_of(value: int | str | None, whole: int, *, up: bool) -> int:
    """The number that is meant, of `whole`; a fraction of one counts as one, or if not `up` as none.

    >>> part_of("25%", 10, up=True), part_of("25%", 10, up=False), part_of(3, 10, up=True)
    (3, 2, 3)
    """
    if not isinstance(value, str):
        return value or 0
    percent = parse_int64(value.removesuffix("%")) or 0
    return -(-percent * whole // 100) if up else percent * whole // 100


def fenceposts(surge: int | str | None, unavailable: int | str | None, replicas: int) -> tuple[int, int]:
    """Returns how many pods there may be beyond `replicas`, and how many may be missing; never none of both: nothing could move.

    >>> fenceposts("25%", "25%", 3), fenceposts(0, "10%", 3)
    ((1, 0), (0, 1))
    """
    more, fewer = part_of(surge, replicas, up=True), part_of(unavailable, replicas, up=False)
    return (more, fewer) if more or fewer else (0, 1)


_AT_ONCE = 64
_TOLD_ONE_BY_ONE = 10
"""As many of one burst are told one by one; the rest is summed up, as Kubernetes does."""


def pod_of(template: PodTemplateSpec, *, prefix: str = "", name: str = "") -> Pod:
    """A pod as the template says, with a name that begins with the prefix, or with that very name."""
    asked = template.metadata
    metadata = ObjectMeta(
        name=name,
        generate_name=prefix,
        labels=dict(asked.labels),
        annotations=dict(asked.annotations),
        finalizers=list(asked.finalizers),
    )
    return Pod(metadata=metadata, spec=template.spec).copy()


def is_ending(error: Exception) -> bool:
    """Returns True if nothing can be made because the whole namespace is being deleted."""
    return isinstance(error, Forbidden) and any(cause.reason == "NamespaceTerminating" for cause in error.causes)


def slow_start_batches(count: int) -> list[int]:
    """Returns how many to make at a time: one, then twice as many each time, so that what cannot succeed fails once.

    >>> slow_start_batches(10)
    [1, 2, 4, 3]
    """
    batches, size = [], 1
    while count > 0:
        batches.append(min(size, count))
        count -= batches[-1]
        size *= 2
    return batches


async def create_pods(ctx: Context, pods: Sequence[Callable[[], Pod]]) -> list[Pod]:
    """Makes the pods, slowly at first; raises the first error, and leaves those that were not begun."""
    made: list[Pod] = []
    for size in slow_start_batches(len(pods)):
        batch = pods[len(made) : len(made) + size]
        work = [partial(_created, ctx, pod, len(made) + number) for number, pod in enumerate(batch)]
        made.extend(await gather_all(work, at_once=_AT_ONCE))
    return made


async def _created(ctx: Context, make: Callable[[], Pod], number: int) -> Pod:
    try:
        pod = await ctx.create(make())
    except NavarchError as error:
        if not is_ending(error):
            ctx.event("FailedCreate", f"Error creating: {reason_of(error)}", type="Warning")
        raise
    tell_some(ctx, "SuccessfulCreate", f"Created pod: {pod.name}", number)
    return pod


async def delete_pods(ctx: Context, pods: Sequence[Pod]) -> None:
    """Deletes all of them, also when one cannot be; raises the first error."""
    await gather_all([partial(delete_pod, ctx, pod, number) for number, pod in enumerate(pods)], at_once=_AT_ONCE)


async def delete_pod(ctx: Context, pod: Pod, number: int = 0) -> None:
    """Deletes the pod, if it is still there."""
    try:
        there = await ctx.delete(pod)
    except NavarchError as error:
        ctx.event("FailedDelete", f"Error deleting: {reason_of(error)}", type="Warning")
        raise
    if there:
        tell_some(ctx, "SuccessfulDelete", f"Deleted pod: {pod.name}", number)


def tell_some(ctx: Context, reason: str, note: str, number: int) -> None:
    """Records what happened to one of many; `number` is how many were told before it."""
    if number < _TOLD_ONE_BY_ONE:
        ctx.event(reason, note)
    elif number == _TOLD_ONE_BY_ONE:
        ctx.event(reason, f"(combined from similar events): {note}")


def reason_of(error: Exception) -> str:
    """What the server said: an error's text begins with what was asked of it."""
    return str(error).partition(": ")[2] if isinstance(error, ApiError) else str(error)


def prefix_of(owner: Object) -> str:
    """What the names of an owner's pods begin with."""
    return f"{owner.name}-"
