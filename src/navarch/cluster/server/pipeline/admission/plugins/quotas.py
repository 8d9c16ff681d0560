"""ResourceQuota: charges new objects to the quotas of a namespace."""

from __future__ import annotations

from typing import Final

from navarch.api import Quantity
from navarch.cluster.server.objects.registry import Found, Registry, stored_form
from navarch.cluster.server.objects.types import Catalog
from navarch.cluster.server.pipeline.admission.attributes import Attributes
from navarch.cluster.server.pipeline.admission.plugins.plugin import forbid
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_errors import StatusError
from navarch.cluster.usage import Amounts, in_scope, unspecified, usage
from navarch.errors import InvalidValueError

_PODS: Final = ("", "pods")
_GROWING: Final = frozenset({("", "services"), ("", "persistentvolumeclaims")})
"""Resources whose updates can use more."""
_ATTEMPTS: Final = 20


class ResourceQuotas:
    """Checks and charges quotas in one step: whoever comes at the same time finds less left. `changed` tells of quotas."""

    def __init__(self, registry: Registry, catalog: Catalog) -> None:
        self._registry = registry
        self._catalog = catalog
        self._names: dict[str, set[str]] = {}

    def changed(self, old: Json | None, new: Json | None) -> None:
        """A quota came or went."""
        metadata = (new or old or {})["metadata"]
        names = self._names.setdefault(metadata["namespace"], set())
        if new is not None:
            names.add(metadata["name"])
            return
        names.discard(metadata["name"])
        if not names:
            del self._names[metadata["namespace"]]

    async def validate(self, attributes: Attributes) -> None:
        """Refuses what is too much, and charges the rest."""
        names = self._names.get(attributes.namespace)
        if not names or attributes.subresource or attributes.value is None:
            return
        try:
            wanted = _wanted(attributes)
        except InvalidValueError:
            return  # amounts that are none are refused elsewhere
        for name in sorted(names):
            await self._charge(attributes, name, wanted)

    async def _charge(self, attributes: Attributes, name: str, wanted: Amounts) -> None:
        """Somebody else may charge at the same time: then it is looked at anew."""
        for attempt in range(_ATTEMPTS):
            try:
                await self._charge_once(attributes, name, wanted)
            except StatusError as refusal:
                if refusal.reason != "Conflict" or attempt == _ATTEMPTS - 1:
                    raise
            else:
                return

    async def _charge_once(self, attributes: Attributes, name: str, wanted: Amounts) -> None:
        resource = self._catalog.find("", "v1", "resourcequotas")
        assert resource is not None, "quotas are always served"
        found = await self._registry.find(resource, attributes.namespace, name)
        if found is None:
            return
        used = _charged(attributes, found, wanted)
        if used and not attributes.dry_run:
            status = found.value.get("status") or {}
            before = status.get("used") or {}
            value = {**found.value, "status": {**status, "used": {**before, **used}}}
            await self._registry.update(resource, await stored_form(resource, value), found.stored)


def _wanted(attributes: Attributes) -> Amounts:
    """Returns the additional usage of the object."""
    resource, value = attributes.resource, attributes.value or {}
    kind = (resource.group, resource.plural)
    if attributes.operation == "CREATE":
        return usage(*kind, value)
    if kind == _PODS and attributes.operation == "UPDATE" and _is_limited(value) != _is_limited(attributes.old or {}):
        return usage(*kind, value)
    if attributes.operation != "UPDATE" or kind not in _GROWING:
        return {}
    before = usage(*kind, attributes.old or {})
    now = usage(*kind, value)
    return {
        name: amount - before.get(name, Quantity(0)) for name, amount in now.items() if amount > before.get(name, 0)
    }


def _is_limited(pod: Json) -> bool:
    """Tells whether the pod has a deadline, which puts it into the scope Terminating."""
    return (pod.get("spec") or {}).get("activeDeadlineSeconds") is not None


def _charged(attributes: Attributes, quota: Found, wanted: Amounts) -> dict[str, str]:
    """Returns the new `status.used`; refuses usage over the hard limit."""
    spec, status = quota.value.get("spec") or {}, quota.value.get("status") or {}
    resource, value = attributes.resource, attributes.value or {}
    name, hard = quota.value["metadata"]["name"], spec.get("hard") or {}
    kind = (resource.group, resource.plural)
    if not in_scope(spec, *kind, value):
        return {}
    if kind == _PODS and attributes.operation == "UPDATE" and in_scope(spec, *kind, attributes.old or {}):
        return {}  # it was charged when it came
    is_new_pod = attributes.operation == "CREATE" and kind == _PODS
    if is_new_pod and (missing := unspecified(hard, value)):
        raise forbid(attributes, f"failed quota: {name}: must specify {missing}")
    asked = {key: wanted[key] for key in sorted(wanted) if key in hard and wanted[key]}
    known = status.get("used") or {}
    if unknown := [key for key in asked if key not in known or key not in (status.get("hard") or {})]:
        raise forbid(attributes, f"status unknown for quota: {name}, resources: {','.join(unknown)}")
    used = {key: Quantity.from_wire(known[key]) for key in asked}
    limits = {key: Quantity.from_wire(status["hard"][key]) for key in asked}
    if over := [key for key in asked if used[key] + asked[key] > limits[key]]:
        said = (_said(over, asked), _said(over, used), _said(over, limits))
        raise forbid(attributes, "exceeded quota: {}, requested: {}, used: {}, limited: {}".format(name, *said))
    return {key: str(used[key] + asked[key]) for key in asked}


def _said(names: list[str], amounts: Amounts) -> str:
    return ",".join(f"{name}={amounts[name]}" for name in names)
