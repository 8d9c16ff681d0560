"""Controllers of access: default ServiceAccounts and root certificates, ClusterRole aggregation, and certificate signing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from navarch.api import Key, Labels, to_builtins, truncate_to_seconds
from navarch.cache import Cached, Entry
from navarch.cache.lookup import Lookup
from navarch.client import MergePatch
from navarch.controller import Context, any_change
from navarch.controller.triggers import ByMetadata
from navarch.errors import AlreadyExists
from navarch.k8s.certificates.v1 import CertificateSigningRequest, CertificateSigningRequestCondition
from navarch.k8s.core.v1 import ConfigMap, Namespace, ServiceAccount
from navarch.k8s.rbac.v1 import ClusterRole, PolicyRule
from navarch.operator import Operator

Sign = Callable[[bytes, int | None], bytes]
"""The certificate for a request, both as PEM, for so many seconds; raises ValueError for what is no request."""

_SIGNER: Final = "kubernetes.io/kube-apiserver-client"
_CLIENT: Final = "client auth"
_USAGES: Final = frozenset({"digital signature", "key encipherment", _CLIENT})


def declare_csr_signing(operator: Operator, sign: Sign) -> None:
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


_AGGREGATION_MANAGER: Final = "clusterrole-aggregation-controller"
_AGGREGATED: Final = ("aggregated", "yes")


def _aggregated(role: ClusterRole) -> list[str]:
    return [_AGGREGATED[1]] if role.aggregation_rule is not None else []


_ROLES: Final = Cached(ClusterRole, indexes={_AGGREGATED[0]: _aggregated})


def declare_role_aggregation(operator: Operator) -> None:
    """Adds the controller. Whoever may do what does not wait for it: the server gathers rules by itself."""

    @operator.controller(_ROLES, watches={_ROLES: ByMetadata(_everybody)}, name="clusterrole-aggregation")
    async def gather(role: ClusterRole, ctx: Context) -> None:
        if role.aggregation_rule is None:
            return
        rules = _gathered(role, await ctx.list(ClusterRole))
        if rules == (role.rules or []):
            return
        desired = ClusterRole(name=role.name)
        if rules:
            desired.rules = rules
        await ctx.client.using(manager=_AGGREGATION_MANAGER).apply(desired, force=True)


def _everybody(_: Entry, lookup: Lookup) -> Iterable[Key]:
    """Any role may be selected now, or no longer."""
    return [Key("", role.name) for role in lookup.list(ClusterRole, index=_AGGREGATED)]


def _gathered(role: ClusterRole, roles: Iterable[ClusterRole]) -> list[PolicyRule]:
    """In the order of the selectors, then of names; none twice."""
    assert role.aggregation_rule is not None
    others = sorted((each for each in roles if each.name != role.name), key=lambda each: each.name)
    found: list[PolicyRule] = []
    for selector in role.aggregation_rule.cluster_role_selectors or ():
        labels = Labels.from_wire(to_builtins(selector))
        for other in others:
            if labels.matches(other.labels):
                found += [rule for rule in other.rules or () if rule not in found]
    return found


_ACCOUNT: Final = "default"
_CERTIFICATE: Final = "kube-root-ca.crt"
_ACCOUNTS: Final = Cached(ServiceAccount, fields=f"metadata.name={_ACCOUNT}")
_CERTIFICATES: Final = Cached(ConfigMap, fields=f"metadata.name={_CERTIFICATE}")
_DESCRIPTION: Final = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


def declare_namespace_defaults(operator: Operator, root_certificate: str) -> None:
    """Adds both. They come again when somebody deletes them; the certificate also when somebody changes it."""

    @operator.controller(Namespace, watches={_ACCOUNTS: _namespace_of}, name="service-account")
    async def have_account(namespace: Namespace, ctx: Context) -> None:
        if await ctx.get(ServiceAccount, _ACCOUNT, namespace=namespace.name) is None:
            await _create(ctx, ServiceAccount(name=_ACCOUNT, namespace=namespace.name))

    @operator.controller(Namespace, watches={_CERTIFICATES: _namespace_of}, name="root-ca-certificate")
    async def have_certificate(namespace: Namespace, ctx: Context) -> None:
        found = await ctx.get(ConfigMap, _CERTIFICATE, namespace=namespace.name)
        if found is None:
            await _create(ctx, _certificate(namespace.name, root_certificate))
        elif found.data != {"ca.crt": root_certificate}:
            changes = {"data": {**dict.fromkeys(found.data or {}), "ca.crt": root_certificate}}
            await ctx.client.patch(ConfigMap, _CERTIFICATE, MergePatch(changes), namespace=namespace.name)


async def _create(ctx: Context, new: ServiceAccount | ConfigMap) -> None:
    try:
        await ctx.create(new, owned=False)
    except AlreadyExists:
        return


def _certificate(namespace: str, root_certificate: str) -> ConfigMap:
    return ConfigMap(
        name=_CERTIFICATE,
        namespace=namespace,
        annotations={"kubernetes.io/description": _DESCRIPTION},
        data={"ca.crt": root_certificate},
    )


def _namespace_of(found: Any, lookup: Lookup) -> Iterable[Key]:  # noqa: ARG001 - the form of a mapping
    return (Key("", found.namespace),)
