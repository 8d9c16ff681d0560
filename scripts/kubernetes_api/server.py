"""Reading JSON from an API server that a kubeconfig names."""

from __future__ import annotations

import json
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from navarch.client import load

TIME_LIMIT = 30.0


class ServerError(Exception):
    """The server gave nothing usable."""


class Server:
    """An API server, asked one thing at a time over one connection, which a `with` block closes."""

    def __init__(self, kubeconfig: Path) -> None:
        config = load(kubeconfig)
        self._headers = {"Authorization": f"Bearer {config.token}"} if config.token else {}
        address = urlsplit(config.server).netloc
        self._connection = HTTPSConnection(address, timeout=TIME_LIMIT, context=config.ssl_context())

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
