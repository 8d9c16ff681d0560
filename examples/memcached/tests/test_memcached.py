"""The reconciler of Memcached, on a cluster inside this process."""

import pytest
from navarch import Operator
from navarch.errors import Invalid
from navarch.testing import Cluster

from memcached_operator.api.cache.v1alpha1.memcached import Memcached, MemcachedSpec


async def test_memcached_has_the_pods_that_it_asks_for(cluster: Cluster, operator: Operator) -> None:
    """Also when it asks for more of them; it goes when it is deleted."""
    async with cluster.run(operator):
        await cluster.apply(Memcached(name="cache", spec=MemcachedSpec(size=2)))
        await cluster.until(Memcached, "cache", lambda it: len(it.status.nodes) == 2)
        await cluster.apply(Memcached(name="cache", spec=MemcachedSpec(size=3)))
        await cluster.until(Memcached, "cache", lambda it: len(it.status.nodes) == 3)
        await cluster.delete(Memcached, "cache")
        await cluster.eventually(lambda: cluster.list(Memcached), lambda found: not found)


async def test_size_has_a_limit(cluster: Cluster, operator: Operator) -> None:
    """The API server refuses 65 pods."""
    async with cluster.run(operator):
        with pytest.raises(Invalid, match="spec.size"):
            await cluster.apply(Memcached(name="cache", spec=MemcachedSpec(size=65)))
