"""The controllers of what owns others by a selector: they are told of what they own, and of what they could take in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from navarch.api import Object
from navarch.cluster.controllers.workloads.claims import adopters
from navarch.controller import Context, Result, any_change
from navarch.controller.declaration import Watchable
from navarch.operator import Operator

__all__ = ["declare_owner"]

T = TypeVar("T", bound=Object)


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
