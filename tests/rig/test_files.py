"""What the rig writes: certificates, kubeconfigs, command lines, a node's files, an image."""

import base64
import gzip
import hashlib
import ipaddress
import json
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509

from rig import commands, folders, image, kubeconfig, nodefiles, traces
from rig.certificates import Authority, Pair
from rig.cluster import Cluster
from rig.errors import RigError
from rig.node import takes_pods

PAIR = Pair(Path("/c.crt"), Path("/c.key"))
PLAN = commands.Plan(
    folder=Path("/state"),
    ports=commands.Ports(etcd=1, etcd_peer=2, apiserver=3, controller_manager=4, scheduler=5),
    ca=Pair(Path("/ca.crt"), Path("/ca.key")),
    serving=PAIR,
    kubelet_client=PAIR,
    service_account_key=Path("/sa.key"),
    tokens=Path("/tokens.csv"),
    kubeconfig=Path("/kubeconfig.yaml"),
)
NETWORK = traces.Network("nvrig-0", ipaddress.IPv4Network("10.204.4.0/22"))
NODE_PLAN = nodefiles.NodePlan(Path("/state"), NETWORK, "navarch-rig-0", Path("/ca.crt"), PAIR)


def test_every_listener_is_on_loopback() -> None:
    """No program of the control plane listens where another machine could reach it."""
    lines = [
        *commands.etcd(PLAN, Path("/etcd")),
        *commands.apiserver(PLAN),
        *commands.controller_manager(PLAN),
        *commands.scheduler(PLAN),
    ]
    assert lines.count("--bind-address=127.0.0.1") == 3
    assert all("http://127.0.0.1:" in line for line in lines if line.startswith(("--listen", "--etcd-servers")))


def test_apiserver_knows_tokens_and_certificates() -> None:
    """Both ways of authentication are on, and RBAC with the node authorizer decides."""
    line = commands.apiserver(PLAN)
    assert {"--token-auth-file=/tokens.csv", "--client-ca-file=/ca.crt", "--authorization-mode=Node,RBAC"} <= set(line)


def test_extra_apiserver_flags_come_last() -> None:
    """The last of two equal flags wins, so a caller's flag beats ours."""
    assert commands.apiserver(PLAN, ("--secure-port=9",))[-1] == "--secure-port=9"


def test_kubeconfig_holds_its_credentials(tmp_path: Path) -> None:
    """One file is enough for a client, and nobody else may read it."""
    authority = Authority(tmp_path)
    user = kubeconfig.certificate_user(authority.client("admin", "me", ["system:masters"]))
    path = kubeconfig.write(tmp_path / "config", kubeconfig.document("https://x:1", authority.pair.certificate, user))
    config = yaml.safe_load(path.read_text())
    assert config["clusters"][0]["cluster"]["server"] == "https://x:1"
    assert base64.b64decode(config["users"][0]["user"]["client-key-data"]) == (tmp_path / "admin.key").read_bytes()
    assert config["current-context"] == config["contexts"][0]["name"]
    assert path.stat().st_mode & 0o777 == 0o600
    assert kubeconfig.token_user("t") == {"token": "t"}


def test_certificates_carry_user_groups_and_hosts(tmp_path: Path) -> None:
    """A client certificate names user and groups, a serving one its addresses; the authority signed both."""
    authority = Authority(tmp_path)
    ca = x509.load_pem_x509_certificate(authority.pair.certificate.read_bytes())
    client = x509.load_pem_x509_certificate(authority.client("c", "me", ["g"]).certificate.read_bytes())
    server = x509.load_pem_x509_certificate(authority.serving("s", ["127.0.0.1", "localhost"]).certificate.read_bytes())
    assert client.subject.rfc4514_string() == "CN=me,O=g"
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert names.get_values_for_type(x509.IPAddress) == [ipaddress.ip_address("127.0.0.1")]
    client.verify_directly_issued_by(ca)
    server.verify_directly_issued_by(ca)


def test_image_is_a_valid_oci_archive(tmp_path: Path) -> None:
    """Every descriptor points to a blob of that digest and size, and the layer has the program."""
    (tmp_path / "program").write_bytes(b"ELF")
    archive = image.write_archive(tmp_path / "image.tar", tmp_path / "program")
    with tarfile.open(archive) as tar:
        files = {entry.name: _content(tar, entry) for entry in tar}
    assert json.loads(files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    [entry] = json.loads(files["index.json"])["manifests"]
    assert entry["annotations"]["io.containerd.image.name"] == "navarch.test/probe:1"
    manifest = json.loads(_blob(files, entry))
    config = json.loads(_blob(files, manifest["config"]))
    layer = gzip.decompress(_blob(files, manifest["layers"][0]))
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}"]
    assert config["config"]["Entrypoint"] == ["/probe"]
    assert b"ELF" in layer


def test_image_is_reproducible(tmp_path: Path) -> None:
    """The same program gives the same bytes."""
    (tmp_path / "program").write_bytes(b"ELF")
    first = image.write_archive(tmp_path / "1.tar", tmp_path / "program").read_bytes()
    assert image.write_archive(tmp_path / "2.tar", tmp_path / "program").read_bytes() == first


def test_apiserver_with_a_node_listens_where_pods_reach_it() -> None:
    """It listens on the bridge alone, advertises that, and asks the pods of a webhook directly."""
    line = commands.apiserver(replace(PLAN, network=NETWORK))
    assert {
        "--bind-address=10.204.4.1",
        "--advertise-address=10.204.4.1",
        "--service-cluster-ip-range=10.204.6.0/24",
        "--enable-aggregator-routing=true",
    } <= set(line)
    assert replace(PLAN, network=NETWORK).url == "https://10.204.4.1:3"


