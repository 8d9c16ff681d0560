"""What a pod is given."""

from pathlib import Path
from typing import Any

import pytest

from navarch.client.config import in_cluster, load
from navarch.errors import ConfigError


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    for name, content in (("token", "abc"), ("ca.crt", "PEM"), ("namespace", "shop\n")):
        (folder / name).write_text(content)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    return folder


def test_a_pod_uses_its_service_account(account: Path) -> None:
    """Token and CA by file, so that rotation is seen; the namespace is the pod's."""
    config = load(service_account=account)
    assert config == in_cluster(account)
    assert (config.server, config.namespace) == ("https://10.0.0.1:443", "shop")
    assert (config.token, config.token_file, config.ca_file) == ("", account / "token", account / "ca.crt")


def test_ipv6_hosts_get_brackets(account: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in any URL."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    assert in_cluster(account).server == "https://[fd00::1]:443"


def test_pod_namespace_goes_before_the_file_and_default_comes_last(
    account: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """client-go's order."""
    monkeypatch.setenv("POD_NAMESPACE", "other")
    assert in_cluster(account).namespace == "other"
    monkeypatch.delenv("POD_NAMESPACE")
    (account / "namespace").unlink()
    assert in_cluster(account).namespace == "default"


def test_a_kubeconfig_goes_before_the_pod(account: Path, write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only where there is no kubeconfig, or an empty one, is the pod's own used."""
    monkeypatch.setenv("KUBECONFIG", str(write(user={"token": "file"})))
    assert load(service_account=account).token == "file"
    monkeypatch.setenv("KUBECONFIG", str(write(contexts=[], clusters=[], users=[], **{"current-context": ""})))
    assert load(service_account=account).namespace == "shop"


def test_a_context_by_name_is_never_the_pods_own(account: Path) -> None:
    """Who names a context wants that one or none."""
    with pytest.raises(ConfigError, match="expected context 'prod'"):
        load(context="prod", service_account=account)


def test_a_pod_without_a_token_is_told(account: Path) -> None:
    """The remedy names automountServiceAccountToken."""
    (account / "token").unlink()
    with pytest.raises(ConfigError, match=r"token, got no such file.*automountServiceAccountToken"):
        in_cluster(account)


def test_outside_a_pod_there_is_no_in_cluster_configuration() -> None:
    """Host and port are both needed."""
    with pytest.raises(ConfigError, match=r"KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT"):
        in_cluster()
