"""The configuration of a pod: what kubelet puts into each container."""

from __future__ import annotations

import os
from pathlib import Path

from navarch.client.config.model import Config, FilePath
from navarch.errors import ConfigError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_ORIGIN = "in-cluster configuration"


def is_in_cluster() -> bool:
    """Whether the environment is that of a pod."""
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST") and os.environ.get("KUBERNETES_SERVICE_PORT"))


def in_cluster(service_account: FilePath = SERVICE_ACCOUNT) -> Config:
    """The configuration of the pod this runs in: its service account's token, CA and namespace.

    Raises ConfigError outside a pod, and in one whose service account is not mounted.
    """
    if not is_in_cluster():
        raise ConfigError(
            f"{_ORIGIN}: expected KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT in the environment, "
            f"got neither or only one. Outside a pod, use a kubeconfig."
        )
    folder = Path(service_account)
    for name in ("token", "ca.crt"):
        _check_file(folder / name)
    return Config(
        server=_server(os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]),
        namespace=os.environ.get("POD_NAMESPACE") or _namespace(folder),
        token_file=folder / "token",
        ca_file=folder / "ca.crt",
        origin=_ORIGIN,
    )


def _server(host: str, port: str) -> str:
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def _check_file(path: Path) -> None:
    if not path.is_file():
        raise ConfigError(
            f"{_ORIGIN}: expected {path}, got no such file. "
            f"Is automountServiceAccountToken false in the pod or its service account?"
        )


def _namespace(folder: Path) -> str:
    try:
        return (folder / "namespace").read_text(encoding="utf-8").strip() or "default"
    except (OSError, ValueError):
        return "default"
