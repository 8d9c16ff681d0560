"""Kubeconfig files: self-contained, so that one path is all a client needs."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import yaml

from rig.certificates import Pair


def token_user(token: str) -> dict[str, str]:
    """Return a user that authenticates with a bearer token."""
    return {"token": token}


def certificate_user(pair: Pair) -> dict[str, str]:
    """Return a user that authenticates with a client certificate, embedded."""
    return {"client-certificate-data": _embed(pair.certificate), "client-key-data": _embed(pair.key)}


def document(server: str, ca_file: Path, user: dict[str, str]) -> dict[str, Any]:
    """Return a kubeconfig with one cluster, one user and one context, all named `rig`."""
    cluster = {"server": server, "certificate-authority-data": _embed(ca_file)}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "rig", "cluster": cluster}],
        "users": [{"name": "rig", "user": user}],
        "contexts": [{"name": "rig", "context": {"cluster": "rig", "user": "rig", "namespace": "default"}}],
        "current-context": "rig",
    }


def write(path: Path, config: dict[str, Any]) -> Path:
    """Write a kubeconfig, readable by the owner only since it holds credentials."""
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    return path


def _embed(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()
