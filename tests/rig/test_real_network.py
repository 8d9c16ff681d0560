"""The rig's services: addresses, names, the API server and webhooks in pods, and images from a registry."""

from __future__ import annotations

import asyncio
import json
import os
import tarfile
import urllib.request
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

import rig
from navarch.oci.documents import Descriptor, ProcessConfig
from navarch.oci.file_tree import FileTree
from navarch.oci.layout import Layout
from navarch.oci.reference import Reference
from navarch.oci.registry import RegistryClient, RegistryOptions, push
from probe_pods import probe, start_pod
from rig import image, programs
from rig.certificates import Authority
from rig.waiting import wait_for

pytestmark = [pytest.mark.real, pytest.mark.skipif(os.geteuid() != 0, reason="a node runs containers and needs root")]

READY = {"tcpSocket": {"port": 8080}, "periodSeconds": 1}


@pytest.fixture(scope="module")
def cluster(node_cluster: rig.Cluster) -> rig.Cluster:
    """One cluster with a node, and a pod to look around from."""
    start_pod(node_cluster, "visitor", "pause")
    return node_cluster


def test_pods_reach_a_service_by_name_and_address(cluster: rig.Cluster) -> None:
    """A service's name is its address, from where kube-proxy leads to its pod; so does the way from this machine."""
    start_pod(cluster, "web", "http", "8080", readinessProbe=READY)
    _expose(cluster, "web", {})
    address = cluster.kubectl("get", "service", "web", "--output=jsonpath={.spec.clusterIP}")
    for name in ("web", "web.default", "web.default.svc", "web.default.svc.cluster.local"):
        assert _lookup(cluster, "resolve", name) == [address]
    answer = wait_for("the service to answer", lambda: _try(cluster, "get", "http://web.default.svc/x"), seconds=30)
    assert json.loads(answer)["host"] == "web.default.svc"
    with urllib.request.urlopen(f"http://{address}/y", timeout=10) as response:
        assert json.load(response)["target"] == "/y"


def test_a_pod_reaches_itself_through_its_service(cluster: rig.Cluster) -> None:
    """The way through the service may lead back to the pod that asks."""
    start_pod(cluster, "mirror", "http", "8080", readinessProbe=READY)
    _expose(cluster, "mirror", {})
    command = ("exec", "mirror", "--", "/probe", "get", "http://mirror.default.svc/x")
    answer = wait_for("the service to answer", lambda: _kubectl(cluster, *command), seconds=30)
    assert json.loads(answer)["target"] == "/x"


def test_headless_service_names_its_pods(cluster: rig.Cluster) -> None:
    """A headless service's name is its pods' addresses; a pod's own name in it and its SRV records exist too."""
    start_pod(cluster, "ex", "http", "8080", pod={"hostname": "m0", "subdomain": "ex"}, readinessProbe=READY)
    _expose(cluster, "ex", {"clusterIP": "None"})
    address = cluster.kubectl("get", "pod", "ex", "--output=jsonpath={.status.podIP}")
    for name in ("ex", "ex.default.svc", "m0.ex", "m0.ex.default.svc", "m0.ex.default.svc.cluster.local"):
        assert _lookup(cluster, "resolve", name) == [address]
    assert _lookup(cluster, "srv", "_http._tcp.ex.default.svc.cluster.local") == [
        "m0.ex.default.svc.cluster.local. 8080"
    ]


def test_other_names_are_refused_at_once(cluster: rig.Cluster) -> None:
    """A name outside the cluster is an error: CoreDNS has nobody to ask for it."""
    with pytest.raises(rig.RigError, match=r"lookup example\.com\. on 10\.204\.\d+\.10:53: server misbehaving"):
        probe(cluster, "visitor", "resolve", "example.com.")


def test_no_route_leads_out_of_the_machine(cluster: rig.Cluster) -> None:
    """Pods and node have routes to this cluster's addresses alone, so no packet of theirs can leave the machine."""
    table = probe(cluster, "visitor", "read", "/proc/net/route").splitlines()[1:]
    assert len(table) == 4
    assert {line.split()[1][4:] for line in table} == {"CC0A"}, "expected 10.204.0.0/16 alone"
    start_pod(cluster, "on-node", "pause", pod={"hostNetwork": True})
    table = probe(cluster, "on-node", "read", "/proc/net/route").splitlines()[1:]
    assert {line.split()[1][4:] for line in table} == {"CC0A"}, "expected 10.204.0.0/16 alone"


