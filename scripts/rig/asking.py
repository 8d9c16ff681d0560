"""One HTTP request to a server of the rig, directly: the proxy that the environment may name is not asked."""

from __future__ import annotations

import ssl
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from urllib.parse import urlsplit


def get(url: str, *, ca_file: Path | None = None, token: str | None = None) -> bytes | None:
    """Return the body of a successful answer, else None."""
    connection = _connection(url, ca_file)
    parts = urlsplit(url)
    try:
        connection.request(
            "GET",
            parts._replace(scheme="", netloc="").geturl(),
            headers={"Authorization": f"Bearer {token}"} if token else {},
        )
        answer = connection.getresponse()
        body = answer.read()
    except (OSError, HTTPException):
        return None
    finally:
        connection.close()
    return body if answer.status == 200 else None


def _connection(url: str, ca_file: Path | None) -> HTTPConnection:
    address = urlsplit(url).netloc
    if ca_file is None:
        return HTTPConnection(address, timeout=5)
    return HTTPSConnection(address, timeout=5, context=ssl.create_default_context(cafile=str(ca_file)))
