"""`python -m etcd_operator`: on the cluster that kubectl talks to."""

from __future__ import annotations

from etcd_operator.operator import etcd_operator
from navarch import Endpoints


def main() -> None:
    """Runs until it is told to stop."""
    etcd_operator(endpoints=Endpoints()).run()


if __name__ == "__main__":
    main()
