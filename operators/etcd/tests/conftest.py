"""Every operator that these tests run has the rights that operators/etcd/deploy gives it, and no others."""

from __future__ import annotations

import pytest

from deployed import Deployed
from navarch.testing import Cluster


@pytest.fixture
def cluster(cluster: Cluster) -> Cluster:
    return Deployed(cluster.client, cluster._engine, cluster.access)
