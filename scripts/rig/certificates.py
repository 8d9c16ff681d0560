"""The cluster's own certificate authority; everything it signs lives as long as a test run."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from navarch.certificates import CertificateAuthority, CertificateSubject, KeyPair

LIFETIME = dt.timedelta(days=30)


@dataclass(frozen=True)
class Pair:
    """A certificate and its private key, as PEM files."""

    certificate: Path
    key: Path


class Authority:
    """A certificate authority that keeps what it issues in one folder, keys readable by the owner only."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._authority = CertificateAuthority.create("navarch-rig-ca", dt.datetime.now(dt.UTC), LIFETIME)
        self.pair = self._write("ca", self._authority.pair)

    def serving(self, name: str, hosts: Sequence[str]) -> Pair:
        """Issue a server's certificate for host names and addresses."""
        return self._issue(name, CertificateSubject(common_name=name, hosts=tuple(hosts)))

    def client(self, name: str, user: str, groups: Sequence[str] = ()) -> Pair:
        """Issue a certificate that authenticates as a user in groups."""
        return self._issue(name, CertificateSubject(common_name=user, organizations=tuple(groups), usages=("client",)))

    def _issue(self, name: str, subject: CertificateSubject) -> Pair:
        return self._write(name, self._authority.issue(subject, dt.datetime.now(dt.UTC), LIFETIME))

    def _write(self, name: str, made: KeyPair) -> Pair:
        pair = Pair(self._folder / f"{name}.crt", self._folder / f"{name}.key")
        pair.certificate.write_bytes(made.certificate)
        _write_private(pair.key, made.key)
        return pair


def write_key(path: Path) -> Path:
    """Write a new private key, in the only form of elliptic-curve keys that `--service-account-key-file` reads."""
    form = serialization.PrivateFormat.TraditionalOpenSSL
    key = ec.generate_private_key(ec.SECP256R1())
    return _write_private(path, key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))


def _write_private(path: Path, content: bytes) -> Path:
    """Write a file that its owner alone can read."""
    path.touch(mode=0o600)
    path.write_bytes(content)
    return path
