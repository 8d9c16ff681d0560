"""Authorities that follow each other, so that nobody ever meets a certificate that is not trusted yet.

etcd reads whom it trusts only when it starts. So a new authority is made known first; only when every member was started
with it, it signs; and the one before is trusted until it expires.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from etcd_operator.trust.authority import Authority, Pair
from etcd_operator.trust.checking import certificates, is_due

__all__ = ["Line"]

_VALID: Final = timedelta(days=3650)


@dataclass(frozen=True, slots=True, repr=False)
class Line:
    """Who signs now, who will, and whose signatures still count, in PEM form."""

    side: str
    signer: Authority | None = None
    heir: Authority | None = None
    past: bytes = b""

    @classmethod
    def of(cls, side: str, data: Mapping[str, bytes], trusted: bytes) -> Line:
        """As it is in a Secret; if that was lost, those whom members trust are all that is left of it."""
        signer, heir = _authority(data, f"{side}-ca"), _authority(data, f"{side}-next-ca")
        past = data.get(f"{side}-past-ca.crt", b"") if signer is not None else trusted
        return cls(side, signer, heir, past)

    @property
    def data(self) -> dict[str, bytes]:
        """As it is put into a Secret."""
        pairs = ((f"{self.side}-ca", self.signer), (f"{self.side}-next-ca", self.heir))
        known = {name: authority.pair for name, authority in pairs if authority is not None}
        found = {f"{name}.crt": pair.certificate for name, pair in known.items()}
        found |= {f"{name}.key": pair.key for name, pair in known.items()}
        return found | ({f"{self.side}-past-ca.crt": self.past} if self.past else {})

    @property
    def trusted(self) -> bytes:
        """All that are trusted: the same text whoever of them signs."""
        pairs = [authority.pair.certificate for authority in (self.signer, self.heir) if authority is not None]
        every = {_text(each) for each in certificates(b"".join((*pairs, self.past)))} if pairs or self.past else set()
        return b"".join(sorted(every))

    def advanced(self, name: str, now: datetime, *, known: bool) -> Line:
        """One step further, if it is time; `known` if every member was started with those that are trusted now."""
        past = b"".join(_text(each) for each in certificates(self.past) if each.not_valid_after_utc > now)
        if self.signer is None and self.heir is None:
            made = _made(name, now)
            return Line(self.side, heir=made, past=past) if past else Line(self.side, signer=made)
        if self.heir is not None and known:
            old = self.signer.pair.certificate if self.signer is not None else b""
            return Line(self.side, signer=self.heir, past=past + old)
        due = self.signer is not None and is_due(self.signer.certificate, now)
        heir = _made(name, now) if due and self.heir is None else self.heir
        return Line(self.side, self.signer, heir, past)


def _made(name: str, now: datetime) -> Authority:
    return Authority.make(name, now, _VALID)


def _authority(data: Mapping[str, bytes], name: str) -> Authority | None:
    try:
        return Authority(Pair(data[f"{name}.crt"], data[f"{name}.key"]))
    except (KeyError, ValueError, TypeError):
        return None


def _text(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
