"""node/v1 of Kubernetes v1.36.4. Generated: `python -m kubernetes_api generate`."""

from navarch.api import Model, Object
from navarch.api.quantity import Quantity
from navarch.k8s.core.v1 import Toleration

__all__ = [
    "Overhead",
    "RuntimeClass",
    "Scheduling",
]


class Overhead(Model):
    pod_fixed: dict[str, Quantity] | None = None


class Scheduling(Model):
    node_selector: dict[str, str] | None = None
    tolerations: list[Toleration] | None = None


class RuntimeClass(
    Object,
    group="node.k8s.io",
    version="v1",
    plural="runtimeclasses",
    namespaced=False,
    has_status=False,
):
    handler: str
    overhead: Overhead | None = None
    scheduling: Scheduling | None = None
