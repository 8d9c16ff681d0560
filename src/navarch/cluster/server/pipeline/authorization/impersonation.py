"""Impersonation: a user acts as another user.

Kubernetes 1.36 has five modes, tried in this order: as the node of the requester's own pod, as any node, as a ServiceAccount,
as any other user (these four are constrained: they need `impersonate:<mode>` on the user and
`impersonate-on:<mode>:<verb>` on the requested object), and the old mode, which needs `impersonate` alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple
from urllib.parse import unquote

from msgspec.structs import replace

from navarch.api.names import DNS_SUBDOMAIN
from navarch.api.strconv import go_quoted
from navarch.cluster.server.pipeline.authentication.users import (
    ALL_UNAUTHENTICATED,
    ANONYMOUS,
    MASTERS,
    NODES,
    authenticated,
    node_of,
    service_account_groups,
    service_account_of,
    with_group,
)
from navarch.cluster.server.pipeline.authorization.authorizer import RbacAuthorizer, attributes_of, forbidden_error
from navarch.cluster.server.wire.request import ApiRequest, RequestInfo, User, request_info
from navarch.cluster.server.wire.status_errors import StatusError, bad_request

_PREFIX: Final = "impersonate-"
_EXTRA: Final = "impersonate-extra-"
_GROUP: Final = "authentication.k8s.io"
_NODE_NAME: Final = "authentication.kubernetes.io/node-name"
_BROKEN_ESCAPE: Final = re.compile("%(?![0-9a-fA-F]{2})")
_PATH: Final = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")
_MANY: Final = 4
_MOST_REMEMBERED: Final = 10_000


class Impersonated(NamedTuple):
    """The user that a request acts as. `constraint` is the verb that allowed it, empty in the old mode."""

    user: User
    constraint: str


class _Mode(NamedTuple):
    """A way to impersonate: its name (empty for the old one), and whether it is one for this user and requester."""

    name: str
    applies: Callable[[User, User], bool]

    @property
    def verb(self) -> str:
        return f"impersonate:{self.name}" if self.name else "impersonate"

    @property
    def group(self) -> str:
        return _GROUP if self.name else ""


class Impersonator:
    """Checks and carries out the wish to act as somebody else."""

    def __init__(self, authorizer: RbacAuthorizer) -> None:
        self._authorizer = authorizer
        self._last: dict[str, _Mode] = {}

    def acting_user(self, request: ApiRequest, user: User) -> User:
        """Returns the user that the request acts as: `user`, or the one that it impersonates. Raises `StatusError`."""
        found = self.impersonated(request, user)
        return user if found is None else found.user

    def impersonated(self, request: ApiRequest, user: User) -> Impersonated | None:
        """Returns the impersonated user; None if the request impersonates nobody. Raises `StatusError`."""
        if not any(name.startswith(_PREFIX) for name in request.headers):
            return None
        wanted = _wanted(request.headers)
        return None if wanted is None else self._checked(wanted, user, attributes_of(request, request_info(request)))

    def _checked(self, wanted: User, user: User, info: RequestInfo) -> Impersonated:
        """The way that worked last for this requester comes first; of all refusals the first counts."""
        last = self._last.get(user.name)
        first: StatusError | None = None
        for mode in sorted(_MODES, key=lambda mode: mode is not last):
            if not mode.applies(wanted, user):
                continue
            try:
                found = _ImpersonationCheck(self._authorizer, mode, user).impersonated(wanted, info)
            except StatusError as refusal:
                first = first or refusal
                continue
            self._remember(user.name, mode)
            return found
        assert first is not None, "the old way applies to everybody"
        raise first

    def _remember(self, name: str, mode: _Mode) -> None:
        if len(self._last) >= _MOST_REMEMBERED:
            self._last.clear()
        self._last[name] = mode


class _ImpersonationCheck:
    """One way to impersonate, for one requester."""

    def __init__(self, authorizer: RbacAuthorizer, mode: _Mode, user: User) -> None:
        self._authorizer = authorizer
        self._mode = mode
        self._user = user

    def impersonated(self, wanted: User, info: RequestInfo) -> Impersonated:
        """Raises `StatusError` unless every part of the wish is allowed."""
        if self._mode.name:
            self._require(replace(info, verb=f"impersonate-on:{self._mode.name}:{info.verb}"))
        self._require(self._about_name(wanted.name))
        if wanted.uid:
            self._require(self._about("uids", wanted.uid, group=_GROUP))
        self._check_groups(wanted.groups)
        self._check_extra(wanted.extra)
        return Impersonated(_completed(wanted, self._mode), self._mode.verb if self._mode.name else "")

    def _about(self, resource: str, name: str, *, group: str | None = None, subresource: str = "") -> RequestInfo:
        of_group = self._mode.group if group is None else group
        return RequestInfo(self._mode.verb, "", of_group, "v1", "", resource, subresource, name)

    def _about_name(self, name: str) -> RequestInfo:
        if self._mode.name and (node := node_of(name)):
            return self._about("nodes", "*" if self._mode.name == "associated-node" else node)
        if account := service_account_of(name):
            return replace(self._about("serviceaccounts", account[1]), namespace=account[0])
        return self._about("users", name)

    def _check_groups(self, groups: tuple[str, ...]) -> None:
        if self._mode.name:
            if "" in groups:
                raise self._refusal(self._about("groups", ""), "impersonating the empty string group is not allowed")
            if MASTERS in groups:
                raise self._refusal(
                    self._about("groups", MASTERS), "impersonating the system:masters group is not allowed"
                )
            if len(groups) >= _MANY and self._allows(self._about("groups", "*")):
                return
        for group in groups:
            self._require(self._about("groups", group))

    def _check_extra(self, extra: Mapping[str, tuple[str, ...]]) -> None:
        if self._mode.name and extra:
            if fault := next(_extra_faults(extra), ""):
                raise self._refusal(self._about("userextras", "", group=_GROUP), fault)
            everything = self._about("userextras", "*", group=_GROUP, subresource="*")
            if sum(map(len, extra.values())) >= _MANY and self._allows(everything):
                return
        for key, values in extra.items():
            for value in values:
                self._require(self._about("userextras", value, group=_GROUP, subresource=key))

    def _allows(self, info: RequestInfo) -> bool:
        return self._authorizer.allows(self._user, info).allowed

    def _require(self, info: RequestInfo) -> None:
        decision = self._authorizer.allows(self._user, info)
        if not decision.allowed:
            raise self._refusal(info, decision.reason)

    def _refusal(self, info: RequestInfo, reason: str) -> StatusError:
        return forbidden_error(self._user, info, reason)


def _is_name_only(wanted: User) -> bool:
    return not (wanted.uid or wanted.groups or wanted.extra)


def _is_own_node(wanted: User, user: User) -> bool:
    node = node_of(wanted.name)
    own = service_account_of(user.name) is not None and user.extra.get(_NODE_NAME) == (node,)
    return node is not None and own and _is_name_only(wanted)


_MODES: Final = (
    _Mode("associated-node", _is_own_node),
    _Mode("arbitrary-node", lambda wanted, _: node_of(wanted.name) is not None and _is_name_only(wanted)),
    _Mode("serviceaccount", lambda wanted, _: service_account_of(wanted.name) is not None and _is_name_only(wanted)),
    _Mode("user-info", lambda wanted, _: node_of(wanted.name) is None and service_account_of(wanted.name) is None),
    _Mode("", lambda *_: True),
)


def _completed(wanted: User, mode: _Mode) -> User:
    """With the groups that such a user always has."""
    groups = wanted.groups
    if mode.name and node_of(wanted.name):
        groups = (NODES,)
    elif not groups and (account := service_account_of(wanted.name)):
        groups = service_account_groups(account[0])
    user = replace(wanted, groups=groups)
    return with_group(user, ALL_UNAUTHENTICATED) if user.name == ANONYMOUS.name else authenticated(user)


def _wanted(headers: Mapping[str, str]) -> User | None:
    name, _, _ = headers.get("impersonate-user", "").partition("\n")
    uid, _, _ = headers.get("impersonate-uid", "").partition("\n")
    groups = tuple(headers["impersonate-group"].split("\n")) if "impersonate-group" in headers else ()
    extra = {_extra_key(key): tuple(value.split("\n")) for key, value in headers.items() if key.startswith(_EXTRA)}
    if name:
        return User(name, uid, groups, extra)
    if uid or groups or extra:
        raise bad_request(f"requested {_as_go(User(name, uid, groups, extra))} without impersonating a user name")
    return None


def _extra_key(header: str) -> str:
    escaped = header.removeprefix(_EXTRA).lower()
    return escaped if _BROKEN_ESCAPE.search(escaped) else unquote(escaped)


def _as_go(user: User) -> str:
    """The user as Go shows a value for debugging, which the answer repeats."""
    groups = _strings_as_go(user.groups) if user.groups else "[]string(nil)"
    entries = ", ".join(f"{go_quoted(key)}:{_strings_as_go(user.extra[key])}" for key in sorted(user.extra))
    extra = f"map[string][]string{{{entries}}}" if entries else "map[string][]string(nil)"
    return f'&user.DefaultInfo{{Name:"", UID:{go_quoted(user.uid)}, Groups:{groups}, Extra:{extra}}}'


def _strings_as_go(values: tuple[str, ...]) -> str:
    return f"[]string{{{', '.join(map(go_quoted, values))}}}"


def _extra_faults(extra: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    for key, values in extra.items():
        if not key:
            yield "impersonating the empty string key in extra is not allowed"
        if faults := _path_faults(key):
            yield f"impersonating an invalid key in extra is not allowed: {faults}"
        if "" in values:
            yield "impersonating the empty string value in extra is not allowed"


def _path_faults(key: str) -> str:
    host, _, path = key.partition("/")
    if not host or not path:
        return f'extra.key: Invalid value: {go_quoted(key)}: must be a domain-prefixed path (such as "acme.io/foo")'
    faults = [f"extra.key: Invalid value: {go_quoted(host)}: {fault}" for fault in DNS_SUBDOMAIN.faults(host)]
    if not _PATH.fullmatch(path):
        pattern = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
        faults.append(
            f"extra.key: Invalid value: {go_quoted(path)}: Invalid path (regex used for validation is '{pattern}')"
        )
    return f"[{', '.join(faults)}]" if len(faults) > 1 else "".join(faults)
