"""`python -m etcd_operator` runs the operator against the cluster of the current kubeconfig."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from prometheus_client import REGISTRY

from etcd_operator.backup.snapshots import MAX_BYTES
from etcd_operator.manifests import PYTHON_IMAGE
from etcd_operator.operator import etcd_operator
from navarch import Endpoints, Quantity
from navarch.api.names import DNS_LABEL
from navarch.errors import ConfigError, InvalidValueError

_HEALTH: Final = "127.0.0.1:8081"
_METRICS: Final = "127.0.0.1:8080"
_LOCAL: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})


def main() -> None:
    """Runs the operator until a signal stops it; environment variables configure it.

    ETCD_OPERATOR_BACKUPS is the folder for `local` backups; ETCD_OPERATOR_PYTHON_IMAGE is an image that contains Python,
    such as the operator's own. ETCD_OPERATOR_HEALTH and ETCD_OPERATOR_METRICS are the addresses of probes and metrics.
    ETCD_OPERATOR_NAMESPACES lists the watched namespaces, separated by commas: the operator then needs Roles there, and
    CRDs that are already installed. ETCD_OPERATOR_AMBIENT is the file of rules for the operator's own cloud credentials.
    ETCD_OPERATOR_MAX_SNAPSHOT limits the size of a snapshot. ETCD_OPERATOR_WEBHOOKS=yes warns of backups and restores that
    name missing objects.
    """
    try:
        namespaces = _namespaces(os.environ.get("ETCD_OPERATOR_NAMESPACES", ""))
        operator = etcd_operator(
            namespaces=namespaces,
            crds="verify" if namespaces else "install",
            endpoints=_endpoints(),
            backups=_path("ETCD_OPERATOR_BACKUPS"),
            ambient=_path("ETCD_OPERATOR_AMBIENT"),
            python_image=os.environ.get("ETCD_OPERATOR_PYTHON_IMAGE") or PYTHON_IMAGE,
            max_snapshot_bytes=_size(os.environ.get("ETCD_OPERATOR_MAX_SNAPSHOT", "")),
            webhooks=_switch("ETCD_OPERATOR_WEBHOOKS"),
        )
    except ConfigError as error:
        sys.exit(str(error))
    operator.run()


def _path(variable: str) -> Path | None:
    value = os.environ.get(variable)
    return Path(value) if value else None


def _switch(variable: str) -> bool:
    value = os.environ.get(variable, "no")
    if value not in {"yes", "no"}:
        raise ConfigError(f"expected yes or no in {variable}, got {value!r}")
    return value == "yes"


def _namespaces(text: str) -> tuple[str, ...]:
    """Returns the namespaces; refuses patterns, because a pattern would need permissions in every namespace."""
    names = tuple(dict.fromkeys(each.strip() for each in text.split(","))) if text else ()
    for name in names:
        if not DNS_LABEL.allows(name):
            raise ConfigError(f"expected names such as team-a,team-b in ETCD_OPERATOR_NAMESPACES, got {text!r}")
    return names


def _size(text: str) -> int:
    if not text:
        return MAX_BYTES
    try:
        size = int(Quantity(text).decimal)
    except InvalidValueError:
        size = 0
    if size <= 0:
        raise ConfigError(f"expected a size such as 16Gi in ETCD_OPERATOR_MAX_SNAPSHOT, got {text!r}")
    return size


def _endpoints() -> Endpoints:
    """Returns the endpoints; metrics on a non-local address require a token (TokenReview). Raises `ConfigError`."""
    metrics = os.environ.get("ETCD_OPERATOR_METRICS", _METRICS)
    return Endpoints(
        health=os.environ.get("ETCD_OPERATOR_HEALTH", _HEALTH),
        metrics=metrics,
        token_review=metrics.rpartition(":")[0] not in _LOCAL,
        registry=REGISTRY,
    )


if __name__ == "__main__":
    main()
