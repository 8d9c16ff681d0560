"""The permissions that a deployment needs of the user who runs it; checked before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from navarch.client import Client
from navarch.errors import ApiError, MissingPermissionsError, NotFound
from navarch.operator.permissions import missing_permissions
from navarch.operator.roles import Permission, report
from navarch.project.deploy.release import Release
from navarch.project.manifests.model import Json

__all__ = ["check_deploy", "check_undeploy"]

_RBAC: Final = "rbac.authorization.k8s.io"
_APPLY: Final = ("get", "create", "patch")
_REVISIONS: Final = ("list", "create", "patch", "delete")
_ROLES: Final = {"Role": "roles", "ClusterRole": "clusterroles"}
_ESCALATION: Final = (
    "Kubernetes lets nobody grant permissions that they lack: the operator's roles have {count} that you do not have. Let an "
    "administrator deploy the operator, or have yourself granted these permissions, or the verbs escalate and bind on roles."
)


async def check_deploy(client: Client, release: Release, pruned: Iterable[Json], *, has_namespace: bool) -> None:
    """Raises `MissingPermissionsError` with everything that the user may not do, and with the roles that would grant it.

    That includes what the operator's roles grant, since Kubernetes refuses roles with more than the user has. With
    `has_namespace` the namespace is not written.
    """
    written = [each for each in release.objects if not (has_namespace and each["kind"] == "Namespace")]
    wanted = [
        *await _verbs(client, written, _APPLY),
        *await _verbs(client, pruned, ("delete",)),
        *(Permission(verb, "", "secrets", "", release.namespace) for verb in _REVISIONS),
        *_of_waiting(release),
    ]
    missing = await missing_permissions(client, wanted)
    roles = await _refused_roles(client, release)
    lacking = [each for each in await missing_permissions(client, _granted(roles)) if each not in missing]
    urls = await _missing_urls(client, roles)
    if missing or lacking or urls:
        note = _ESCALATION.format(count=len(lacking) + len(urls)) if lacking or urls else ""
        note += f" A rule with nonResourceURLs grants these: {', '.join(urls)}." if urls else ""
        await _refuse(client, release, "deploying", [*missing, *lacking], note)


def _of_waiting(release: Release) -> Iterator[Permission]:
    """Yields what shows whether the operator works; without events and logs only causes are unknown."""
    for group, resource in (("", "pods"), ("apps", "replicasets")):
        yield Permission("list", group, resource, "", release.namespace)
    if release.lease:
        yield Permission("get", "coordination.k8s.io", "leases", "", release.lease_namespace)
    if release.webhook_configurations or release.converted:
        yield Permission("list", "discovery.k8s.io", "endpointslices", "", release.namespace)
    for kind, _ in release.webhook_configurations:
        yield Permission("get", "admissionregistration.k8s.io", f"{kind.lower()}s")


async def check_undeploy(client: Client, release: Release, deleted: Iterable[Json]) -> None:
    """Raises `MissingPermissionsError` with all of these objects that the user may not delete."""
    missing = await missing_permissions(client, await _verbs(client, deleted, ("get", "delete")))
    if missing:
        await _refuse(client, release, "undeploying", missing, "")


async def _refuse(client: Client, release: Release, verb: str, missing: list[Permission], note: str) -> None:
    purpose = f"all that {verb} {release.project} in namespace {release.namespace} needs"
    name = f"{verb}-{release.project}"
    raise MissingPermissionsError(report(await _user(client) or "you", missing, name, purpose=purpose, note=note))


async def _verbs(client: Client, manifests: Iterable[Json], verbs: Iterable[str]) -> list[Permission]:
    """Returns the permissions of these verbs on these objects; none for kinds that the server does not serve."""
    found = []
    for manifest in manifests:
        try:
            kind = await client.discovery.kind(manifest["apiVersion"], manifest["kind"])
        except NotFound:
            continue
        place = manifest["metadata"].get("namespace") if kind.namespaced else None
        found += [Permission(verb, kind.group, kind.plural, "", place) for verb in verbs]
    return found


async def _refused_roles(client: Client, release: Release) -> list[Json]:
    """Returns the roles of the release that the user may write only with permissions of the same content."""
    roles = [each for each in release.objects if each["kind"] in _ROLES]
    places = {(_ROLES[each["kind"]], each["metadata"].get("namespace")) for each in roles}
    free = [Permission(verb, _RBAC, plural, "", place) for plural, place in places for verb in ("escalate", "bind")]
    refused = {(each.resource, each.namespace) for each in await missing_permissions(client, free)}
    return [each for each in roles if (_ROLES[each["kind"]], each["metadata"].get("namespace")) in refused]


def _granted(roles: Iterable[Json]) -> list[Permission]:
    return [
        permission
        for role in roles
        for rule in role.get("rules") or ()
        for permission in _of_rule(rule, role["metadata"].get("namespace"))
    ]


async def _missing_urls(client: Client, roles: Iterable[Json]) -> list[str]:
    """Returns verb and path of what these roles grant beside resources, and the user lacks."""
    from navarch.k8s.authorization.v1 import (  # noqa: PLC0415 - needed only by users who are no administrators
        NonResourceAttributes,
        SelfSubjectAccessReview,
        SelfSubjectAccessReviewSpec,
    )

    found = []
    for rule in (rule for role in roles for rule in role.get("rules") or ()):
        for verb, path in ((verb, path) for path in rule.get("nonResourceURLs") or () for verb in rule["verbs"]):
            asked = SelfSubjectAccessReviewSpec(non_resource_attributes=NonResourceAttributes(verb=verb, path=path))
            if not (await client.create(SelfSubjectAccessReview(spec=asked))).status.allowed:
                found.append(f"{verb} {path}")
    return found


def _of_rule(rule: Json, place: str | None) -> Iterator[Permission]:
    for group in rule.get("apiGroups") or ():
        for resource in rule.get("resources") or ():
            name, _, subresource = resource.partition("/")
            for verb in rule["verbs"]:
                yield Permission(verb, group, name, subresource, place)


async def _user(client: Client) -> str:
    from navarch.k8s.authentication.v1 import SelfSubjectReview  # noqa: PLC0415 - needed only for the report

    try:
        found = (await client.create(SelfSubjectReview())).status.user_info
    except ApiError:
        return ""
    return (found.username or "") if found is not None else ""
