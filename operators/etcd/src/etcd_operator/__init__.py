"""An operator that runs etcd clusters on Kubernetes, with CoreOS' API `etcd.database.coreos.com/v1beta2`."""

from __future__ import annotations

from functools import cache
from typing import Any

from navarch.operator import Operator


def __getattr__(name: str) -> Any:
    """Returns the operator of this process, `operator`; it is assembled when it is asked for, from the environment."""
    if name == "operator":
        return _operator()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@cache
def _operator() -> Operator:
    import os  # noqa: PLC0415 - the operator is assembled once, in its own process

    from etcd_operator.environment import operator_of  # noqa: PLC0415 - it imports all other modules of this package

    return operator_of(os.environ)
