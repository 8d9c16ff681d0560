"""The ServiceAccount `default` and the ConfigMap `kube-root-ca.crt` of every namespace."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from navarch.api import Key
from navarch.cache import Cached
from navarch.client import MergePatch
from navarch.controller.cache_reader import Lookup
from navarch.controller.context import Context
from navarch.errors import AlreadyExists
from navarch.k8s.core.v1 import ConfigMap, Namespace, ServiceAccount
from navarch.operator import Operator

__all__ = ["declare"]

_ACCOUNT: Final = "default"
_CERTIFICATE: Final = "kube-root-ca.crt"
_ACCOUNTS: Final = Cached(ServiceAccount, fields=f"metadata.name={_ACCOUNT}")
_CERTIFICATES: Final = Cached(ConfigMap, fields=f"metadata.name={_CERTIFICATE}")
_DESCRIPTION: Final = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


def declare(operator: Operator, root_certificate: str) -> None:
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
