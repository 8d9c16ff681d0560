"""Nodes that cannot be reached."""

from __future__ import annotations

import pytest

from navarch import errors
from navarch.api import Dynamic
from navarch.cluster.embedded.cluster import EmbeddedCluster
from navarch.cluster.embedded.components import ComponentOptions
from navarch.cluster.server.wire.request import ApiRequest
from navarch.k8s.core.v1 import Pod, Service
from navarch.testing.cluster import Cluster


async def test_pods_of_a_node_that_is_cut_off_cannot_be_reached() -> None:
    """As long as it is; what they do goes on."""
    async with EmbeddedCluster(components=ComponentOptions(nodes=1)) as embedded:
        cluster = Cluster(embedded.client(), embedded)
        await cluster.eventually(lambda: _created(cluster), bool, timeout=120)
        await cluster.until(Pod, "web", lambda pod: pod.status.phase == "Running", timeout=120)
        node = embedded.nodes["node-1"]
        await node.cut_off()
        with pytest.raises(
            errors.ServerError, match=r"error dialing backend: dial tcp .*: connect: connection refused"
        ):
            await cluster.client.exec("web", ["true"])
        with pytest.raises(errors.ServerError, match=r'Get "https://.*/containerLogs/default/web/main": dial tcp'):
            await cluster.client.logs("web")
        await node.cut_off(cut=False)
        assert (await cluster.client.exec("web", ["true"])).exit_code == 0


async def test_node_that_is_only_an_object_cannot_be_reached() -> None:
    """Without an address nobody knows where it is."""
    async with EmbeddedCluster() as embedded:
        cluster = Cluster(embedded.client(), embedded)
        await cluster.create(Dynamic({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "bare"}}))
        assert await _created(cluster, nodeName="bare")
        with pytest.raises(errors.ServerError, match=r"no preferred addresses found; known addresses: \[\]"):
            await cluster.client.exec("web", ["true"])


async def test_request_for_a_service_is_never_about_the_service_itself() -> None:
    """Whatever its method, and though nobody is there to answer."""
    async with EmbeddedCluster() as embedded:
        headers = {"authorization": f"Bearer {embedded.token}"}
        path = "/api/v1/namespaces/default/services/kubernetes/proxy"
        for method in ("GET", "DELETE", "PUT", "PATCH", "POST"):
            reply = await embedded.server.handle(ApiRequest(method=method, path=path, headers=headers))
            assert reply.status == 503
        assert (await embedded.client().get(Service, "kubernetes")).name == "kubernetes"


async def _created(cluster: Cluster, **fields: str) -> bool:
    """Once there is a ServiceAccount for it."""
    container = {"name": "main", "image": "busybox", "args": ["-c", "sleep 1000"]}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0, **fields}
    try:
        await cluster.create(Dynamic({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec}))
    except errors.Forbidden:
        return False
    return True
