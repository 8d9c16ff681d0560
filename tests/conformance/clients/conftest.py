"""Clients and operators of others, unchanged: what they need to find a cluster, on both engines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import pytest
from kubernetes import client as k8s
from kubernetes import config as k8s_config

import rig
from conformance.clients.mounting import Mount
from conformance.controllers.watching import until
from gadgets import installed
from navarch.client import Client, Config
from navarch.k8s.authentication.v1 import TokenRequest, TokenRequestSpec
from navarch.k8s.core.v1 import ServiceAccount
from navarch.testing.cluster import Cluster
from rig.waiting import wait_for


@pytest.fixture
def namespace(client: Client) -> str:
    """A new one, which goes with the test."""
    return client.options.namespace


@pytest.fixture
async def gadgets(client: Client, kubeconfig: str) -> None:
    """A custom kind that is served, and told of to those who ask for all kinds: the real server does that a moment later."""
    await installed(client)
    await until(lambda: client.discovery.find("gadgets.test.example.com"), bool, "the kind among all kinds")
    with k8s_config.new_client_from_config(kubeconfig) as api:
        groups = k8s.ApisApi(api).get_api_versions
        wait_for("its group", lambda: "test.example.com" in [each.name for each in groups().groups], seconds=60)


@pytest.fixture
def kubeconfig(config: Config, rig_or_none: rig.Cluster | None, embedded: Cluster | None, tmp_path: Path) -> str:
    """The administrator's, with a token."""
    if rig_or_none is not None:
        return str(rig_or_none.kubeconfig)
    assert embedded is not None
    assert embedded.access is not None
    found = embedded.access.kubeconfig()
    found["users"][0]["user"] = {"token": embedded.access.token}
    return _written(tmp_path / "token.kubeconfig", msgspec.json.encode(found))


@pytest.fixture
def certificate_kubeconfig(
    config: Config, rig_or_none: rig.Cluster | None, embedded: Cluster | None, tmp_path: Path
) -> str:
    """The administrator's, with a client certificate: on the embedded cluster the file that `navarch` writes."""
    if rig_or_none is not None:
        return str(rig_or_none.certificate_kubeconfig)
    assert embedded is not None
    assert embedded.access is not None
    return _written(tmp_path / "certificate.kubeconfig", embedded.access.kubeconfig_file())


@pytest.fixture
def api(kubeconfig: str) -> Iterator[k8s.ApiClient]:
    """The official client by its kubeconfig, which is also the default of its helpers."""
    k8s_config.load_kube_config(kubeconfig)
    with k8s.ApiClient() as api:
        yield api
    k8s.Configuration.set_default(None)


@pytest.fixture
async def mount(client: Client, config: Config, tmp_path: Path) -> Mount:
    """What a pod of the ServiceAccount `robot` finds."""
    await client.create(ServiceAccount(name="robot"))
    request = TokenRequest(spec=TokenRequestSpec(audiences=[], expiration_seconds=600))
    answered = await client.create_subresource(ServiceAccount, "robot", "token", request)
    assert answered.status.token
    _written(tmp_path / "token", answered.status.token.encode())
    _written(tmp_path / "ca.crt", _authority(config))
    _written(tmp_path / "namespace", client.options.namespace.encode())
    server = urlsplit(config.server)
    return Mount(
        tmp_path, {"KUBERNETES_SERVICE_HOST": str(server.hostname), "KUBERNETES_SERVICE_PORT": str(server.port)}
    )


def _authority(config: Config) -> bytes:
    return config.ca_data or Path(config.ca_file).read_bytes()


def _written(file: Path, content: bytes) -> str:
    file.write_bytes(content)
    return str(file)
