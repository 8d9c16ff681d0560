"""certificates/v1 of Kubernetes v1.36.4. Generated: `python -m kubernetes_api generate`."""

from datetime import datetime
from typing import Annotated

from navarch.api import ListMap, Model, Object, field

__all__ = [
    "CertificateSigningRequest",
    "CertificateSigningRequestCondition",
    "CertificateSigningRequestSpec",
    "CertificateSigningRequestStatus",
]


class CertificateSigningRequestSpec(Model):
    request: bytes
    signer_name: str
    expiration_seconds: int | None = None
    extra: dict[str, list[str]] | None = None
    groups: list[str] | None = None
    uid: str | None = None
    usages: list[str] | None = None
    username: str | None = None


class CertificateSigningRequestCondition(Model):
    status: str
    type: str
    last_transition_time: datetime | None = None
    last_update_time: datetime | None = None
    message: str | None = None
    reason: str | None = None


class CertificateSigningRequestStatus(Model):
    certificate: bytes | None = None
    conditions: Annotated[list[CertificateSigningRequestCondition], ListMap("type")] | None = None


class CertificateSigningRequest(
    Object,
    group="certificates.k8s.io",
    version="v1",
    plural="certificatesigningrequests",
    namespaced=False,
    short_names=("csr",),
):
    spec: CertificateSigningRequestSpec
    status: CertificateSigningRequestStatus = field(default_factory=CertificateSigningRequestStatus)