def test_pods_have_no_way_out() -> None:
    """Pods have routes to this cluster alone, and no translation; the kubelet serves on the bridge only."""
    [link] = nodefiles.cni(NODE_PLAN)["plugins"]
    assert "ipMasq" not in link
    assert link["ipam"]["routes"] == [{"dst": "10.204.6.0/24"}, {"dst": "10.204.4.0/24"}]
    kubelet = nodefiles.kubelet(NODE_PLAN)
    assert kubelet["address"] == "10.204.4.2"
    assert kubelet["authentication"]["anonymous"] == {"enabled": False}


def test_dns_asks_nobody_else() -> None:
    """CoreDNS is built and configured without a plugin that forwards questions."""
    assert "forward" not in nodefiles.dns(NODE_PLAN, Path("/kubeconfig"))
    assert "forward" not in (folders.SOURCE / "coredns" / "main.go").read_text()


def test_pods_find_dns_at_its_service() -> None:
    """The kubelet names the address that the service kube-dns has, and its endpoint is the node."""
    service, endpoints = nodefiles.dns_service(NODE_PLAN)
    assert nodefiles.kubelet(NODE_PLAN)["clusterDNS"] == [service["spec"]["clusterIP"]] == ["10.204.6.10"]
    assert endpoints["endpoints"][0]["addresses"] == ["10.204.4.2"]


def test_pod_ranges_do_not_overlap() -> None:
    """A range that any interface has a part of is not taken again; when none is free, that is said."""
    first, second = list(traces.RANGES.subnets(new_prefix=22))[:2]
    assert traces.find_free_range([]) == first
    assert traces.find_free_range([traces.Network("", first).link]) == second
    with pytest.raises(RigError, match="every address range"):
        traces.find_free_range([traces.RANGES])


def test_interface_names_are_short_enough() -> None:
    """The kernel takes at most 15 characters, however long the folder's name is."""
    folder = Path("/" + "x" * 300)
    assert max(map(len, (traces.bridge_of(folder), traces.port_of(folder)))) <= 15


@pytest.mark.parametrize(
    ("node", "takes"),
    [
        ({"spec": {}, "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "r"}]}}, True),
        ({"spec": {}, "status": {"conditions": [{"type": "Ready", "status": "False"}]}}, False),
        ({"spec": {"taints": [{}]}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}, False),
        ({"spec": {}}, False),
    ],
)
def test_node_takes_pods_when_ready_and_untainted(node: dict[str, Any], takes: bool) -> None:
    """A node counts as usable only if it is ready and nothing keeps pods away."""
    assert takes_pods(node) is takes


def test_cluster_survives_json(tmp_path: Path) -> None:
    """Another process reads the same cluster, without the handles of the one that started it."""
    names = ("ca_file", "kubeconfig", "certificate_kubeconfig", "client_certificate", "client_key")
    paths: dict[str, Any] = {name: tmp_path / name for name in names}
    cluster = Cluster(folder=tmp_path, url="https://u", etcd_url="http://e", token="secret", node="n", **paths)
    assert Cluster.from_json(cluster.to_json()) == cluster
    assert "secret" not in repr(cluster)
    with pytest.raises(RigError, match="another process started the cluster"):
        cluster.restart("etcd")


def test_node_pulls_from_registries_that_it_can_reach(tmp_path: Path) -> None:
    """A registry on the bridge is written down for containerd; one that the node cannot see is refused."""
    names = ("ca_file", "kubeconfig", "certificate_kubeconfig", "client_certificate", "client_key")
    paths: dict[str, Any] = {name: tmp_path / name for name in names}
    alone = Cluster(folder=tmp_path, url="https://u", etcd_url="http://e", token="secret", **paths)
    cluster = replace(alone, node="n", machine_address="10.204.4.1")
    cluster.add_registry("registry.test:5000", "http://10.204.4.1:7")
    assert '[host."http://10.204.4.1:7"]' in (tmp_path / "registries/registry.test:5000/hosts.toml").read_text()
    with pytest.raises(RigError, match=r"expected a registry on 10\.204\.4\.1, .* got http://127\.0\.0\.1:7"):
        cluster.add_registry("registry.test:5000", "http://127.0.0.1:7")
    with pytest.raises(RigError, match="expected a cluster with a node"):
        alone.add_registry("registry.test:5000", "http://10.204.4.1:7")


@pytest.mark.parametrize(
    ("environment", "cache"),
    [
        ({"NAVARCH_CACHE": "/a", "XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/a"),
        ({"XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/b/navarch"),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/c"}, "/c/.cache/navarch"),
        ({"HOME": "/c"}, "/c/.cache/navarch"),
    ],
)
def test_cache_folder_follows_the_environment(environment: dict[str, str], cache: str) -> None:
    """Our own variable wins, then XDG's, then the home folder; a relative XDG path counts as unset."""
    assert folders.cache(environment) == Path(cache)


def _content(tar: tarfile.TarFile, entry: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(entry)
    assert file is not None
    return file.read()


def _blob(files: dict[str, bytes], descriptor: dict[str, Any]) -> bytes:
    blob = files["blobs/" + descriptor["digest"].replace(":", "/")]
    assert hashlib.sha256(blob).hexdigest() == descriptor["digest"].removeprefix("sha256:")
    assert len(blob) == descriptor["size"]
    return blob
