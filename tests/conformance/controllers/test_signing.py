"""Certificates for those who ask for them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from conformance.controllers.watching import until
from navarch.client import Client
from navarch.errors import Forbidden
from navarch.k8s.certificates.v1 import (
    CertificateSigningRequest,
    CertificateSigningRequestCondition,
    CertificateSigningRequestSpec,
)

SIGNER = "kubernetes.io/kube-apiserver-client"
_numbers = itertools.count(1)


def _request(name: str, usages: Sequence[str], **organization: str) -> CertificateSigningRequest:
    names = [x509.NameAttribute(NameOID.COMMON_NAME, "ann")]
    names += [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organization.values()]
    key = ec.generate_private_key(ec.SECP256R1())
    asked = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(names)).sign(key, hashes.SHA256())
    pem = asked.public_bytes(serialization.Encoding.PEM)
    spec = CertificateSigningRequestSpec(request=pem, signer_name=SIGNER, usages=[*usages], expiration_seconds=3600)
    return CertificateSigningRequest(name=name, spec=spec)


async def _approved(client: Client, usages: Sequence[str], decision: str = "Approved") -> str:
    name = f"{client.options.namespace}-{next(_numbers)}"
    made = await client.create(_request(name, usages, group="developers"))
    made.status.conditions = [
        CertificateSigningRequestCondition(type=decision, status="True", reason="Test", message="x")
    ]
    await client.replace(made, subresource="approval")
    return name


async def test_approved_request_gets_its_certificate(client: Client) -> None:
    """For a client of that name and those groups, for as long as it was asked for."""
    name = await _approved(client, ["client auth", "digital signature"])
    read = partial(client.get, CertificateSigningRequest, name)
    found = await until(read, lambda request: request.status.certificate, "a certificate")
    certificate = x509.load_pem_x509_certificate(found.status.certificate or b"")
    assert certificate.subject.rfc4514_string() in {"O=developers,CN=ann", "CN=ann,O=developers"}
    usage: Any = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert [*usage] == [ExtendedKeyUsageOID.CLIENT_AUTH]
    lasting = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    assert 3600 <= lasting.total_seconds() <= 3600 + 600
    await client.delete(CertificateSigningRequest, name)


async def test_request_that_makes_no_sense_fails(client: Client) -> None:
    """In a condition that says why."""
    name = await _approved(client, ["server auth"])
    read = partial(client.get, CertificateSigningRequest, name)
    found = await until(read, lambda request: len(request.status.conditions or []) > 1, "a verdict")
    failed = next(each for each in found.status.conditions or [] if each.type == "Failed")
    assert (failed.reason, failed.message) == (
        "SignerValidationFailure",
        "invalid usage for client certificate: server auth",
    )
    assert not found.status.certificate
    await client.delete(CertificateSigningRequest, name)


async def test_nobody_becomes_a_master_by_a_certificate(client: Client) -> None:
    """Such a request is not even taken."""
    with pytest.raises(Forbidden, match="signer with system:masters group is not allowed"):
        await client.create(_request("master", ["client auth"], group="system:masters"))
