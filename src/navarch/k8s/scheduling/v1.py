"""scheduling/v1 of Kubernetes v1.36.4. Generated: `python -m kubernetes_api generate`."""

from navarch.api import Object

__all__ = [
    "PriorityClass",
]


class PriorityClass(
    Object,
    group="scheduling.k8s.io",
    version="v1",
    plural="priorityclasses",
    namespaced=False,
    has_status=False,
    short_names=("pc",),
):
    description: str | None = None
    global_default: bool | None = None
    preemption_policy: str | None = None
    value: int | None = None
