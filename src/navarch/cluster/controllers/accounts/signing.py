"""Certificates for clients: requests that somebody has approved are signed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from navarch.api import truncate_to_seconds
from navarch.controller import Context, any_change
from navarch.k8s.certificates.v1 import CertificateSigningRequest, CertificateSigningRequestCondition
from navarch.operator import Operator

Sign = Callable[[bytes, int | None], bytes]
"""The certificate for a request, both as PEM, for so many seconds; raises ValueError for what is no request."""

_SIGNER: Final = "kubernetes.io/kube-apiserver-client"
_CLIENT: Final = "client auth"
_USAGES: Final = frozenset({"digital signature", "key encipherment", _CLIENT})


def declare(operator: Operator, sign: Sign) -> None:
    """Adds the controller of requests for certificates that prove a client to the API server."""

    @operator.controller(CertificateSigningRequest, when=any_change, name="csrsigning")
    async def issue(request: CertificateSigningRequest, ctx: Context) -> None:
        spec, status = request.spec, request.status
        told = {each.type for each in status.conditions or () if each.status != "False"}
        if spec.signer_name != _SIGNER or status.certificate or "Approved" not in told or {"Denied", "Failed"} & told:
            return
        try:
            _refuse_usages(spec.usages or [])
            status.certificate = sign(spec.request, spec.expiration_seconds)
        except ValueError as error:
            status.conditions = [*(status.conditions or ()), _failed(str(error), ctx.now())]


def _refuse_usages(usages: Sequence[str]) -> None:
    for usage in usages:
        if usage not in _USAGES:
            raise ValueError(f"invalid usage for client certificate: {usage}")
    if _CLIENT not in usages:
        raise ValueError(f"missing required usage for client certificate: {_CLIENT}")


def _failed(why: str, now: datetime) -> CertificateSigningRequestCondition:
    moment = truncate_to_seconds(now)
    return CertificateSigningRequestCondition(
        type="Failed",
        status="True",
        reason="SignerValidationFailure",
        message=why,
        last_update_time=moment,
        last_transition_time=moment,
    )
