"""`python -m etcd_operator`: on the cluster that kubectl talks to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from prometheus_client import start_http_server

from etcd_operator.operator import etcd_operator
from navarch import Endpoints

_METRICS: Final = 8082


def main() -> None:
    """Runs until it is told to stop. Its own numbers are at port 8082 of this machine, those of the runtime at 8080.

    ETCD_OPERATOR_BACKUPS is the folder for backups, such as a claim.
    """
    start_http_server(_METRICS, addr="127.0.0.1")
    folder = os.environ.get("ETCD_OPERATOR_BACKUPS")
    etcd_operator(endpoints=Endpoints(), backups=Path(folder) if folder else None).run()


if __name__ == "__main__":
    main()
