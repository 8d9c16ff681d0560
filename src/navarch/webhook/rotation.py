"""The rotation of a webhook server's certificates, as pure decisions about the content of one Secret.

`Keyring` is that content, `next_step` the next change of it:

```
create ──► steady ──► publish ──► sign ──► steady          restore, trust: the Secret was lost or replaced
             │ ▲                             │ ▲
             └─┘ renew                       └─┘ drop
```

The invariant: a replica that serves any certificate that was ever in the Secret and has not expired is trusted by every
client that has the published bundle. So a new CA joins the bundle (`publish`) and signs (`sign`) only once every
configuration has that bundle. An old CA leaves the bundle (`drop`) when the last certificate that it signed has expired:
no replica needs to be asked what it serves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final, Literal

from cryptography import x509

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
from navarch.webhook.certificate_options import Certificates

__all__ = ["Action", "Keyring", "RotationStep", "due_at", "next_step"]

Action = Literal["create", "restore", "trust", "renew", "publish", "sign", "drop"]
"""A change of the Secret.

- `create`: a CA and a serving certificate, where there was nothing usable.
- `restore`: the content that this replica has in memory; the Secret was deleted or emptied.
- `trust`: the Secret was replaced by an unrelated one; the CA of this replica's certificate joins its bundle.
- `renew`: a new serving certificate of the same CA. `publish`: a new CA joins the bundle. `sign`: it signs, and the old
  CA stays in the bundle. `drop`: a CA leaves the bundle, because all of its certificates have expired.
"""

_SKEW: Final = timedelta(hours=2)
"""Certificates are valid from this long before their issue, and expired CAs stay trusted this long: clocks of replicas and
API servers may differ by an hour each way."""
_CA, _NEXT, _SERVING = "ca", "next-ca", "tls"
_PAST_CAS, _PAST_CERTIFICATES = "past-ca.crt", "past-tls.crt"
KEYS: Final = (
    *(f"{name}.{part}" for name in (_CA, _NEXT, _SERVING) for part in ("crt", "key")),
    _PAST_CAS,
    _PAST_CERTIFICATES,
)
"""The keys of the Secret's data. Others are left alone."""


@dataclass(frozen=True, slots=True, repr=False)
class Keyring:
    """The content of the Secret. A part that is missing, malformed or does not fit the others is None."""

    signer: CertificateAuthority | None = None
    """The CA that signs; None if its key was lost."""
    following: CertificateAuthority | None = None
    """The next CA: in the bundle, and does not sign yet."""
    serving: KeyPair | None = None
    """The certificate that replicas serve."""
    past_cas: tuple[x509.Certificate, ...] = ()
    """CAs that no longer sign. Each has signed a certificate that has not expired."""
    past_certificates: tuple[x509.Certificate, ...] = ()
    """Serving certificates of before, without their keys."""
    certificate: x509.Certificate | None = field(init=False)
    """That of `serving`, parsed."""

    def __post_init__(self) -> None:
        parsed = parse_certificates(self.serving.certificate)[0] if self.serving is not None else None
        object.__setattr__(self, "certificate", parsed)

    @classmethod
    def of(cls, data: Mapping[str, bytes] | None) -> Keyring:
        """Parses the Secret's data; None if the Secret does not exist. Whatever it holds, this raises nothing."""
        data = data or {}
        signer, following = _authority(data, _CA), _authority(data, _NEXT)
        past = tuple(parse_certificates(data.get(_PAST_CAS, b"")))
        if signer is None:  # without its key it cannot sign, but what it signed is still served
            past = (*past, *(parse_certificates(data.get(f"{_CA}.crt", b""))[:1]))
        made = cls(signer, following, None, past, tuple(parse_certificates(data.get(_PAST_CERTIFICATES, b""))))
        return replace(made, serving=_serving(data, made.authorities))

    @property
    def authorities(self) -> list[x509.Certificate]:
        """The trusted CAs."""
        own = [each.certificate for each in (self.signer, self.following) if each is not None]
        return [*own, *self.past_cas]

    @property
    def issuer(self) -> x509.Certificate | None:
        """The CA that signed the serving certificate."""
        if self.certificate is None:
            return None
        return next((each for each in self.authorities if is_signed_by([self.certificate], [each])), None)

    @property
    def bundle(self) -> bytes:
        """The trusted CAs as PEM, in an order that does not change when the next CA begins to sign."""
        return b"".join(sorted({encode_certificates([each]) for each in self.authorities}))

    @property
    def data(self) -> dict[str, bytes]:
        """The Secret's data."""
        authorities = {_CA: self.signer, _NEXT: self.following}
        pairs = {name: each.pair for name, each in authorities.items() if each is not None}
        if self.serving is not None:
            pairs[_SERVING] = self.serving
        found = {f"{name}.crt": pair.certificate for name, pair in pairs.items()}
        found |= {f"{name}.key": pair.key for name, pair in pairs.items()}
        past = {_PAST_CAS: self.past_cas, _PAST_CERTIFICATES: self.past_certificates}
        return found | {key: encode_certificates(each) for key, each in past.items() if each}

    def is_usable(self, now: datetime) -> bool:
        """Reports whether there is a serving certificate that has not expired."""
        return self.certificate is not None and now < self.certificate.not_valid_after_utc


