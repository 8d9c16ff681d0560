"""Nobody gives others more than they have themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec.structs import replace

from navarch.cluster.server.pipeline.access.authorization import Authorizer
from navarch.cluster.server.pipeline.access.coverage import lacking_parts
from navarch.cluster.server.pipeline.access.policy import RBAC_GROUP, MissingRoleError
from navarch.cluster.server.pipeline.access.rules import Rule
from navarch.cluster.server.pipeline.access.users import MASTERS
from navarch.cluster.server.wire.request import Json, RequestInfo, User
from navarch.cluster.server.wire.status_errors import StatusError, forbidden, not_found
from navarch.schema.values.violations import go_quoted

__all__ = ["check_escalation"]

_EVERYTHING: Final = (Rule(("*",), ("*",), ("*",)), Rule(("*",), urls=("*",)))
_LISTED_CHARACTERS: Final = 16 * 1024
"""Of the missing rules in a message; Kubernetes lists all of them."""
_OF_THE_COLLECTOR: Final = ("ownerReferences", "finalizers", "selfLink", "managedFields", "resourceVersion")


def check_escalation(authorizer: Authorizer, user: User, info: RequestInfo, value: Json, old: Json | None) -> None:
    """Raises `StatusError` if writing this role or binding would give away rights that the user does not have.

    To be asked before `value` is created (`old` is None) or replaces `old`; other resources than those of RBAC pass.
    """
    if info.group != RBAC_GROUP or MASTERS in user.groups or (old is not None and _is_for_the_collector(value, old)):
        return
    check = _Check(authorizer, user, info, (value.get("metadata") or {}).get("name") or "")
    if info.resource in {"roles", "clusterroles"}:
        check.role(value, old)
    elif info.resource in {"rolebindings", "clusterrolebindings"}:
        check.binding(value)


class _Check:
    """One write of one user."""

    def __init__(self, authorizer: Authorizer, user: User, info: RequestInfo, name: str) -> None:
        self._authorizer = authorizer
        self._user = user
        self._info = info
        self._name = name

    def role(self, value: Json, old: Json | None) -> None:
        """What a role grants, its writer must have, or may `escalate`. One that gathers others' rules may grant anything."""
        if self._authorizer.allows(self._user, replace(self._info, verb="escalate", subresource="")).allowed:
            return
        self._require(Rule.of(rule) for rule in value.get("rules") or ())
        if (_is_aggregated(value) or _is_aggregated(old)) and any(self._lacking(_EVERYTHING)):
            raise self._forbidden("must have cluster-admin privileges to use the aggregationRule")

    def binding(self, value: Json) -> None:
        """What the bound role grants, whoever binds it must have, or may `bind` it."""
        reference = value.get("roleRef") or {}
        resource = {"ClusterRole": "clusterroles", "Role": "roles"}.get(reference.get("kind", ""))
        if resource is None:
            return
        bound = replace(
            self._info,
            verb="bind",
            group=reference.get("apiGroup") or RBAC_GROUP,
            resource=resource,
            subresource="",
            name=reference.get("name") or "",
        )
        if self._authorizer.allows(self._user, bound).allowed:
            return
        try:
            rules = self._authorizer.policy.rules_of(reference, self._info.namespace)
        except MissingRoleError as error:
            raise not_found(RBAC_GROUP, self._info.resource, error.name) from error
        self._require(rules)

    def _require(self, rules: Iterable[Rule]) -> None:
        if lacking := [*self._lacking(rules)]:
            groups = " ".join(map(go_quoted, self._user.groups))
            raise self._forbidden(
                f"user {go_quoted(self._user.name)} (groups=[{groups}]) is attempting to grant RBAC permissions "
                f"not currently held:\n{_listed(lacking)}{self._resolution_errors()}"
            )

    def _lacking(self, rules: Iterable[Rule]) -> Iterator[Rule]:
        return lacking_parts(rules, self._authorizer.rules_for(self._user, self._info.namespace).rules)

    def _resolution_errors(self) -> str:
        """Kubernetes looks roles up in the name of the request, and therefore calls them what that is about."""
        missing = self._authorizer.missing_roles(self._user, self._info.namespace)
        texts = [str(not_found(RBAC_GROUP, self._info.resource, error.name)) for error in missing]
        together = f"[{', '.join(dict.fromkeys(texts))}]"
        return f"; resolution errors: {together if len(set(texts)) == 1 else f'[{together}]'}" if texts else ""

    def _forbidden(self, why: str) -> StatusError:
        return forbidden(RBAC_GROUP, self._info.resource, self._name, why)


def _is_aggregated(role: Json | None) -> bool:
    return bool(((role or {}).get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _is_for_the_collector(value: Json, old: Json) -> bool:
    """Whether nothing differs but what the garbage collector writes."""
    return _without_collector(value) == _without_collector(old)


def _without_collector(value: Json) -> dict[str, Any]:
    metadata = {key: each for key, each in (value.get("metadata") or {}).items() if key not in _OF_THE_COLLECTOR}
    return {**value, "metadata": metadata}


def _listed(parts: list[Rule]) -> str:
    """One line for each resource and name, with the verbs together; one for each path and verb. The first ones, if long."""
    verbs_of: dict[Rule, list[str]] = {}
    for part in parts:
        key = part if part.urls else replace(part, verbs=())
        verbs_of.setdefault(key, []).extend(part.verbs)
    lines: set[str] = set()
    left = _LISTED_CHARACTERS
    for rule, verbs in verbs_of.items():
        if left < 0:
            return "\n".join([*sorted(lines), "..."])
        line = _line(rule, verbs)
        left -= len(line)
        lines.add(line)
    return "\n".join(sorted(lines))


def _line(rule: Rule, verbs: list[str]) -> str:
    fields = {
        "APIGroups": rule.groups,
        "Resources": rule.resources,
        "NonResourceURLs": rule.urls,
        "ResourceNames": rule.names,
        "Verbs": tuple(verbs),
    }
    shown = (f"{key}:[{' '.join(map(go_quoted, values))}]" for key, values in fields.items() if values)
    return f"{{{', '.join(shown)}}}"
