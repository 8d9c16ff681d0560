"""One reconcile of an EtcdCluster: observe, plan, execute one step, report."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

from etcd_operator.backup_keeper import BackupKeeper
from etcd_operator.etcd import Connect, Etcd
from etcd_operator.execute import NameTakenError, apply_services, execute
from etcd_operator.kinds import EtcdCluster, EtcdClusterStatus, IpFamily
from etcd_operator.manifests import client_urls, family_of, labels_of
from etcd_operator.manifests.listeners import AUTHORITIES
from etcd_operator.observation import Observation
from etcd_operator.observe import NodeHealth, observe
from etcd_operator.plan import ClusterPlan, decide
from etcd_operator.report import RECOVERY, STEPS, MemberCounts, report_status
from etcd_operator.tls import CredentialCache
from navarch import Context, Result
from navarch.client import Client
from navarch.errors import Conflict, EtcdError, Forbidden, Invalid, NotFound
from navarch.k8s.core.v1 import PersistentVolumeClaim, Pod, Service

_AGAIN: Final = 0.05
"""The delay of the next observation after a step."""
_AFTER_REFUSAL: Final = 0.5
_AFTER_DENIAL: Final = 5.0
_FRESH: Final = 10.0
"""An older observation is discarded: the process may have been suspended while another replica took over."""
_LONGEST_NOTE: Final = 1024
_TIDY_SECONDS: Final = 60.0
_SILENT: Final = frozenset({"Remember", "Settle"})


class Reconciler:
    """Reconciles EtcdClusters, one step at a time."""

    def __init__(self, connect: Connect, keyring: CredentialCache, keeper: BackupKeeper) -> None:
        self._connect = connect
        self._keyring = keyring
        self._keeper = keeper
        self._nodes = NodeHealth()
        self._counts = MemberCounts()

    async def reconcile(self, cluster: EtcdCluster, ctx: Context) -> Result | None:
        """Executes at most one step; requeues until the cluster matches its spec."""
        pods, claims = ctx.owned(Pod), ctx.owned(PersistentVolumeClaim)
        keys = await self._keyring.renew(cluster, ctx, {pod.annotations.get(AUTHORITIES, "") for pod in pods})
        cluster.status.authorities = keys.authorities or cluster.status.authorities
        async with self._connect(cluster, client_urls(pods), keys) as etcd:
            node_lost = partial(self._nodes.lost, ctx)
            seen = await observe(cluster, pods, claims, etcd, node_lost=node_lost, now=ctx.now())
            kept, others = await self._keeper.seen(cluster, ctx), await _foreign_objects(cluster, ctx)
            seen = replace(seen, kept=kept, others=others, faults=keys.faults)
            if not seen.reports:
                self._keyring.invalidate(cluster, ctx.now())
            looked, plan = ctx.now(), decide(cluster, seen)
            before = cluster.copy().status
            report_status(cluster, seen, plan)
            self._counts.record(cluster.namespace, cluster.name, _counted(cluster, seen), ctx.now())
            _announce(ctx, plan, before, cluster.status)
            refusals = [] if cluster.spec.paused else await apply_services(cluster, ctx, len(seen.voters))
            cluster.status.ip_family = await _family(cluster, ctx, pods)
            if cluster.spec.paused:
                return Result(after=plan.after)
            refusals += await self._kept(cluster, ctx)
            if refusals and not cluster.status.cluster_id:
                return Result(after=_refused(plan, cluster, ctx, "; ".join(refusals)))
            if abs((ctx.now() - looked).total_seconds()) > _FRESH:
                return Result(after=_AGAIN)
            after = await self._execute_step(plan, cluster, ctx, etcd)
            return Result(
                after=_refused(plan, cluster, ctx, "; ".join(refusals)) if refusals and not plan.step else after
            )

    async def _kept(self, cluster: EtcdCluster, ctx: Context) -> list[str]:
        """Applies the scheduled backups; returns the API server's refusal, which does not stop the members' reconcile."""
        try:
            await self._keeper.keep(cluster, ctx)
        except (Invalid, Forbidden) as error:
            return [f"the API server refused spec.backup: {error}"]
        return []

    async def _execute_step(self, plan: ClusterPlan, cluster: EtcdCluster, ctx: Context, etcd: Etcd) -> float:
        """Executes the plan's step; returns the delay until the next reconcile."""
        if plan.step is None:
            return plan.after
        try:
            await execute(plan.step, cluster, ctx, etcd, self._keeper)
        except EtcdError as error:
            cluster.status.next_step = f"{plan.message}; etcd refused for now: {error}"
            return _AFTER_REFUSAL
        except Conflict:
            return _AGAIN
        except NotFound:
            return _AFTER_REFUSAL
        except (Invalid, Forbidden) as error:
            return _refused(plan, cluster, ctx, f"the API server refused: {error}")
        except NameTakenError as error:
            return _refused(plan, cluster, ctx, str(error))
        _record_step(plan, ctx)
        return plan.after or _AGAIN

    async def remove_deleted(self, client: Client) -> None:
        """Removes the metrics of deleted clusters, until it is cancelled."""
        while True:
            await client.clock.sleep(_TIDY_SECONDS)
            self._counts.remove_deleted(client.clock.now())


