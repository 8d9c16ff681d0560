"""coordination/v1 of Kubernetes v1.36.4. Generated: `python -m kubernetes_api generate`."""

from navarch.api import Model, Object, field
from navarch.api.times import MicroTime

__all__ = [
    "Lease",
    "LeaseSpec",
]


class LeaseSpec(Model):
    acquire_time: MicroTime | None = None
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    lease_transitions: int | None = None
    preferred_holder: str | None = None
    renew_time: MicroTime | None = None
    strategy: str | None = None


class Lease(Object, group="coordination.k8s.io", version="v1", plural="leases", has_status=False):
    spec: LeaseSpec = field(default_factory=LeaseSpec)
