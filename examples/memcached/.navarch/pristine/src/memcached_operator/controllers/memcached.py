"""Reconciles Memcached."""

from navarch import Context

from memcached_operator import operator
from memcached_operator.api.cache.v1alpha1.memcached import Memcached


@operator.controller(Memcached)
async def reconcile(memcached: Memcached, ctx: Context) -> None:
    """Makes the cluster as the Memcached asks; called for every change of it, and of what it owns or reads."""
    memcached.status.set_condition("Ready", True, "Reconciled")
