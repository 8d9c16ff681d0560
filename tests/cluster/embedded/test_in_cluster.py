"""A program in a pod finds the API server as it would in any cluster."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from navarch.api import Dynamic
from navarch.k8s.core.v1 import Container, Pod, PodSpec
from navarch.testing import Cluster

_FIRST_PORT = 1024
_PROGRAM = """
import asyncio, os
from navarch.client import connect, in_cluster
from navarch.k8s.core.v1 import Pod

async def main():
    async with connect(in_cluster()) as client:
        own = await client.get(Pod, os.environ["HOSTNAME"])
    print(os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"], own.name)

asyncio.run(main())
"""


def _role(kind: str, **fields: Any) -> Dynamic:
    return Dynamic(apiVersion="rbac.authorization.k8s.io/v1", kind=kind, metadata={"name": "readers"}, **fields)


async def _said_by_a_pod(cluster: Cluster) -> list[str]:
    """What a pod prints that has asked for itself, in the name of the default ServiceAccount."""
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": "default"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "readers"}
    await cluster.apply(_role("Role", rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]))
    await cluster.apply(_role("RoleBinding", roleRef=role, subjects=[subject]))
    script = f"exec > /dev/termination-log 2>&1; exec python - <<'END'{_PROGRAM}END\n"
    container = Container(name="main", image="python", command=["sh", "-c", script])
    await cluster.create(Pod(name="asking", spec=PodSpec(containers=[container], restart_policy="Never")))
    pod = await cluster.until(Pod, "asking", lambda found: found.status.phase in {"Succeeded", "Failed"}, timeout=120)
    state = (pod.status.container_statuses or [])[0].state
    assert state is not None
    assert state.terminated is not None
    assert pod.status.phase == "Succeeded", state.terminated.message
    return (state.terminated.message or "").split()


@pytest.fixture
def no_low_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody may listen on ports below 1024, as it is for everybody but root."""
    listen = asyncio.start_server

    async def refusing(serve: Any, host: str, port: int) -> asyncio.Server:
        if port < _FIRST_PORT:
            raise PermissionError(13, "Permission denied")
        return await listen(serve, host, port)

    monkeypatch.setattr(asyncio, "start_server", refusing)


@pytest.mark.cluster(nodes=1)
async def test_a_client_in_a_pod_finds_the_server_by_itself(http_cluster: Cluster) -> None:
    """By its environment and the files of its ServiceAccount; it may do what RBAC gives that."""
    host, _, name = await _said_by_a_pod(http_cluster)
    assert host.startswith("127.")
    assert name == "asking"


@pytest.mark.cluster(nodes=1)
@pytest.mark.usefixtures("no_low_ports")
async def test_the_server_is_found_where_its_service_has_no_port(http_cluster: Cluster) -> None:
    """Only root may listen on 443: without it, pods are led straight to the server."""
    assert http_cluster.access is not None
    host, port, _ = await _said_by_a_pod(http_cluster)
    assert f"https://{host}:{port}" == http_cluster.access.url
