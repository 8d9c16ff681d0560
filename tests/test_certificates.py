"""Certificates: issued, parsed and checked, at a time that is given."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from certificates import handshake, server_context
from navarch._base.clock import SystemClock
from navarch.certificates import (
    CertificateAuthority,
    CertificateSubject,
    KeyPair,
    encode_certificates,
    hosts_of,
    is_due,
    is_key_of,
    is_signed_by,
    parse_certificates,
    parse_key,
    renewal_time,
)
from navarch.errors import ConfigError

NOW = datetime(2030, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
SERVER = CertificateSubject(common_name="hook", hosts=("hook.default.svc", "localhost", "127.0.0.1", "::1"))


def authority(lifetime: timedelta = 365 * DAY) -> CertificateAuthority:
    return CertificateAuthority.create("test-ca", NOW, lifetime)


@pytest.mark.parametrize("host", SERVER.hosts)
def test_strict_client_trusts_what_an_authority_issues(host: str) -> None:
    """For each of its names and addresses, with the extensions that strict clients demand; for no other."""
    now = SystemClock().now()
    made = CertificateAuthority.create("test-ca", now, DAY)
    pair = made.issue(SERVER, now, DAY)
    handshake(server_context(pair), made.pair.certificate, host)
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        handshake(server_context(pair), made.pair.certificate, "elsewhere.example.com")
    other = CertificateAuthority.create("test-ca", now, DAY)
    with pytest.raises(ssl.SSLCertVerificationError, match=r"signature|unable to get local issuer"):
        handshake(server_context(pair), other.pair.certificate, host)


def test_subject_has_user_groups_hosts_and_usages() -> None:
    """Kubernetes reads the user from the common name and the groups from the organizations."""
    user = CertificateSubject(common_name="ann", organizations=("dev", "ops"), usages=("client",))
    (client,) = parse_certificates(authority().issue(user, NOW, DAY).certificate)
    assert client.subject.rfc4514_string() == "CN=ann,O=ops,O=dev"
    usage: x509.ExtendedKeyUsage = client.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert hosts_of(client) == ()
    (server,) = parse_certificates(authority().issue(SERVER, NOW, DAY).certificate)
    assert tuple(hosts_of(server)) == SERVER.hosts
    assert not server.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def test_certificate_begins_early_and_ends_with_its_authority() -> None:
    """Clocks differ; and nothing is trusted longer than its authority."""
    (short,) = parse_certificates(authority().issue(SERVER, NOW, DAY, skew=timedelta(hours=2)).certificate)
    assert (short.not_valid_before_utc, short.not_valid_after_utc) == (NOW - timedelta(hours=2), NOW + DAY)
    (long,) = parse_certificates(authority(10 * DAY).issue(SERVER, NOW, 20 * DAY).certificate)
    assert (long.not_valid_before_utc, long.not_valid_after_utc) == (NOW - timedelta(minutes=5), NOW + 10 * DAY)


def test_certificate_is_due_when_a_third_of_its_lifetime_is_left() -> None:
    """Not a second earlier."""
    made = CertificateAuthority.create("ca", NOW, 90 * DAY, skew=timedelta()).certificate
    assert renewal_time(made) == NOW + 60 * DAY
    assert not is_due(made, NOW + 60 * DAY - timedelta(seconds=1))
    assert is_due(made, NOW + 60 * DAY)


def test_key_belongs_to_one_certificate() -> None:
    """The key of another certificate does not match."""
    made = authority()
    one, two = made.issue(SERVER, NOW, DAY), made.issue(SERVER, NOW, DAY)
    (certificate,) = parse_certificates(one.certificate)
    own, other = parse_key(one.key), parse_key(two.key)
    assert own is not None
    assert other is not None
    assert is_key_of(own, certificate)
    assert not is_key_of(other, certificate)


def test_bundle_has_every_certificate() -> None:
    """PEM texts are joined and parsed; a chain leads to any authority of a bundle."""
    one, two = authority(), authority()
    bundle = encode_certificates([one.certificate, two.certificate])
    assert [*parse_certificates(bundle)] == [one.certificate, two.certificate]
    leaf = parse_certificates(two.issue(SERVER, NOW, DAY).certificate)
    assert is_signed_by(leaf, parse_certificates(bundle))
    assert not is_signed_by(leaf, [one.certificate])


def _rsa_key() -> bytes:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


@pytest.mark.parametrize(
    ("certificate", "key", "message"),
    [
        (b"rubbish", None, "expected the certificate and the private key of an authority"),
        (None, b"rubbish", "expected the certificate and the private key of an authority"),
        (None, authority().pair.key, "got the key of another one"),
        (None, _rsa_key(), "expected a private key on an elliptic curve, got RSAPrivateKey"),
    ],
)
def test_unusable_authority_is_refused(certificate: bytes | None, key: bytes | None, message: str) -> None:
    """The error shows nothing of the key."""
    pair = authority().pair
    with pytest.raises(ConfigError, match=message) as caught:
        CertificateAuthority(KeyPair(certificate or pair.certificate, key or pair.key))
    assert "rubbish" not in str(caught.value)
    assert "BEGIN" not in f"{caught.value} {pair!r}"


@pytest.mark.parametrize("text", [b"", b"rubbish", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
def test_malformed_pem_is_no_certificate_and_no_key(text: bytes) -> None:
    """It is not an exception."""
    assert parse_certificates(text) == ()
    assert parse_key(text) is None


def test_request_of_a_client_is_signed() -> None:
    """With the subject and key of the request; anything else is refused."""
    made, key = authority(), ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ann")])
    request = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    signed = parse_certificates(made.sign_request(request.public_bytes(serialization.Encoding.PEM), NOW, DAY))
    assert signed[0].subject == name
    assert is_key_of(key, signed[0])
    assert is_signed_by(signed, [made.certificate])
    with pytest.raises(ValueError, match="PEM"):
        made.sign_request(b"rubbish", NOW, DAY)
