"""The reconciler of Memcached, on a cluster inside this process."""

from navarch import Operator, testing

from memcached_operator.api.cache.v1alpha1.memcached import Memcached


async def test_memcached_becomes_ready(cluster: testing.Cluster, operator: Operator) -> None:
    """A Memcached is reconciled, and its status says so."""
    async with cluster.run(operator):
        await cluster.apply(Memcached(name="sample"))
        await cluster.until(Memcached, "sample", lambda it: it.status.conditions)
