"""Certificates that the cluster signs: who may let it, and what they are good for."""

from __future__ import annotations

import asyncio
import ssl
from http.client import HTTPSConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from navarch.api import Dynamic
from navarch.client import Client
from navarch.cluster.embedded.cluster import EmbeddedCluster
from navarch.errors import Forbidden
from navarch.k8s.certificates.v1 import (
    CertificateSigningRequest,
    CertificateSigningRequestCondition,
    CertificateSigningRequestSpec,
)
from navarch.testing.cluster import Cluster

RBAC = "rbac.authorization.k8s.io"


def _asked(key: ec.EllipticCurvePrivateKey) -> CertificateSigningRequest:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ann")])
    request = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    pem = request.public_bytes(serialization.Encoding.PEM)
    signer = "kubernetes.io/kube-apiserver-client"
    spec = CertificateSigningRequestSpec(request=pem, signer_name=signer, usages=["client auth"])
    return CertificateSigningRequest(name="ann", spec=spec)


async def _approve(client: Client) -> None:
    request = await client.get(CertificateSigningRequest, "ann")
    approved = CertificateSigningRequestCondition(type="Approved", status="True", reason="Test", message="x")
    request.status.conditions = [approved]
    await client.replace(request, subresource="approval")


async def _allow(client: Client, *rules: dict[str, list[str]]) -> None:
    """Gives `bob` these rights, beside those he has."""
    name = f"bob-{len(rules[0]['resources'])}-{rules[0]['verbs'][0]}"
    head = {"apiVersion": f"{RBAC}/v1", "metadata": {"name": name}}
    await client.create(Dynamic({**head, "kind": "ClusterRole", "rules": [*rules]}))
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": name}
    bob = {"apiGroup": RBAC, "kind": "User", "name": "bob"}
    await client.create(Dynamic({**head, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": [bob]}))


async def test_approval_needs_a_right_for_the_signer() -> None:
    """To write approvals is not enough."""
    group = {"apiGroups": ["certificates.k8s.io"]}
    async with EmbeddedCluster() as embedded:
        client, bob = embedded.client(), embedded.client_as("bob")
        await client.create(_asked(ec.generate_private_key(ec.SECP256R1())))
        requests = ["certificatesigningrequests", "certificatesigningrequests/approval"]
        await _allow(client, {**group, "resources": requests, "verbs": ["get", "update"]})
        with pytest.raises(Forbidden, match="user not permitted to approve requests with signerName"):
            await _approve(bob)
        signers = {**group, "resources": ["signers"], "resourceNames": ["kubernetes.io/*"], "verbs": ["approve"]}
        await _allow(client, signers)
        await _approve(bob)


async def test_certificate_proves_who_it_was_signed_for(http_cluster: Cluster, tmp_path: Path) -> None:
    """To the server of the same cluster."""
    key, access = ec.generate_private_key(ec.SECP256R1()), http_cluster.access
    assert access is not None
    await http_cluster.client.create(_asked(key))
    await _approve(http_cluster.client)
    found = await http_cluster.eventually(
        lambda: http_cluster.get(CertificateSigningRequest, "ann"), lambda request: request.status.certificate
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (tmp_path / "ann.pem").write_bytes((found.status.certificate or b"") + private)
    assert b'User \\"ann\\" cannot list' in await asyncio.to_thread(_namespaces, access.url, access.authority, tmp_path)


def _namespaces(url: str, authority: bytes, folder: Path) -> bytes:
    parts, context = urlsplit(url), ssl.create_default_context(cadata=authority.decode())
    context.load_cert_chain(folder / "ann.pem")
    connection = HTTPSConnection(parts.hostname or "", parts.port, context=context, timeout=30)
    try:
        connection.request("GET", "/api/v1/namespaces")
        return connection.getresponse().read()
    finally:
        connection.close()
