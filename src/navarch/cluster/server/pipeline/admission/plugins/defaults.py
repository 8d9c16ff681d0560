"""Plug-ins that complete objects: ServiceAccount, DefaultTolerationSeconds, TaintNodesByCondition,
StorageObjectInUseProtection.
"""

from __future__ import annotations

import random
from typing import Any, Final

from navarch.cluster.server.pipeline.admission.attributes import Attributes
from navarch.cluster.server.pipeline.admission.listers import ObjectReader
from navarch.cluster.server.pipeline.admission.plugins.plugin import PODS, forbid
from navarch.cluster.server.wire.request import Json

_MIRROR: Final = "kubernetes.io/config.mirror"
_MOUNT_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_PREFIX: Final = "kube-api-access-"
_SUFFIX: Final = "bcdfghjklmnpqrstvwxz2456789"
_TOKEN_SECONDS: Final = 3607


class ServiceAccountPlugin:
    """Gives a new pod its account, the account's pull secrets, and a volume with its token."""

    resources = PODS

    def __init__(self, objects: ObjectReader, rng: random.Random) -> None:
        self._objects = objects
        self._rng = rng

    async def change(self, attributes: Attributes, value: Json) -> None:
        """See `Mutating.change`."""
        if attributes.operation != "CREATE":
            return
        spec = value["spec"]
        if _MIRROR in (value["metadata"].get("annotations") or {}):
            _refuse_secrets_of_mirror(attributes, spec)
            return
        name = spec.get("serviceAccountName") or "default"
        account = await self._account(attributes, name)
        spec["serviceAccountName"] = spec["serviceAccount"] = name
        if _is_mounted(account, spec):
            self._mount(spec)
        if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
            spec["imagePullSecrets"] = list(account["imagePullSecrets"])

    async def _account(self, attributes: Attributes, name: str) -> Json:
        resource = self._objects.resource("", "v1", "serviceaccounts")
        account = await self._objects.get(resource, attributes.namespace, name)
        if account is None:
            where = f"{attributes.namespace}/{name}"
            raise forbid(attributes, f'error looking up service account {where}: serviceaccount "{name}" not found')
        return account

    def _mount(self, spec: Json) -> None:
        """The volume is added only if a container needs it: one that mounts something there itself does not."""
        known = next((name for name in map(_name, spec.get("volumes") or ()) if name.startswith(_PREFIX)), "")
        name = known or _PREFIX + "".join(self._rng.choices(_SUFFIX, k=5))
        needed = False
        for field in ("initContainers", "containers"):
            if spec.get(field):
                mounted = [_mounted(container, name) for container in spec[field]]
                needed = needed or any(new is not old for new, old in zip(mounted, spec[field], strict=True))
                spec[field] = mounted
        if needed and not known:
            spec["volumes"] = [*(spec.get("volumes") or ()), _volume(name)]


def _name(named: Json) -> str:
    return str(named.get("name", ""))


def _is_mounted(account: Json, spec: Json) -> bool:
    wanted = spec.get("automountServiceAccountToken")
    if wanted is None:
        wanted = account.get("automountServiceAccountToken")
    return wanted is None or bool(wanted)


def _mounted(container: Json, volume: str) -> Json:
    mounts: list[Any] = container.get("volumeMounts") or []
    if any(each.get("mountPath") == _MOUNT_PATH for each in mounts):
        return container
    return {**container, "volumeMounts": [*mounts, {"name": volume, "readOnly": True, "mountPath": _MOUNT_PATH}]}


def _volume(name: str) -> Json:
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    sources = [
        {"serviceAccountToken": {"expirationSeconds": _TOKEN_SECONDS, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}},
    ]
    return {"name": name, "projected": {"sources": sources, "defaultMode": 420}}


def _refuse_secrets_of_mirror(attributes: Attributes, spec: Json) -> None:
    if spec.get("serviceAccountName"):
        raise forbid(attributes, "a mirror pod may not reference service accounts")
    for volume in spec.get("volumes") or ():
        sources = (volume.get("projected") or {}).get("sources") or ()
        if volume.get("secret") or any("secret" in each for each in sources):
            raise forbid(attributes, "a mirror pod may not reference secrets")
        if any("serviceAccountToken" in each for each in sources):
            raise forbid(attributes, "a mirror pod may not use ServiceAccountToken volume projections")


_TAINTS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_SECONDS: Final = 300


class DefaultTolerations:
    """Adds a toleration for each of the two taints, unless the pod has said something about it."""

    resources = PODS

    async def change(self, attributes: Attributes, value: Json) -> None:
        """See `Mutating.change`."""
        if attributes.operation == "DELETE":
            return
        known = value["spec"].get("tolerations") or []
        missing = [taint for taint in _TAINTS if not any(_is_about(each, taint) for each in known)]
        if missing:
            value["spec"]["tolerations"] = [*known, *map(_toleration, missing)]


def _is_about(toleration: Json, taint: str) -> bool:
    return toleration.get("key", "") in {"", taint} and toleration.get("effect", "") in {"", "NoExecute"}


def _toleration(taint: str) -> Json:
    return {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _SECONDS}


_NOT_READY: Final = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


class TaintNewNodes:
    """Lets no pod go to a new node before a controller says that it is ready."""

    resources = frozenset({("", "nodes")})

    async def change(self, attributes: Attributes, value: Json) -> None:
        """See `Mutating.change`."""
        if attributes.operation != "CREATE":
            return
        taints = value["spec"].get("taints") or []
        if not any({**taint, **_NOT_READY} == taint for taint in taints):
            value["spec"]["taints"] = [*taints, dict(_NOT_READY)]


_FINALIZERS: Final = {
    ("", "persistentvolumes"): "kubernetes.io/pv-protection",
    ("", "persistentvolumeclaims"): "kubernetes.io/pvc-protection",
    ("storage.k8s.io", "volumeattributesclasses"): "kubernetes.io/vac-protection",
}


class StorageInUseProtection:
    """Keeps new volumes and claims until a controller says that nobody uses them any more."""

    resources = frozenset(_FINALIZERS)

    async def change(self, attributes: Attributes, value: Json) -> None:
        """See `Mutating.change`."""
        if attributes.operation != "CREATE":
            return
        finalizer = _FINALIZERS[attributes.resource.group, attributes.resource.plural]
        known = value["metadata"].get("finalizers") or []
        if finalizer not in known:
            value["metadata"]["finalizers"] = [*known, finalizer]