async def _family(cluster: EtcdCluster, ctx: Context, pods: list[Pod]) -> IpFamily:
    """Returns the IP family; it is fixed once the cluster has formed, because a change restarts all members."""
    if cluster.status.cluster_id:
        return cluster.status.ip_family
    service = await ctx.get(Service, f"{cluster.name}-client")
    given = service.spec.cluster_ip if service is not None else None
    return family_of([*(pod.status.pod_ip or "" for pod in pods), given or ""]) or cluster.status.ip_family


async def _foreign_objects(cluster: EtcdCluster, ctx: Context) -> frozenset[str]:
    """Returns pods and claims with this cluster's labels that it does not own: an earlier cluster of its name may have left them."""
    own = {each.metadata.uid for kind in (Pod, PersistentVolumeClaim) for each in ctx.owned(kind)}
    labels = labels_of(cluster)
    pods, claims = await ctx.list(Pod, labels=labels), await ctx.list(PersistentVolumeClaim, labels=labels)
    return frozenset(each.name for each in (*pods, *claims) if each.metadata.uid not in own)


def _refused(plan: ClusterPlan, cluster: EtcdCluster, ctx: Context, why: str) -> float:
    """Reports the refusal once, as an event and in the status; returns the delay until the next attempt."""
    message = f"{plan.message}; {why}"
    if cluster.status.next_step != message:
        ctx.event("StepRefused", message[:_LONGEST_NOTE], type="Warning")
    cluster.status.next_step = message
    return _AFTER_DENIAL


def _counted(cluster: EtcdCluster, seen: Observation) -> dict[str, int]:
    ready, learning = len(cluster.status.members.ready), len(seen.members) - len(seen.voters)
    return {"ready": ready, "learning": learning, "unready": cluster.status.size - ready - learning}


def _announce(ctx: Context, plan: ClusterPlan, before: EtcdClusterStatus, now: EtcdClusterStatus) -> None:
    """Records a warning event once per plan that needs a person, and the duration of a degradation that is over."""
    if plan.stuck and before.next_step != plan.message:
        ctx.event(plan.reason, plan.message[:_LONGEST_NOTE], type="Warning")
    was = before.condition("Degraded")
    if was is not None and was.status == "True" and not now.is_true("Degraded"):
        RECOVERY.observe((ctx.now() - was.last_transition_time).total_seconds())


def _record_step(plan: ClusterPlan, ctx: Context) -> None:
    """Counts an executed step, and records an event and a log line for it."""
    STEPS.labels(type(plan.step).__name__).inc()
    if type(plan.step).__name__ not in _SILENT:
        ctx.event(
            type(plan.step).__name__,
            plan.message[:_LONGEST_NOTE],
            type="Warning" if plan.reason == "Recovering" else "Normal",
        )
        ctx.log.info(plan.message, step=type(plan.step).__name__)
