"""The RBAC authorizer: compiles the grants of each user and answers requests from them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from msgspec.structs import replace

from navarch.api.names import SelectorOperator
from navarch.api.selectors import Fields
from navarch.api.strconv import go_quoted
from navarch.cluster.server.pipeline.authentication.users import MASTERS
from navarch.cluster.server.pipeline.authorization.rbac import Grant, Granted, MissingRoleError, RbacPolicy, RbacRule
from navarch.cluster.server.wire.request import ApiRequest, Json, RequestInfo, User
from navarch.cluster.server.wire.status_errors import StatusError, forbidden
from navarch.errors import InvalidValueError

_NO_NAMES: Final = frozenset({"", ".", ".."})


def attributes_of(request: ApiRequest, info: RequestInfo) -> RequestInfo:
    """Returns the attributes to authorize: a list or watch of one object by its name is about that name, and whatever comes
    after a subresource does not count.

    >>> request = ApiRequest(method="GET", path="/api/v1/pods", query={"fieldSelector": ["metadata.name=a"]})
    >>> attributes_of(request, RequestInfo("list", "/api/v1/pods", resource="pods")).name
    'a'
    """
    if "/" in info.subresource:
        info = replace(info, subresource=info.subresource.partition("/")[0])
    if info.name or info.verb not in {"list", "watch"} or "fieldSelector" not in request.query:
        return info
    return replace(info, name=_selected_name(request.parameter("fieldSelector")))


def _selected_name(selector: str) -> str:
    try:
        requirements = Fields(selector).requirements
    except InvalidValueError:
        return ""
    named = (each for each in requirements if each.path == "metadata.name" and each.operator is SelectorOperator.EQUALS)
    name = next((each.value for each in named), "")
    return "" if name in _NO_NAMES or "/" in name or "%" in name else name


_MOST_REMEMBERED: Final = 10_000
_AS_TEXT: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


class AuthorizationDecision(NamedTuple):
    """The decision about a request, with Kubernetes' reason."""

    allowed: bool
    reason: str = ""


class UserRules(NamedTuple):
    """The rules that somebody has in a namespace. `error` tells of roles that are bound but not there."""

    rules: list[RbacRule]
    error: str


_ALLOWED: Final = AuthorizationDecision(allowed=True)
_DENIED: Final = AuthorizationDecision(allowed=False)
_Candidates = tuple[tuple[frozenset[str] | None, AuthorizationDecision], ...]


class RbacAuthorizer:
    """RBAC over all roles and bindings, which it must be told of: `changed`. Members of system:masters may do anything."""

    def __init__(self, objects: Iterable[Json] = ()) -> None:
        self.policy = RbacPolicy(objects)
        self.policy.listen(self._forget)
        self._of_users: dict[tuple[str, tuple[str, ...], str], _UserGrants] = {}

    def changed(self, kind: str, old: Json | None, new: Json | None) -> None:
        """A role or binding was written (`old` is None if it is new) or deleted (`new` is None)."""
        self.policy.changed(kind, old, new)

    def allows(self, user: User, info: RequestInfo) -> AuthorizationDecision:
        """Decides whether the user may make this request."""
        return self.allows_resource(user, info) if info.resource else self.allows_path(user, info)

    def why_not(self, user: User, info: RequestInfo) -> str | None:
        """Returns None if the user may make this request, else Kubernetes' sentence that forbids it."""
        decision = self.allows(user, info)
        return None if decision.allowed else _sentence(user, info, decision.reason)

    def allows_resource(self, user: User, info: RequestInfo) -> AuthorizationDecision:
        """Decides about a resource, even one without a name."""
        if MASTERS in user.groups:
            return _ALLOWED
        everywhere = self._compiled(user, "")
        found = everywhere.resource(info)
        if found is None and info.namespace:
            found = self._compiled(user, info.namespace).resource(info)
        return found or self._denied(user, info.namespace)

    def allows_path(self, user: User, info: RequestInfo) -> AuthorizationDecision:
        """Decides about a non-resource path."""
        if MASTERS in user.groups:
            return _ALLOWED
        return self._compiled(user, "").path(info.verb, info.path) or self._denied(user, "")

    def rules_for(self, user: User, namespace: str) -> UserRules:
        """Every rule that counts for a user in a namespace, those of the cluster first."""
        granted = self._granted(user, namespace)
        rules = [grant.rule for each in granted for grant in each.grants]
        return UserRules(rules, joined_errors([str(error) for error in self.missing_roles(user, namespace)]))

    def missing_roles(self, user: User, namespace: str) -> list[MissingRoleError]:
        """The roles that are bound to the user but are not there."""
        return [error for each in self._granted(user, namespace) for error in each.missing]

    def _granted(self, user: User, namespace: str) -> list[Granted]:
        scopes = ("", namespace) if namespace else ("",)
        return [self._compiled(user, scope).granted for scope in scopes]

    def _compiled(self, user: User, namespace: str) -> _UserGrants:
        key = (user.name, user.groups, namespace)
        found = self._of_users.get(key)
        if found is None:
            if len(self._of_users) >= _MOST_REMEMBERED:
                self._of_users.clear()
            found = self._of_users[key] = _UserGrants(self.policy.granted(user, namespace))
        return found

    def _denied(self, user: User, namespace: str) -> AuthorizationDecision:
        missing = self.missing_roles(user, namespace)
        if not missing:
            return _DENIED
        return AuthorizationDecision(allowed=False, reason=f"RBAC: {joined_errors([str(error) for error in missing])}")

    def _forget(self) -> None:
        self._of_users.clear()


