"""The DaemonSet controller."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from navarch.api import Key
from navarch.cache import Entry
from navarch.client import ALL
from navarch.cluster.controllers.workloads.adoption import adopters, claimed, selector_of
from navarch.cluster.controllers.workloads.daemonsets.plan import (
    HASH,
    DaemonPlan,
    RolloutLimits,
    Sight,
    fit_of,
    is_current,
    new_pod,
    node_of,
    oldest_first,
    to_keep_up,
    to_renew,
)
from navarch.cluster.controllers.workloads.pod_creation import create_pods, delete_pods, gathered, is_ending, part_of
from navarch.cluster.controllers.workloads.pods import (
    is_available,
    is_deleting,
    is_ready,
    is_terminal,
    seconds_until_available,
)
from navarch.cluster.controllers.workloads.revision_history import History, forget_versions, history_of
from navarch.controller import ByMetadata, Context, Lookup, Result, any_change
from navarch.errors import NavarchError
from navarch.k8s.apps.v1 import ControllerRevision, DaemonSet, DaemonSetStatus
from navarch.k8s.core.v1 import Node, Pod
from navarch.operator import Operator

_FIRST = timedelta(seconds=1)
_LONGEST = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class _Delay:
    length: timedelta
    until: datetime

    @property
    def forgotten_at(self) -> datetime:
        return self.until + self.length


class FailureDelays:
    """Backoff of failed pods by DaemonSet and node; it restarts after a time without failures."""

    def __init__(self) -> None:
        self._delays: dict[tuple[str, str], _Delay] = {}

    def may_replace(self, uid: str, node: str, now: datetime) -> bool:
        """Returns True if a pod that failed may be replaced now; if so, the next one has to wait for longer."""
        known = self._delays.get((uid, node))
        if known is not None and now < known.until:
            return False
        self._delays = {key: delay for key, delay in self._delays.items() if now < delay.forgotten_at}
        length = _FIRST if (uid, node) not in self._delays or known is None else min(known.length * 2, _LONGEST)
        self._delays[uid, node] = _Delay(length, now + length)
        return True

    def seconds_left(self, uid: str, now: datetime) -> float | None:
        """When the next pod of the DaemonSet may be replaced; None if none has to wait."""
        waiting = [delay.until for (whose, _), delay in self._delays.items() if whose == uid and delay.until > now]
        return (min(waiting) - now).total_seconds() if waiting else None


_BURST = 250
_AT_ONCE = Result(after=0)


def declare_daemon_sets(operator: Operator) -> None:
    """Adds the controller of DaemonSets."""
    operator.controller(
        DaemonSet,
        owns=(Pod, ControllerRevision),
        watches={Pod: adopters(DaemonSet), Node: ByMetadata(_everybody)},
        when=any_change,
        name="daemonset",
    )(_Daemons().reconcile)


def _everybody(_: Entry, lookup: Lookup) -> Iterable[Key]:
    return [Key(each.namespace, each.name) for each in lookup.list(DaemonSet)]


class _Daemons:
    """Reconciles DaemonSets; keeps the backoff of failed pods per node."""

    def __init__(self) -> None:
        self._failures = FailureDelays()

    async def reconcile(self, daemon_set: DaemonSet, ctx: Context) -> Result | None:
        """Brings every node what it should have."""
        selector = selector_of(daemon_set.spec.selector)
        if not selector.requirements:
            note = "This daemon set is selecting all pods. A non-empty selector is required."
            ctx.event("SelectingAll", note, type="Warning")
            return None
        if not await gathered(ctx, daemon_set, daemon_set.status.current_number_scheduled):
            return None
        history = await history_of(daemon_set, selector, ctx, hash_label=HASH)
        nodes = await ctx.list(Node, namespace=ALL)
        look = partial(_sight, daemon_set, nodes, history.newest.labels[HASH])
        plan = self._plan(daemon_set, look(await claimed(ctx, daemon_set, Pod, selector), ctx.now()), ctx)
        failure = await _carried_out(plan, daemon_set, history.newest.labels[HASH], ctx)
        pods = [pod for pod in ctx.owned(Pod) if selector.matches(pod.labels)]
        daemon_set.status = _status(daemon_set, look(pods, ctx.now()), history)
        if failure is not None:
            raise failure
        await _forget(daemon_set, history, pods, ctx)
        return _AT_ONCE if plan else self._again(daemon_set, pods, ctx)

    def _plan(self, daemon_set: DaemonSet, sight: Sight, ctx: Context) -> DaemonPlan:
        """Keeps up first; only when there is nothing to do for that, pods are renewed."""
        limits = _limits(daemon_set, sight.wanted)
        may_replace = partial(self._may_replace, daemon_set, ctx)
        plan = to_keep_up(sight, surging=limits.surge > 0, may_replace=may_replace)
        return to_renew(sight, limits) if not plan and _is_rolling(daemon_set) else plan

    def _may_replace(self, daemon_set: DaemonSet, ctx: Context, node: str, pod: Pod) -> bool:
        if not self._failures.may_replace(daemon_set.metadata.uid, node, ctx.now()):
            return False
        note = f"Found failed daemon pod {pod.namespace}/{pod.name} on node {node}, will try to kill it"
        ctx.event("FailedDaemonPod", note, type="Warning")
        return True

    def _again(self, daemon_set: DaemonSet, pods: Sequence[Pod], ctx: Context) -> Result | None:
        """When a pod has been ready for long enough, or may be replaced."""
        now = ctx.now()
        waits = (
            self._failures.seconds_left(daemon_set.metadata.uid, now),
            seconds_until_available(pods, daemon_set.spec.min_ready_seconds, now),
        )
        due = [seconds for seconds in waits if seconds is not None]
        return Result(after=min(due)) if due else None


def _sight(
    daemon_set: DaemonSet, nodes: Sequence[Node], template_hash: str, pods: Sequence[Pod], now: datetime
) -> Sight:
    by_node: dict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        node = node_of(pod)
        if node is not None and not (is_terminal(pod) and is_deleting(pod)):
            by_node[node].append(pod)
    wait = daemon_set.spec.min_ready_seconds
    return Sight(
        fits={node.name: fit_of(daemon_set, node) for node in nodes},
        pods=by_node,
        is_current=partial(is_current, daemon_set, template_hash),
        is_available=lambda pod: is_available(pod, wait, now),
    )


def _is_rolling(daemon_set: DaemonSet) -> bool:
    strategy = daemon_set.spec.update_strategy
    return strategy is None or strategy.type != "OnDelete"


def _limits(daemon_set: DaemonSet, wanted: int) -> RolloutLimits:
    """Returns how many nodes may be without a pod, or with two, while pods are renewed; never none of both."""
    strategy = daemon_set.spec.update_strategy
    rolling = strategy.rolling_update if strategy and _is_rolling(daemon_set) else None
    if rolling is None:
        return RolloutLimits(surge=0, unavailable=1)
    surge = part_of(rolling.max_surge, wanted, up=True)
    unavailable = part_of(rolling.max_unavailable, wanted, up=True)
    return RolloutLimits(surge, unavailable if surge or unavailable else 1)


async def _carried_out(
    plan: DaemonPlan, daemon_set: DaemonSet, template_hash: str, ctx: Context
) -> NavarchError | None:
    """What went wrong, if anything."""
    try:
        await create_pods(ctx, [partial(new_pod, daemon_set, template_hash, node) for node in plan.create[:_BURST]])
        await delete_pods(ctx, plan.delete[:_BURST])
    except NavarchError as error:
        return None if is_ending(error) else error
    return None


def _status(daemon_set: DaemonSet, sight: Sight, history: History) -> DaemonSetStatus:
    runs = [node for node, fit in sight.fits.items() if fit.runs]
    firsts = [oldest_first(pods)[0] for node in runs if (pods := sight.pods.get(node))]
    available = sum(map(sight.is_available, firsts))
    return DaemonSetStatus(
        desired_number_scheduled=len(runs),
        current_number_scheduled=len(firsts),
        number_misscheduled=sum(bool(sight.pods.get(node)) and not fit.runs for node, fit in sight.fits.items()),
        number_ready=sum(map(is_ready, firsts)),
        updated_number_scheduled=sum(map(sight.is_current, firsts)) or None,
        number_available=available or None,
        number_unavailable=(len(runs) - available) or None,
        observed_generation=daemon_set.metadata.generation,
        collision_count=history.collisions or None,
        conditions=daemon_set.status.conditions,
    )


async def _forget(daemon_set: DaemonSet, history: History, pods: Sequence[Pod], ctx: Context) -> None:
    """A version is kept while there are pods of it."""
    hashes = {pod.labels.get(HASH) for pod in pods}
    live = {each.name for each in history.versions if each.labels.get(HASH) in hashes}
    limit = daemon_set.spec.revision_history_limit
    await forget_versions(history.versions, live | {history.newest.name}, limit, ctx)
