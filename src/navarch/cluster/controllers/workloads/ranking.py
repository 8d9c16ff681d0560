"""Which of several pods is the least loss."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import cmp_to_key
from typing import Any

from navarch.api.strconv import parse_int64
from navarch.cluster.controllers.workloads.pods import is_active, is_ready, ready_since
from navarch.k8s.core.v1 import Pod

__all__ = ["least_loss_first"]

_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
_UNKNOWN_PHASE = 0


def least_loss_first(pods: Iterable[Pod], related: Iterable[Pod], now: datetime) -> list[Pod]:
    """The pods in the order in which they should be deleted.

    Those that do not run yet come first, then the cheaper ones, then those that share their node with most of `related`,
    then those that were ready, or are there, for a shorter time: within a factor of two it is left to chance.
    """
    crowds = Counter(pod.spec.node_name for pod in related if is_active(pod))
    return sorted(pods, key=cmp_to_key(_comparison(crowds, now)))


def _comparison(crowds: Counter[str | None], now: datetime) -> Callable[[Pod, Pod], int]:
    def compare(one: Pod, other: Pod) -> int:
        difference = _difference(_standing(one, crowds), _standing(other, crowds))
        difference = difference or _by_age(ready_since(one), ready_since(other), one, other, now)
        difference = difference or _difference(_restarts(other), _restarts(one))
        return difference or _by_age(
            one.metadata.creation_timestamp, other.metadata.creation_timestamp, one, other, now
        )

    return compare


def _standing(pod: Pod, crowds: Counter[str | None]) -> tuple[bool, int, bool, int, int]:
    """What counts before any age does; the smaller goes first."""
    phase = _PHASES.get(pod.status.phase or "", _UNKNOWN_PHASE)
    return bool(pod.spec.node_name), phase, is_ready(pod), _cost(pod), -crowds[pod.spec.node_name]


def _cost(pod: Pod) -> int:
    """What the user says a deletion costs; a text that is no number counts as none."""
    text = pod.annotations.get(_COST, "")
    digits = text.removeprefix("-")
    return (parse_int64(text) or 0) if digits.isdecimal() else 0


def _restarts(pod: Pod) -> tuple[int, int]:
    """Of its containers, and of its sidecars."""
    sidecars = {each.name for each in pod.spec.init_containers or () if each.restart_policy == "Always"}
    containers = pod.status.container_statuses or ()
    helpers = [each for each in pod.status.init_container_statuses or () if each.name in sidecars]
    return (
        max((each.restart_count for each in containers), default=0),
        max((each.restart_count for each in helpers), default=0),
    )


def _by_age(first: datetime | None, second: datetime | None, one: Pod, other: Pod, now: datetime) -> int:
    """The younger goes first; of two whose ages are alike, the one whose uid is smaller, which is as good as chance."""
    if first == second:
        return 0
    if first is None or second is None:
        return -1 if first is None else 1
    difference = _difference(_magnitude(now, first), _magnitude(now, second))
    return difference or _difference(one.metadata.uid, other.metadata.uid)


def _magnitude(now: datetime, then: datetime) -> int:
    nanoseconds = (now - then).total_seconds() * 1e9
    return int(math.log2(nanoseconds)) if nanoseconds > 0 else -1


def _difference(one: Any, other: Any) -> int:
    return int(one > other) - int(one < other)
