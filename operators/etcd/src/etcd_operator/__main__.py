"""`python -m etcd_operator` runs the operator against the cluster of the current kubeconfig."""

from __future__ import annotations

import os
import sys

from etcd_operator.environment import flags_of
from navarch import operator


def main() -> None:
    """Runs the operator until a signal stops it. Flags and environment variables configure it; flags take precedence."""
    operator.main("etcd_operator", flags_of(os.environ, sys.argv[1:]))


if __name__ == "__main__":
    main()