class _UserGrants:
    """The grants of one user in one scope; each question is answered once, except for object names."""

    __slots__ = ("_paths", "_resources", "granted")

    def __init__(self, granted: Granted) -> None:
        self.granted = granted
        self._resources: dict[tuple[str, str, str, str], _Candidates] = {}
        self._paths: dict[tuple[str, str], AuthorizationDecision | None] = {}

    def resource(self, info: RequestInfo) -> AuthorizationDecision | None:
        """Returns None if no grant allows it."""
        key = (info.verb, info.group, info.resource, info.subresource)
        candidates = self._resources.get(key)
        if candidates is None:
            candidates = self._worked_out(key)
        for names, decision in candidates:
            if names is None or info.name in names:
                return decision
        return None

    def path(self, verb: str, path: str) -> AuthorizationDecision | None:
        """Returns None if no grant allows it."""
        key = (verb, path)
        if key not in self._paths:
            if len(self._paths) >= _MOST_REMEMBERED:
                self._paths.clear()
            allowing = (grant for grant in self.granted.grants if grant.rule.allows_path(verb, path))
            self._paths[key] = next((AuthorizationDecision(allowed=True, reason=grant.why) for grant in allowing), None)
        return self._paths[key]

    def _worked_out(self, key: tuple[str, str, str, str]) -> _Candidates:
        if len(self._resources) >= _MOST_REMEMBERED:
            self._resources.clear()
        found = tuple(_candidate(grant) for grant in self.granted.grants if grant.rule.allows_resource(*key))
        self._resources[key] = found
        return found


def _candidate(grant: Grant) -> tuple[frozenset[str] | None, AuthorizationDecision]:
    names = frozenset(grant.rule.names) if grant.rule.names else None
    return names, AuthorizationDecision(allowed=True, reason=grant.why)


def joined_errors(errors: list[str]) -> str:
    """Several errors as one text, none twice.

    >>> joined_errors(["a", "b", "a"]), joined_errors(["a"])
    ('[a, b]', 'a')
    """
    different = list(dict.fromkeys(errors))
    return f"[{', '.join(different)}]" if len(different) > 1 else "".join(different)


def forbidden_error(user: User, info: RequestInfo, reason: str = "") -> StatusError:
    """403: the user may not make this request."""
    if not info.is_resource:
        return StatusError(403, "Forbidden", f"forbidden: {_sentence(user, info, reason)}", details={})
    return forbidden(info.group, info.resource, info.name, _sentence(user, info, reason))


def _sentence(user: User, info: RequestInfo, reason: str) -> str:
    said = (_cannot(user, info) if info.is_resource else _cannot_path(user, info)).translate(_AS_TEXT)
    return f"{said}: {reason}" if reason else said


def _cannot_path(user: User, info: RequestInfo) -> str:
    return f"User {go_quoted(user.name)} cannot {info.verb} path {go_quoted(info.path)}"


def _cannot(user: User, info: RequestInfo) -> str:
    resource = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
    where = f"in the namespace {go_quoted(info.namespace)}" if info.namespace else "at the cluster scope"
    return (
        f"User {go_quoted(user.name)} cannot {info.verb} resource {go_quoted(resource)} "
        f"in API group {go_quoted(info.group)} {where}"
    )
