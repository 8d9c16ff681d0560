"""Adopts objects that match an owner's selector and have no controller; releases those that no longer match."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar

from navarch.api import Key, Labels, Object, owner_reference, to_builtins
from navarch.api.selectors import Operator as LabelOperator
from navarch.cache import Entry
from navarch.client.target import Readable
from navarch.cluster.controllers.workloads.pods import is_deleting
from navarch.controller import ByMetadata, Context, Lookup, Result, Retry, any_change
from navarch.controller.declaration import Watchable
from navarch.errors import NotFound
from navarch.k8s.meta.v1 import LabelSelector
from navarch.operator import Operator

T = TypeVar("T", bound=Object)


_BY_VALUE = (LabelOperator.EQUALS, LabelOperator.DOUBLE_EQUALS)


def selector_of(selector: LabelSelector | Mapping[str, str] | None) -> Labels:
    """The labels that are meant; nothing if none is given. A ReplicationController's are labels by their values."""
    return Labels.of(selector) if isinstance(selector, Mapping) else Labels.from_wire(to_builtins(selector))


def matcher_of(selector: Labels) -> Callable[[Mapping[str, str]], bool]:
    """`selector.matches`; of the usual selector, which asks for labels by their values, at once for thousands of objects."""
    wanted = {each.key: each.values[0] for each in selector.requirements if each.operator in _BY_VALUE}
    if len(wanted) < len(selector.requirements):
        return selector.matches
    return lambda labels: wanted.items() <= labels.items()


def adopters(what: Readable[Any]) -> ByMetadata:
    """A mapping from an object that nobody controls to those of the kind `what` whose selector it matches."""

    def mapped(entry: Entry, lookup: Lookup) -> Iterable[Key]:
        if entry.controller is not None:
            return ()
        labels = entry.labels
        return [
            Key(owner.namespace, owner.name)
            for owner in lookup.list(what, namespace=entry.key.namespace)
            if (selector := selector_of(owner.spec.selector)).requirements and selector.matches(labels)
        ]

    return ByMetadata(mapped)


def _everything(_: Object) -> bool:
    return True


async def claimed(
    ctx: Context,
    owner: Object,
    what: type[T],
    selector: Labels,
    *,
    fits: Callable[[T], bool] = _everything,
    adopts: Callable[[T], bool] = _everything,
    finalizer: str = "",
) -> list[T]:
    """The objects that are the owner's from now on; an owner that is being deleted neither takes nor gives.

    What does not `fits` is not the owner's, whatever its labels; of what is nobody's, it takes in what it `adopts`. While
    they are the owner's, they have its finalizer, if there is one.
    """
    matches = matcher_of(selector)

    def is_meant(found: T) -> bool:
        return matches(found.metadata.labels) and fits(found)

    owned = ctx.owned(_readable(what))
    kept = [found for found in owned if is_meant(found)]
    if is_deleting(owner):
        return kept
    if len(kept) < len(owned):
        for found in owned:
            if not is_meant(found):
                await _release(ctx, owner, found, finalizer)
    orphans = ctx.orphans(_readable(what), selector)
    meant = [each for each in orphans if fits(each) and adopts(each)]
    return kept + await _adopted(ctx, owner, meant, finalizer)


async def _adopted(ctx: Context, owner: Object, orphans: Iterable[T], finalizer: str) -> list[T]:
    """Whoever stays from now on. The owner may be gone already, which only the server knows for sure."""
    staying = [found for found in orphans if not is_deleting(found)]
    if not staying:
        return []
    await _refuse_gone(ctx, owner)
    return [await _adopt(ctx, owner, found, finalizer) for found in staying]


async def _refuse_gone(ctx: Context, owner: Object) -> None:
    live = await ctx.client.get(_readable(type(owner)), owner.name, namespace=owner.namespace)
    if live.metadata.uid != owner.metadata.uid or is_deleting(live):
        raise Retry(f"{owner.kind} {owner.name} is going, or another one by now: it adopts nothing")


async def _adopt(ctx: Context, owner: Object, found: T, finalizer: str) -> T:
    references = [*found.metadata.owner_references, owner_reference(owner)]
    changes = {"ownerReferences": to_builtins(references)}
    if finalizer and finalizer not in found.metadata.finalizers:
        changes["finalizers"] = [*found.metadata.finalizers, finalizer]
    return await ctx.patch(found, {"metadata": changes})


async def _release(ctx: Context, owner: Object, found: Object, finalizer: str) -> None:
    references = [each for each in found.metadata.owner_references if each.uid != owner.metadata.uid]
    changes = {"ownerReferences": to_builtins(references) or None}
    if finalizer in found.metadata.finalizers:
        changes["finalizers"] = [each for each in found.metadata.finalizers if each != finalizer] or None
    with contextlib.suppress(NotFound):
        await ctx.patch(found, {"metadata": changes})


def _readable(what: type[T]) -> Readable[T]:
    return what  # type: ignore[return-value]  # every class of objects is one


def declare_owner(
    operator: Operator, kind: type[T], child: Watchable, reconcile: Callable[[T, Context], Awaitable[Result | None]]
) -> None:
    """Adds a controller of the kind, under its name. It is told of every change, also of an owner that is being deleted."""
    operator.controller(
        kind,
        owns=(child,),
        watches={child: adopters(kind)},
        when=any_change,
        until_gone=True,
        name=kind.__name__.lower(),
    )(reconcile)