def _authority(data: Mapping[str, bytes], name: str) -> CertificateAuthority | None:
    try:
        return CertificateAuthority(KeyPair(data[f"{name}.crt"], data[f"{name}.key"]))
    except (KeyError, ConfigError):
        return None


def _serving(data: Mapping[str, bytes], authorities: list[x509.Certificate]) -> KeyPair | None:
    pair = KeyPair(data.get(f"{_SERVING}.crt", b""), data.get(f"{_SERVING}.key", b""))
    chain, key = parse_certificates(pair.certificate), parse_key(pair.key)
    if not chain or key is None or not is_key_of(key, chain[0]) or not is_signed_by(chain[:1], authorities):
        return None
    return pair


@dataclass(frozen=True, slots=True)
class RotationStep:
    """One change of the Secret: what it is, and the whole content after it."""

    action: Action
    keyring: Keyring = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationGoal:
    """What the serving certificate is for, and how long certificates live."""

    name: str
    """The common name of the serving certificate, and the beginning of the CA's."""
    hosts: tuple[str, ...]
    options: Certificates


def next_step(
    found: Keyring, known: Keyring | None, goal: RotationGoal, now: datetime, *, published: bool
) -> RotationStep | None:
    """Returns the next change of the Secret, None if none is due.

    `known` is the content that this replica used last. `published` means that every configuration has had the bundle of
    `found` for long enough.
    """
    lost = _recovery(found, known, now)
    if lost is not None:
        return lost
    found, changed = _without_expired(found, now)
    signer, following = found.signer, found.following
    if not found.is_usable(now) and signer is None:
        authority = following or _new_authority(goal, now)
        return RotationStep("create", _signed(replace(found, following=None), authority, goal, now))
    if following is not None and published:
        past = found.past_cas if signer is None else (*found.past_cas, signer.certificate)
        return RotationStep("sign", _signed(replace(found, following=None, past_cas=past), following, goal, now))
    if signer is not None and _needs_renewal(found, signer, goal, now):
        return RotationStep("renew", _signed(found, signer, goal, now))
    if following is None and (signer is None or is_due(signer.certificate, now)):
        return RotationStep("publish", replace(found, following=_new_authority(goal, now)))
    return RotationStep("drop", found) if changed else None