def test_a_pod_asks_the_api_server_with_its_token(cluster: rig.Cluster) -> None:
    """In-cluster clients find the API server, trust it, and are known to it by their service account."""
    cluster.kubectl("create", "serviceaccount", "reader")
    rights = ("--clusterrole=view", "--serviceaccount=default:reader")
    cluster.kubectl("create", "rolebinding", "reader", *rights)
    start_pod(cluster, "reader", "pause", pod={"serviceAccountName": "reader"})
    found = json.loads(probe(cluster, "reader", "api", "/api/v1/namespaces/default/pods/reader"))
    assert found["spec"]["serviceAccountName"] == "reader"
    with pytest.raises(rig.RigError, match="403 Forbidden"):
        probe(cluster, "reader", "api", "/api/v1/namespaces/default/secrets")


def test_a_webhook_in_a_pod_is_called(cluster: rig.Cluster, tmp_path: Path) -> None:
    """The API server asks a pod behind a service before it stores an object."""
    authority = Authority(tmp_path)
    pair = authority.serving("judge", ["judge.default.svc"])
    files = {"tls.crt": pair.certificate, "tls.key": pair.key}
    data = {name: b64encode(file.read_bytes()).decode() for name, file in files.items()}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "judge"}, "data": data}
    cluster.kubectl("apply", "--filename=-", stdin=json.dumps(secret))
    mount = {"name": "tls", "mountPath": "/tls"}
    volumes = {"volumes": [{"name": "tls", "secret": {"secretName": "judge"}}]}
    start_pod(cluster, "judge", "webhook", "8080", pod=volumes, volumeMounts=[mount], readinessProbe=READY)
    _expose(cluster, "judge", {})
    webhook = _webhook(authority.pair.certificate.read_bytes())
    cluster.kubectl("apply", "--filename=-", stdin=json.dumps(webhook))
    try:
        problem = wait_for("the webhook to be called", lambda: _refusal(cluster), seconds=30)
    finally:
        cluster.kubectl("delete", "validatingwebhookconfiguration", "judge")
    assert 'admission webhook "judge.default.svc" denied the request: a pod denies judged' in problem


def test_node_pulls_an_image_from_the_registry(cluster: rig.Cluster, tmp_path: Path) -> None:
    """What was pushed to the rig's registry runs in a pod, under the registry's name in the cluster."""
    assert cluster.registry is not None
    tree = FileTree()
    tree.add_file("probe", programs.PROBE.path.read_bytes(), mode=0o755)
    # Another configuration than the probe image's: containerd forgets the first of two names of one image.
    settings = ProcessConfig(entrypoint=["/probe"], cmd=["pause"], env=["PATH=/", "PULLED=yes"])
    with tarfile.open(image.write_image(tmp_path / "probe.tar", tree, "pulled:1", settings)) as archive:
        archive.extractall(tmp_path / "probe", filter="data")
    layout = Layout.open(tmp_path / "probe")
    [root] = layout.roots
    asyncio.run(_push(layout, root, Reference.parse(f"{cluster.registry}/team/probe:1")))
    image_name = f"{rig.REGISTRY_NAME}/team/probe:1"
    start_pod(cluster, "pulled", "pause", image=image_name, imagePullPolicy="Always")
    assert probe(cluster, "pulled", "echo", "ran") == "ran\n"


async def _push(layout: Layout, root: Descriptor, reference: Reference) -> None:
    async with RegistryClient(RegistryOptions(plain_http=True)) as client:
        await push(client, layout, root, reference)


def _expose(cluster: rig.Cluster, name: str, spec: dict[str, Any]) -> None:
    """Make a service for the pods whose label `app` is the name."""
    service = {"selector": {"app": name}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}], **spec}
    described = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": service}
    cluster.kubectl("apply", "--filename=-", stdin=json.dumps(described))


def _lookup(cluster: rig.Cluster, *arguments: str) -> list[str]:
    """Ask for a name in a pod, until CoreDNS has heard of it."""
    return wait_for(f"{arguments}", lambda: _try(cluster, *arguments), seconds=30).splitlines()


def _try(cluster: rig.Cluster, *arguments: str) -> str | None:
    return _kubectl(cluster, "exec", "visitor", "--", "/probe", *arguments)


def _kubectl(cluster: rig.Cluster, *arguments: str) -> str | None:
    try:
        return cluster.kubectl(*arguments)
    except rig.RigError:
        return None


def _webhook(ca_certificate: bytes) -> dict[str, Any]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    client = {
        "service": {"namespace": "default", "name": "judge", "port": 80},
        "caBundle": b64encode(ca_certificate).decode(),
    }
    webhook = {
        "name": "judge.default.svc",
        "rules": [rule],
        "clientConfig": client,
        "matchConditions": [{"name": "judged", "expression": "object.metadata.name == 'judged'"}],
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "judge"},
        "webhooks": [webhook],
    }


def _refusal(cluster: rig.Cluster) -> str | None:
    """Try what the webhook denies; None while the API server does not ask it yet, or asks its endpoints in vain."""
    try:
        cluster.kubectl("create", "configmap", "judged", "--dry-run=server")
    except rig.RigError as problem:
        return str(problem) if "denied the request" in str(problem) else None
    return None
