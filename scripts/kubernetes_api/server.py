"""Reading JSON from an API server that a kubeconfig names."""

from __future__ import annotations

import base64
import json
import ssl
import tempfile
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import yaml

TIME_LIMIT = 30.0


class ServerError(Exception):
    """The server, or the kubeconfig that should lead to it, gave nothing usable."""


class Server:
    """An API server, asked one thing at a time over one connection, which a `with` block closes."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        context = _named(config, "context", config["current-context"])
        cluster = _named(config, "cluster", context["cluster"])
        user = _named(config, "user", context["user"])
        address = urlsplit(cluster["server"]).netloc
        self._headers = {"Authorization": f"Bearer {user['token']}"} if "token" in user else {}
        self._connection = HTTPSConnection(address, timeout=TIME_LIMIT, context=_tls(cluster, user))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def get(self, path: str, accept: str = "application/json") -> Any:
        """The JSON at `path`; raises `ServerError` for any other answer than success."""
        try:
            self._connection.request("GET", path, headers={**self._headers, "Accept": accept})
            answer = self._connection.getresponse()
            body = answer.read()
        except OSError as error:
            raise ServerError(f"GET {path}: {error}") from error
        if answer.status != 200:
            raise ServerError(f"GET {path}: expected 200, got {answer.status} {answer.reason}")
        return json.loads(body)


def _named(config: dict[str, Any], section: str, name: str) -> dict[str, Any]:
    for entry in config[f"{section}s"]:
        if entry["name"] == name:
            found: dict[str, Any] = entry[section]
            return found
    raise ServerError(f"the kubeconfig has no {section} named {name!r}")


def _tls(cluster: dict[str, Any], user: dict[str, Any]) -> ssl.SSLContext:
    authority = cluster.get("certificate-authority-data")
    context = ssl.create_default_context(
        cafile=cluster.get("certificate-authority"),
        cadata=base64.b64decode(authority).decode() if authority else None,
    )
    if "client-certificate" in user:
        context.load_cert_chain(user["client-certificate"], user["client-key"])
    elif "client-certificate-data" in user:
        _load_embedded(context, user)
    return context


def _load_embedded(context: ssl.SSLContext, user: dict[str, Any]) -> None:
    """Python takes a certificate from files only."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("client-certificate", "client-key"):
            Path(folder, name).touch(mode=0o600)
            Path(folder, name).write_bytes(base64.b64decode(user[f"{name}-data"]))
        context.load_cert_chain(Path(folder, "client-certificate"), Path(folder, "client-key"))
