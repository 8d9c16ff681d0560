"""`python -m etcd_operator`: on the cluster that kubectl talks to."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from prometheus_client import REGISTRY

from etcd_operator.manifests import PYTHON_IMAGE
from etcd_operator.operator import etcd_operator
from navarch import Endpoints
from navarch.errors import ConfigError

_HEALTH: Final = "127.0.0.1:8081"
_METRICS: Final = "127.0.0.1:8080"
_LOCAL: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})


def main() -> None:
    """Runs until it is told to stop.

    ETCD_OPERATOR_BACKUPS is the folder for backups that are local, ETCD_OPERATOR_PYTHON_IMAGE an image with a Python, such
    as the operator's own. ETCD_OPERATOR_HEALTH and ETCD_OPERATOR_METRICS say where probes and numbers are served.
    """
    endpoints = _endpoints()
    folder = os.environ.get("ETCD_OPERATOR_BACKUPS")
    image = os.environ.get("ETCD_OPERATOR_PYTHON_IMAGE") or PYTHON_IMAGE
    etcd_operator(endpoints=endpoints, backups=Path(folder) if folder else None, python_image=image).run()


def _endpoints() -> Endpoints:
    """Whoever reads the numbers from another machine has to show a token."""
    metrics = os.environ.get("ETCD_OPERATOR_METRICS", _METRICS)
    try:
        return Endpoints(
            health=os.environ.get("ETCD_OPERATOR_HEALTH", _HEALTH),
            metrics=metrics,
            token_review=metrics.rpartition(":")[0] not in _LOCAL,
            registry=REGISTRY,
        )
    except ConfigError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
