"""CertificateSigningRequests: rules, checks, columns, and the strategies of `approval` and `status`.

The spec is fixed when the request is created. Only `approval` adds the conditions `Approved` and `Denied`, only `status` adds the
certificate; no write removes or replaces either.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from typing import Any, Final

from navarch.api.names import DNS_LABEL, DNS_SUBDOMAIN
from navarch.api.strconv import go_quoted
from navarch.cluster.server.kinds.builtin.generic.columns import NONE, Ages, human_duration, joined, name_of, selectable
from navarch.cluster.server.kinds.builtin.generic.strategy import BuiltinStatusStrategy, Rules, path_segment_faults
from navarch.cluster.server.objects.metadata import metadata_update_faults
from navarch.cluster.server.objects.types import WriteContext
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_causes import duplicate, forbidden, invalid, required, unsupported
from navarch.errors import Cause

_APPROVED: Final = "Approved"
_DENIED: Final = "Denied"
_DECISIONS: Final = (_APPROVED, _DENIED)
_LASTING: Final = (*_DECISIONS, "Failed")
_STATUSES: Final = ("False", "True", "Unknown")
_CONDITIONS: Final = "status.conditions"
_CERTIFICATE: Final = "status.certificate"
_LEGACY_SIGNER: Final = "kubernetes.io/legacy-unknown"
_LEAST_SECONDS: Final = 600
_USAGES: Final = (
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
)


def check_signing_request(value: Json) -> Iterator[Cause]:
    """A new request; one that is there keeps its spec."""
    spec = value["spec"]
    if why := _request_fault(spec.get("request") or ""):
        yield invalid("spec.request", spec.get("request") or "", why)
    usages = spec.get("usages") or []
    if not usages:
        yield required("spec.usages")
    seen: set[str] = set()
    for index, usage in enumerate(usages):
        if usage not in _USAGES:
            yield unsupported(f"spec.usages[{index}]", usage, _USAGES)
        if usage in seen:
            yield duplicate(f"spec.usages[{index}]", usage)
        seen.add(usage)
    yield from _signer_faults(spec.get("signerName") or "")
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < _LEAST_SECONDS:
        why = "may not specify a duration less than 600 seconds (10 minutes)"
        yield invalid("spec.expirationSeconds", seconds, why)


def _request_fault(request: str) -> str:
    from cryptography import x509  # noqa: PLC0415 - few ask for certificates
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415

    try:
        read = x509.load_pem_x509_csr(b64decode(request))
    except ValueError:
        return "PEM block type must be CERTIFICATE REQUEST"
    try:
        return "" if read.is_signature_valid else "x509: the signature does not fit the key"
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return "x509: cannot verify signature: algorithm unimplemented"


def _signer_faults(name: str) -> Iterator[Cause]:
    field = "spec.signerName"
    domain, _, path = name.partition("/")
    if not name:
        yield required(field)
    elif name == _LEGACY_SIGNER:
        yield invalid(field, name, "the legacy signerName is not allowed via this API version")
    elif not path or "/" in path:
        yield invalid(field, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'")
    else:
        for part, rule in ((domain, DNS_LABEL), (path, DNS_SUBDOMAIN)):
            told = next(
                (f"validating label {go_quoted(each)}: {why}" for each in part.split(".") for why in rule.faults(each)),
                "",
            )
            if told:
                yield invalid(field, part, told)
        if "." not in domain:
            yield invalid(field, domain, "should be a domain with at least two segments separated by dots")


class ApprovalStrategy(BuiltinStatusStrategy):
    """`certificatesigningrequests/approval`: whether a certificate is issued. The certificate itself is kept."""

    def prepare_update(self, value: Json, old: Json, operation: WriteContext) -> None:
        """Says when conditions came, where the client does not."""
        super().prepare_update(value, old, operation)
        before = _conditions(old)
        value["status"] = status = {**(value.get("status") or {})}
        if status.get("conditions"):
            status["conditions"] = [_timed(each, before, operation.now) for each in status["conditions"]]

    def validate_update(self, value: Json, old: Json) -> list[Cause]:
        """Metadata, and conditions that fit together."""
        return [*metadata_update_faults(value, old), *_condition_faults(_conditions(value), _conditions(old))]


class SigningStrategy(ApprovalStrategy):
    """`certificatesigningrequests/status`: the certificate, or why there is none."""

    def prepare_update(self, value: Json, old: Json, operation: WriteContext) -> None:
        """Decisions that are there stay as they are; those that were added or removed are left to be refused."""
        super().prepare_update(value, old, operation)
        now, before = _conditions(value), _conditions(old)
        for kind in _DECISIONS:
            places = [index for index, each in enumerate(now) if each.get("type") == kind]
            stored = [each for each in before if each.get("type") == kind]
            if len(places) == len(stored):
                for index, each in zip(places, stored, strict=True):
                    now[index] = each

    def validate_update(self, value: Json, old: Json) -> list[Cause]:
        """Checks the conditions; refuses new decisions and changes of an issued certificate."""
        return [*super().validate_update(value, old), *_issue_faults(value, old)]


def _issue_faults(value: Json, old: Json) -> Iterator[Cause]:
    for kind in _DECISIONS:
        if _count(value, kind) > _count(old, kind):
            yield forbidden(_CONDITIONS, f'updates may not add a condition of type "{kind}"')
    now, before = ((each.get("status") or {}).get("certificate") or "" for each in (value, old))
    if now == before:
        return
    if before:
        yield forbidden(_CERTIFICATE, "updates may not modify existing certificate content")
    if why := _certificate_fault(now):
        yield invalid(_CERTIFICATE, "<certificate data>", why)


def _conditions(value: Json) -> list[Json]:
    found: list[Json] = (value.get("status") or {}).get("conditions") or []
    return found


def _count(value: Json, kind: str) -> int:
    return sum(each.get("type") == kind for each in _conditions(value))


def _timed(condition: Json, before: list[Json], now: str) -> Json:
    same = [each for each in before if all(each.get(name) == condition.get(name) for name in ("type", "status"))]
    since = next((each["lastTransitionTime"] for each in same if each.get("lastTransitionTime")), now)
    return {
        **condition,
        "lastUpdateTime": condition.get("lastUpdateTime") or now,
        "lastTransitionTime": condition.get("lastTransitionTime") or since,
    }


def _condition_faults(conditions: list[Json], before: list[Json]) -> Iterator[Cause]:
    seen: list[str] = []
    for index, each in enumerate(conditions):
        kind, status = each.get("type") or "", each.get("status") or ""
        allowed = ("True",) if kind in _LASTING else _STATUSES
        if not kind:
            yield required(f"{_CONDITIONS}[{index}].type")
        if not status:
            yield required(f"{_CONDITIONS}[{index}].status")
        elif status not in allowed:
            yield unsupported(f"{_CONDITIONS}[{index}].status", status, allowed)
        if kind in _DECISIONS and ({*_DECISIONS} - {kind}) & {*seen}:
            yield invalid(_CONDITIONS, kind, "Approved and Denied conditions are mutually exclusive")
        if kind in seen:
            yield duplicate(f"{_CONDITIONS}[{index}].type", kind)
        seen.append(kind)
    for kind in _LASTING:
        if seen.count(kind) < sum(each.get("type") == kind for each in before):
            yield forbidden(_CONDITIONS, f'updates may not remove a condition of type "{kind}"')


def _certificate_fault(certificate: str) -> str:
    from cryptography import x509  # noqa: PLC0415 - few ask for certificates

    if not certificate:
        return ""
    try:
        x509.load_pem_x509_certificates(b64decode(certificate))
    except ValueError:
        return "must contain at least one CERTIFICATE PEM block"
    return ""


def create_signing_request(value: Json, operation: WriteContext) -> None:
    """A signing request says who asks; nobody can ask for somebody else."""
    user, spec = operation.user, value["spec"]
    spec["username"] = user.name
    for name, told in (("uid", user.uid), ("groups", list(user.groups))):
        spec.pop(name, None)
        if told:
            spec[name] = told
    spec.pop("extra", None)
    if user.extra:
        spec["extra"] = {key: list(values) for key, values in user.extra.items()}
    value["status"] = {}


def signing_request_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, age, signer, requestor, duration, condition."""
    spec, status = value["spec"], value.get("status", {})
    seconds = spec.get("expirationSeconds")
    conditions = {each.get("type") for each in status.get("conditions") or ()}
    said = ["Denied" if "Denied" in conditions else "Approved" if "Approved" in conditions else "Pending"]
    said += ["Failed"] * ("Failed" in conditions) + ["Issued"] * bool(status.get("certificate"))
    asked = human_duration(seconds) if seconds is not None else NONE
    who = spec.get("username", "")
    return [name_of(value), ages.of(value), spec.get("signerName") or NONE, who, asked, joined(said)]


signing_request_fields: Final = selectable("spec.signerName")

RULES: Final[dict[tuple[str, str], Rules]] = {
    ("certificates.k8s.io/v1", "certificatesigningrequests"): Rules(
        create=create_signing_request,
        check_new=check_signing_request,
        name_faults=path_segment_faults,
        fields=signing_request_fields,
        cells=signing_request_cells,
        subresources={"status": SigningStrategy, "approval": ApprovalStrategy},
    ),
}
