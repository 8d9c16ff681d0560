"""Every operator that these tests run has the rights that operators/etcd/config gives it, and no others."""  # noqa: INP001 - a folder of tests is no package

from __future__ import annotations

import pytest

from deployed import with_rights
from navarch.testing import Cluster


@pytest.fixture
def cluster(cluster: Cluster) -> Cluster:
    """The same cluster, on which operators run in the name of their account."""
    return with_rights(cluster)
