"""An environment without a cluster, certificates of our own, and exec plugins as shell scripts."""

import json
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

START = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "POD_NAMESPACE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


class Pair(NamedTuple):
    """A certificate and its key, as objects and as PEM."""

    certificate: x509.Certificate
    private: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key(self) -> bytes:
        return self.private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )

    @property
    def encrypted_key(self) -> bytes:
        return self.private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"passphrase"),
        )


Issue = Callable[..., Pair]


@pytest.fixture(scope="session")
def issue() -> Issue:
    """Makes a certificate; signed by `by`, or by itself as a CA."""

    def make(name: str, by: Pair | None = None, begin: datetime = START, days: int = 365) -> Pair:
        private = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(by.certificate.subject if by else subject)
            .public_key(private.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begin)
            .not_valid_after(begin + timedelta(days=days))
            .add_extension(x509.BasicConstraints(ca=by is None, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        )
        return Pair(builder.sign(by.private if by else private, hashes.SHA256()), private)

    return make


class Pki(NamedTuple):
    """A CA, and a client and a server that it vouches for; valid for long."""

    ca: Pair
    client: Pair
    server: Pair


@pytest.fixture(scope="session")
def pki(issue: Issue) -> Pki:
    begin = datetime(2020, 1, 1, tzinfo=UTC)
    ca = issue("ca", begin=begin, days=36500)
    return Pki(ca, issue("client", ca, begin, 36500), issue("api.example", ca, begin, 36500))


Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a kubeconfig with one context, changed by the entries given; returns its path."""

    def make(
        name: str = "config", *, cluster: Mapping[str, Any] | None = None, user: Any = None, **fields: Any
    ) -> Path:
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "dev",
            "contexts": [{"name": "dev", "context": {"cluster": "c", "user": "u", "namespace": "shop"}}],
            "clusters": [{"name": "c", "cluster": {"server": "https://api.example:6443", **(cluster or {})}}],
            "users": [{"name": "u", "user": {} if user is None else user}],
            **fields,
        }
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(content), encoding="utf-8")
        return path

    return make


Plugin = Callable[..., Path]


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    """Writes an exec plugin: a shell script that notes each run in `runs` and then does what `body` says."""

    def make(body: str, name: str = "plugin") -> Path:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\necho run >> {tmp_path}/runs\n{body}\n", encoding="utf-8")
        path.chmod(0o700)
        return path

    return make


@pytest.fixture
def runs(tmp_path: Path) -> Callable[[], int]:
    """How often a plugin has run."""
    return lambda: (tmp_path / "runs").read_text().count("run") if os.path.exists(tmp_path / "runs") else 0  # noqa: PTH110 - one line


def printed(version: str = "v1", **status: Any) -> str:
    """The shell command that prints an ExecCredential with this status."""
    answer = {"apiVersion": f"client.authentication.k8s.io/{version}", "kind": "ExecCredential", "status": status}
    return f"cat <<'END'\n{json.dumps(answer)}\nEND"


@pytest.fixture(name="printed")
def printed_fixture() -> Callable[..., str]:
    return printed
