"""Escalation checks: a user grants only rights that the user has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec.structs import replace

from navarch.api.strconv import go_quoted
from navarch.cluster.server.pipeline.authentication.users import MASTERS
from navarch.cluster.server.pipeline.authorization.authorizer import RbacAuthorizer
from navarch.cluster.server.pipeline.authorization.rbac import RBAC_GROUP, MissingRoleError, RbacRule
from navarch.cluster.server.wire.budget import current_budget
from navarch.cluster.server.wire.request import Json, RequestInfo, User
from navarch.cluster.server.wire.status_errors import StatusError, forbidden, not_found

_COMPARED_PER_NODE = 10
"""The number of rule comparisons that cost as much as a value of a body."""


def lacking_parts(rules: Iterable[RbacRule], owned: Iterable[RbacRule]) -> Iterator[RbacRule]:
    """Yields the parts of the rules that none of the owned ones covers.

    A rule that one of them covers as a whole, as the rule of an administrator does, is not taken apart. The others are
    charged to the request before they are, since a small rule may have millions of parts; refuses with 413.
    """
    budget = current_budget()
    covering = [_Covering(rule) for rule in owned]
    compared = sum(each.cost for each in covering) // _COMPARED_PER_NODE
    for rule in rules:
        budget.charge_nodes(rule.entry_count * compared)
        if not rule.part_count or any(each.covers(rule) for each in covering):
            continue
        budget.charge_nodes(rule.part_count * (1 + compared))
        yield from (part for part in rule.parts() if not any(each.covers(part) for each in covering))


class _Covering:
    """An owned rule, with sets of what it names."""

    def __init__(self, rule: RbacRule) -> None:
        self._verbs = frozenset(rule.verbs)
        self._groups = frozenset(rule.groups)
        self._resources = frozenset(rule.resources)
        self._names = frozenset(rule.names)
        self._urls = frozenset(rule.urls)
        self._prefixes = tuple(url.rstrip("*") for url in rule.urls if url.endswith("*"))

    @property
    def cost(self) -> int:
        """Returns the cost of a comparison with another rule."""
        return 1 + len(self._prefixes)

    def covers(self, rule: RbacRule) -> bool:
        """Tells whether it covers each part of the rule."""
        return (
            ("*" in self._verbs or self._verbs.issuperset(rule.verbs))
            and ("*" in self._groups or self._groups.issuperset(rule.groups))
            and all(self._covers_kind(resource) for resource in rule.resources)
            and (not self._names or (bool(rule.names) and self._names.issuperset(rule.names)))
            and all(url in self._urls or url.startswith(self._prefixes) for url in rule.urls)
        )

    def _covers_kind(self, resource: str) -> bool:
        if "*" in self._resources or resource in self._resources:
            return True
        _, slash, subresource = resource.partition("/")
        return bool(slash) and f"*/{subresource}" in self._resources


_EVERYTHING: Final = (RbacRule(("*",), ("*",), ("*",)), RbacRule(("*",), urls=("*",)))
_LISTED_CHARACTERS: Final = 16 * 1024
"""Of the missing rules in a message; Kubernetes lists all of them."""
_OF_THE_COLLECTOR: Final = ("ownerReferences", "finalizers", "selfLink", "managedFields", "resourceVersion")


def check_escalation(authorizer: RbacAuthorizer, user: User, info: RequestInfo, value: Json, old: Json | None) -> None:
    """Raises `StatusError` if writing this role or binding would give away rights that the user does not have.

    To be asked before `value` is created (`old` is None) or replaces `old`; other resources than those of RBAC pass.
    """
    if info.group != RBAC_GROUP or MASTERS in user.groups or (old is not None and _is_for_the_collector(value, old)):
        return
    check = _EscalationCheck(authorizer, user, info, (value.get("metadata") or {}).get("name") or "")
    if info.resource in {"roles", "clusterroles"}:
        check.role(value, old)
    elif info.resource in {"rolebindings", "clusterrolebindings"}:
        check.binding(value)


class _EscalationCheck:
    """One write of one user."""

    def __init__(self, authorizer: RbacAuthorizer, user: User, info: RequestInfo, name: str) -> None:
        self._authorizer = authorizer
        self._user = user
        self._info = info
        self._name = name

    def role(self, value: Json, old: Json | None) -> None:
        """Requires that the writer of a role has its rights or may `escalate`; aggregated roles are exempt."""
        if self._authorizer.allows(self._user, replace(self._info, verb="escalate", subresource="")).allowed:
            return
        self._require(RbacRule.of(rule) for rule in value.get("rules") or ())
        if (_is_aggregated(value) or _is_aggregated(old)) and any(self._lacking(_EVERYTHING)):
            raise self._forbidden("must have cluster-admin privileges to use the aggregationRule")

    def binding(self, value: Json) -> None:
        """Requires that the writer of a binding has the rights of the role or may `bind` it."""
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

    def _require(self, rules: Iterable[RbacRule]) -> None:
        if lacking := [*self._lacking(rules)]:
            groups = " ".join(map(go_quoted, self._user.groups))
            raise self._forbidden(
                f"user {go_quoted(self._user.name)} (groups=[{groups}]) is attempting to grant RBAC permissions "
                f"not currently held:\n{_listed(lacking)}{self._resolution_errors()}"
            )

    def _lacking(self, rules: Iterable[RbacRule]) -> Iterator[RbacRule]:
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
    """Tells whether only fields differ that the garbage collector writes."""
    return _without_collector(value) == _without_collector(old)


def _without_collector(value: Json) -> dict[str, Any]:
    metadata = {key: each for key, each in (value.get("metadata") or {}).items() if key not in _OF_THE_COLLECTOR}
    return {**value, "metadata": metadata}


def _listed(parts: list[RbacRule]) -> str:
    """One line for each resource and name, with the verbs together; one for each path and verb. The first ones, if long."""
    verbs_of: dict[RbacRule, list[str]] = {}
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


def _line(rule: RbacRule, verbs: list[str]) -> str:
    fields = {
        "APIGroups": rule.groups,
        "Resources": rule.resources,
        "NonResourceURLs": rule.urls,
        "ResourceNames": rule.names,
        "Verbs": tuple(verbs),
    }
    shown = (f"{key}:[{' '.join(map(go_quoted, values))}]" for key, values in fields.items() if values)
    return f"{{{', '.join(shown)}}}"
