"""Every recording. Each is declared beside its questions; a line here makes those of a module known to `make judge`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from judge.recording import Recording

MODULES = (
    "cluster.access.record",
    "cluster.admission.record",
    "cluster.builtin.record",
    "cluster.custom.record",
    "cluster.fields.record",
    "conformance.rights_table",
    "conformance.write_table",
    "project.charts",
    "security.pod_security_record",
    "kubernetes_api.bootstrap_roles",
    "kubernetes_api.protobuf",
    "etcd_guide",
)


def recordings() -> dict[str, Recording[Any]]:
    """Returns the recordings by name."""
    values = (value for module in MODULES for value in vars(import_module(module)).values())
    return {value.name: value for value in values if isinstance(value, Recording)}