def _recovery(found: Keyring, known: Keyring | None, now: datetime) -> RotationStep | None:
    """Returns what to do about a Secret that lost the CA of the certificate that this replica serves."""
    if known is None or known.certificate is None or not known.is_usable(now):
        return None
    if found.signer is None and not found.is_usable(now):
        return RotationStep("restore", known)
    if is_signed_by([known.certificate], found.authorities):
        return None
    past = (*found.past_certificates, *known.past_certificates, known.certificate)
    joined = replace(
        found, past_cas=(*found.past_cas, *known.authorities), past_certificates=tuple(dict.fromkeys(past))
    )
    return RotationStep("trust", _without_expired(joined, now)[0])


def _without_expired(found: Keyring, now: datetime) -> tuple[Keyring, bool]:
    """Drops expired parts; returns whether there were any."""
    certificates = tuple(each for each in found.past_certificates if not _is_over(each, now))
    served = [*certificates, *([found.certificate] if found.certificate is not None else [])]
    cas = tuple(each for each in dict.fromkeys(found.past_cas) if any(is_signed_by([leaf], [each]) for leaf in served))
    signer, following = (
        None if each is None or now >= each.certificate.not_valid_after_utc else each
        for each in (found.signer, found.following)
    )
    left = replace(found, signer=signer, following=following, past_cas=cas, past_certificates=certificates)
    return left, left.data != found.data


def _is_over(certificate: x509.Certificate, now: datetime) -> bool:
    return now >= certificate.not_valid_after_utc + _SKEW


def _needs_renewal(found: Keyring, signer: CertificateAuthority, goal: RotationGoal, now: datetime) -> bool:
    certificate = found.certificate
    if certificate is None or not is_signed_by([certificate], [signer.certificate]):
        return True
    if not {*goal.hosts} <= {*hosts_of(certificate)}:
        return True
    # A certificate that ends with its CA cannot be extended: only the next CA can do that.
    return is_due(certificate, now) and certificate.not_valid_after_utc < signer.certificate.not_valid_after_utc


def _signed(found: Keyring, signer: CertificateAuthority, goal: RotationGoal, now: datetime) -> Keyring:
    """Returns the keyring with a new serving certificate, and remembers the one before.

    It keeps names of a certificate that lacks a wanted one: in a rolling update, replicas that want different names
    would else take turns in replacing it.
    """
    before, hosts = found.certificate, goal.hosts
    if before is not None and not {*hosts} <= {*hosts_of(before)}:
        hosts = tuple(dict.fromkeys((*hosts, *hosts_of(before))))
    lifetime = goal.options.lifetime
    subject = CertificateSubject(common_name=goal.name[:_LONGEST_NAME], hosts=hosts)
    past = (*found.past_certificates, before) if before is not None else found.past_certificates
    return replace(
        found,
        signer=signer,
        serving=signer.issue(subject, now, lifetime, skew=_skew(lifetime)),
        past_certificates=past,
    )


_LONGEST_NAME: Final = 64


def _new_authority(goal: RotationGoal, now: datetime) -> CertificateAuthority:
    lifetime = goal.options.ca_lifetime
    name = (
        f"{goal.name[: _LONGEST_NAME - 15]}-ca@{int(now.timestamp())}"  # clients find the right CA faster by its name
    )
    return CertificateAuthority.create(name, now, lifetime, skew=_skew(lifetime))


def _skew(lifetime: timedelta) -> timedelta:
    """Returns a skew that leaves the time of renewal where it is: near two thirds of the lifetime."""
    return min(_SKEW, lifetime / 10)


def due_at(found: Keyring, now: datetime) -> datetime | None:
    """Returns the time after `now` at which `next_step` may decide otherwise; None if there is none."""
    times = [each.not_valid_after_utc + _SKEW for each in found.past_certificates]
    times += [time for each in _current(found) for time in (renewal_time(each), each.not_valid_after_utc)]
    return min((time for time in times if time > now), default=None)


def _current(found: Keyring) -> Iterable[x509.Certificate]:
    authorities = (each.certificate for each in (found.signer, found.following) if each is not None)
    return (*authorities, *([found.certificate] if found.certificate is not None else []))
