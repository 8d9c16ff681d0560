"""The rotation of a cluster's certificate authorities, and the subjects of its certificates.

etcd reads its trusted authorities only when it starts. So the operator first publishes a new authority, lets it sign only
after every member was started with it, and trusts the old one until it expires.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from navarch.certificates import (
    CertificateAuthority,
    CertificateSubject,
    KeyPair,
    encode_certificates,
    is_due,
    parse_certificates,
)
from navarch.errors import ConfigError

_VALID: Final = timedelta(days=3650)


@dataclass(frozen=True, slots=True, repr=False)
class AuthorityRotation:
    """The signing authority, the next one, and the former ones that are still trusted (PEM)."""

    side: str
    signer: CertificateAuthority | None = None
    heir: CertificateAuthority | None = None
    past: bytes = b""

    @classmethod
    def of(cls, side: str, data: Mapping[str, bytes], trusted: bytes) -> AuthorityRotation:
        """Reads the rotation from a Secret; if that was lost, the trusted authorities of the members remain."""
        signer, heir = _authority(data, f"{side}-ca"), _authority(data, f"{side}-next-ca")
        past = data.get(f"{side}-past-ca.crt", b"") if signer is not None else trusted
        return cls(side, signer, heir, past)

    @property
    def data(self) -> dict[str, bytes]:
        """Returns the data of its Secret."""
        pairs = ((f"{self.side}-ca", self.signer), (f"{self.side}-next-ca", self.heir))
        known = {name: authority.pair for name, authority in pairs if authority is not None}
        found = {f"{name}.crt": pair.certificate for name, pair in known.items()}
        found |= {f"{name}.key": pair.key for name, pair in known.items()}
        return found | ({f"{self.side}-past-ca.crt": self.past} if self.past else {})

    @property
    def trusted(self) -> bytes:
        """Returns all trusted certificates, in an order that does not depend on the signer."""
        pairs = [authority.pair.certificate for authority in (self.signer, self.heir) if authority is not None]
        every = {encode_certificates([each]) for each in parse_certificates(b"".join((*pairs, self.past)))}
        return b"".join(sorted(every))

    def advanced(self, name: str, now: datetime, *, known: bool) -> AuthorityRotation:
        """Returns the rotation one step further, if due; `known` means that every member trusts the current authorities."""
        past = encode_certificates([each for each in parse_certificates(self.past) if each.not_valid_after_utc > now])
        if self.signer is None and self.heir is None:
            made = _made(name, now)
            return (
                AuthorityRotation(self.side, heir=made, past=past)
                if past
                else AuthorityRotation(self.side, signer=made)
            )
        if self.heir is not None and known:
            old = self.signer.pair.certificate if self.signer is not None else b""
            return AuthorityRotation(self.side, signer=self.heir, past=past + old)
        due = self.signer is not None and is_due(self.signer.certificate, now)
        heir = _made(name, now) if due and self.heir is None else self.heir
        return AuthorityRotation(self.side, self.signer, heir, past)


def _made(name: str, now: datetime) -> CertificateAuthority:
    return CertificateAuthority.create(name[:_LONGEST_NAME], now, _VALID)


def _authority(data: Mapping[str, bytes], name: str) -> CertificateAuthority | None:
    try:
        return CertificateAuthority(KeyPair(data[f"{name}.crt"], data[f"{name}.key"]))
    except (KeyError, ConfigError):
        return None


_LONGEST_NAME: Final = 64
"""X.509's limit for names."""


def member_subject(name: str, hosts: tuple[str, ...]) -> CertificateSubject:
    """Returns the subject of a member. Members are clients too: of each other, and the gateway of its own member."""
    return CertificateSubject(common_name=name[:_LONGEST_NAME], hosts=hosts, usages=("server", "client"))


def client_subject(name: str) -> CertificateSubject:
    """Returns the subject of a client, without a common name: etcd would take it for a user, and its gateway refuses that."""
    return CertificateSubject(organizations=(name[:_LONGEST_NAME],), usages=("client",))
