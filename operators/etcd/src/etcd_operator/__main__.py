"""`python -m etcd_operator`: on the cluster that kubectl talks to."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from prometheus_client import start_http_server

from etcd_operator.manifests import PYTHON_IMAGE
from etcd_operator.operator import etcd_operator
from navarch import Endpoints
from navarch.errors import ConfigError

_HEALTH: Final = "127.0.0.1:8081"
_RUNTIME: Final = "127.0.0.1:8080"
_NUMBERS: Final = "127.0.0.1:8082"


def main() -> None:
    """Runs until it is told to stop.

    ETCD_OPERATOR_BACKUPS is the folder for backups that are local, ETCD_OPERATOR_PYTHON_IMAGE an image with a Python, such
    as the operator's own. ETCD_OPERATOR_HEALTH, ETCD_OPERATOR_RUNTIME_METRICS and ETCD_OPERATOR_METRICS say where probes,
    the runtime's numbers and its own are served.
    """
    endpoints = _endpoints()
    _serve_numbers(os.environ.get("ETCD_OPERATOR_METRICS", _NUMBERS))
    folder = os.environ.get("ETCD_OPERATOR_BACKUPS")
    image = os.environ.get("ETCD_OPERATOR_PYTHON_IMAGE") or PYTHON_IMAGE
    etcd_operator(endpoints=endpoints, backups=Path(folder) if folder else None, python_image=image).run()


def _endpoints() -> Endpoints:
    try:
        return Endpoints(
            health=os.environ.get("ETCD_OPERATOR_HEALTH", _HEALTH),
            metrics=os.environ.get("ETCD_OPERATOR_RUNTIME_METRICS", _RUNTIME),
        )
    except ConfigError as error:
        sys.exit(str(error))


def _serve_numbers(address: str) -> None:
    host, _, port = address.rpartition(":")
    try:
        start_http_server(int(port), addr=host or "0.0.0.0")  # noqa: S104 - whoever leaves the host out means all
    except (OSError, ValueError, OverflowError) as error:
        sys.exit(
            f"expected a free address for metrics such as {_NUMBERS} in ETCD_OPERATOR_METRICS, got {address!r}: {error}"
        )


if __name__ == "__main__":
    main()
