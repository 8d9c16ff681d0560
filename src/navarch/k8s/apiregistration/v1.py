"""apiregistration/v1 of Kubernetes v1.36.4. Generated: `python -m kubernetes_api generate`."""

from datetime import datetime
from typing import Annotated

from navarch.api import ListMap, Model, Object, field

__all__ = [
    "APIService",
    "APIServiceCondition",
    "APIServiceSpec",
    "APIServiceStatus",
    "ServiceReference",
]


class ServiceReference(Model):
    name: str | None = None
    namespace: str | None = None
    port: int | None = None


class APIServiceSpec(Model):
    group_priority_minimum: int
    version_priority: int
    ca_bundle: bytes | None = None
    group: str | None = None
    insecure_skip_tls_verify: bool | None = field(name="insecureSkipTLSVerify", default=None)
    service: ServiceReference | None = None
    version: str | None = None


class APIServiceCondition(Model):
    status: str
    type: str
    last_transition_time: datetime | None = None
    message: str | None = None
    reason: str | None = None


class APIServiceStatus(Model):
    conditions: Annotated[list[APIServiceCondition], ListMap("type")] | None = None


class APIService(
    Object,
    group="apiregistration.k8s.io",
    version="v1",
    plural="apiservices",
    namespaced=False,
    categories=("api-extensions",),
):
    spec: APIServiceSpec
    status: APIServiceStatus = field(default_factory=APIServiceStatus)
