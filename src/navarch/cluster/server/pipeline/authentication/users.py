"""Users and groups that Kubernetes knows, and the names of service accounts and nodes."""

from __future__ import annotations

from typing import Final

from navarch.api.names import DNS_LABEL, DNS_SUBDOMAIN
from navarch.cluster.server.wire.request import Json, User

ALL_AUTHENTICATED: Final = "system:authenticated"
ALL_UNAUTHENTICATED: Final = "system:unauthenticated"
MASTERS: Final = "system:masters"
NODES: Final = "system:nodes"
ANONYMOUS: Final = User("system:anonymous", groups=(ALL_UNAUTHENTICATED,))
CREDENTIAL_ID: Final = "authentication.kubernetes.io/credential-id"
_SERVICE_ACCOUNT: Final = "system:serviceaccount:"
_NODE: Final = "system:node:"


def service_account_name(namespace: str, name: str) -> str:
    """The user name of a ServiceAccount.

    >>> service_account_name("default", "robot")
    'system:serviceaccount:default:robot'
    """
    return f"{_SERVICE_ACCOUNT}{namespace}:{name}"


def service_account_groups(namespace: str) -> tuple[str, ...]:
    """The groups of every ServiceAccount of a namespace."""
    return ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")


def service_account_of(user_name: str) -> tuple[str, str] | None:
    """The namespace and name of the ServiceAccount that a user name stands for; None if it is somebody else's.

    >>> service_account_of("system:serviceaccount:default:robot"), service_account_of("system:serviceaccount:a:b:c")
    (('default', 'robot'), None)
    """
    if not user_name.startswith(_SERVICE_ACCOUNT):
        return None
    namespace, _, name = user_name.removeprefix(_SERVICE_ACCOUNT).partition(":")
    return (namespace, name) if DNS_LABEL.allows(namespace) and DNS_SUBDOMAIN.allows(name) else None


def node_of(user_name: str) -> str | None:
    """The node that a user name stands for; None if it is somebody else's.

    >>> node_of("system:node:worker-1"), node_of("bob")
    ('worker-1', None)
    """
    name = user_name.removeprefix(_NODE)
    return name if name != user_name and DNS_SUBDOMAIN.allows(name) else None


def with_group(user: User, group: str) -> User:
    """Returns the user with one more group."""
    return user if group in user.groups else User(user.name, user.uid, (*user.groups, group), user.extra)


def authenticated(user: User) -> User:
    """The user as a credential proves it: in `system:authenticated`, unless the credential says otherwise."""
    if user.name == ANONYMOUS.name or ALL_UNAUTHENTICATED in user.groups:
        return user
    return with_group(user, ALL_AUTHENTICATED)


def user_info(user: User) -> Json:
    """A UserInfo of authentication.k8s.io; what is empty is left out."""
    extra = {key: list(values) for key, values in user.extra.items()}
    info: Json = {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": extra}
    return {key: value for key, value in info.items() if value}
