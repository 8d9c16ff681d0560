"""The environment variables of the operator: what they declare, and the flags that they stand for.

ETCD_OPERATOR_BACKUPS is the folder for `local` backups; ETCD_OPERATOR_PYTHON_IMAGE is an image that contains Python, such as
the operator's own. ETCD_OPERATOR_NAMESPACES, or else WATCH_NAMESPACE, lists the watched namespaces, separated by commas: the
operator then needs Roles there, and CRDs that are already installed. ETCD_OPERATOR_AMBIENT is the file of rules for the
operator's own cloud credentials. ETCD_OPERATOR_MAX_SNAPSHOT limits the size of a snapshot. ETCD_OPERATOR_WEBHOOKS=yes warns of
backups and restores that name missing objects. ETCD_OPERATOR_HEALTH and ETCD_OPERATOR_METRICS are the addresses of probes and
metrics, unless flags name them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from prometheus_client import REGISTRY

from etcd_operator.backup.snapshots import MAX_BYTES
from etcd_operator.declaration import etcd_operator
from etcd_operator.manifests import PYTHON_IMAGE
from navarch import Endpoints, Operator, Quantity
from navarch.api.names import DNS_LABEL
from navarch.errors import ConfigError, InvalidValueError

_HEALTH: Final = "127.0.0.1:8081"
_METRICS: Final = "127.0.0.1:8080"
_LOCAL: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})


def operator_of(environment: Mapping[str, str]) -> Operator:
    """Returns the operator that the variables configure. Raises `ConfigError` for a value that is none."""
    namespaces = watched_namespaces(environment)
    return etcd_operator(
        namespaces=namespaces,
        crds="verify" if namespaces else "install",
        endpoints=Endpoints(registry=REGISTRY),
        backups=_path(environment, "ETCD_OPERATOR_BACKUPS"),
        ambient=_path(environment, "ETCD_OPERATOR_AMBIENT"),
        python_image=environment.get("ETCD_OPERATOR_PYTHON_IMAGE") or PYTHON_IMAGE,
        max_snapshot_bytes=_size(environment.get("ETCD_OPERATOR_MAX_SNAPSHOT", "")),
        webhooks=_switch(environment, "ETCD_OPERATOR_WEBHOOKS"),
    )


def flags_of(environment: Mapping[str, str], given: Sequence[str]) -> list[str]:
    """Returns the flags of the program: those that are given, after those that the variables and defaults stand for.

    Metrics at another address than a loopback one are served with HTTPS, to those with a token.
    """
    return [*_flags(environment, given), *given]


def _flags(environment: Mapping[str, str], given: Sequence[str]) -> Iterator[str]:
    yield "--leader-elect"
    yield f"--health-probe-bind-address={environment.get('ETCD_OPERATOR_HEALTH', _HEALTH)}"
    if not any(each.startswith("--metrics-bind-address") for each in given):
        metrics = environment.get("ETCD_OPERATOR_METRICS", _METRICS)
        yield f"--metrics-bind-address={metrics}"
        if metrics.rpartition(":")[0] in _LOCAL:
            yield "--no-metrics-secure"


def watched_namespaces(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the namespaces; refuses patterns, because a pattern would need permissions in every namespace.

    The runtime reads WATCH_NAMESPACE too, so the two variables must not contradict each other.
    """
    own, general = (_names(environment, each) for each in ("ETCD_OPERATOR_NAMESPACES", "WATCH_NAMESPACE"))
    if own and "WATCH_NAMESPACE" in environment and set(own) != set(general):
        raise ConfigError(
            f"expected the same names, such as team-a,team-b, in ETCD_OPERATOR_NAMESPACES and WATCH_NAMESPACE, got "
            f"{','.join(own)!r} and {','.join(general)!r}; set one of them"
        )
    return own or general


def _names(environment: Mapping[str, str], variable: str) -> tuple[str, ...]:
    text = environment.get(variable, "")
    names = tuple(dict.fromkeys(each.strip() for each in text.split(","))) if text else ()
    for name in names:
        if not DNS_LABEL.allows(name):
            raise ConfigError(f"expected names such as team-a,team-b in {variable}, got {text!r}")
    return names


def _path(environment: Mapping[str, str], variable: str) -> Path | None:
    value = environment.get(variable)
    return Path(value) if value else None


def _switch(environment: Mapping[str, str], variable: str) -> bool:
    value = environment.get(variable, "no")
    if value not in {"yes", "no"}:
        raise ConfigError(f"expected yes or no in {variable}, got {value!r}")
    return value == "yes"


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
