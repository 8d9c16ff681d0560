"""Compares the roles of a project with what its operator declares and with what its tests recorded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from navarch.client.target import kind_of
from navarch.operator import Operator
from navarch.operator.permission_sources import sources_of
from navarch.operator.roles import Permission
from navarch.project.permissions import covers, declared_permissions, granted_permissions
from navarch.project.recorded_calls import Recording

__all__ = ["missing_permissions", "unused_permissions"]

_GENERATE = "run: navarch generate rbac"


def missing_permissions(
    operator: Operator, recording: Recording, granted: Iterable[Permission], *, own_namespace: str
) -> list[str]:
    """Returns a sentence for each permission that the operator declares or that a test recorded, and that is not granted."""
    granted = list(granted)
    wanted = granted_permissions(operator, recording, own_namespace=own_namespace)
    found = []
    for each in wanted:
        if covers(granted, each.permission):
            continue
        users = [f"used by {call.line or call.by} in {call.test}" for call in each.recorded]
        sources = "; ".join(users or map(str, each.declared))
        found.append(f"{each.permission} is not granted; {sources}; {_GENERATE}")
    return found


def unused_permissions(
    operator: Operator, used: Iterable[Permission], granted: Mapping[Permission, str], *, own_namespace: str
) -> list[str]:
    """Returns a sentence for each granted permission that was never used, unless the runtime or `Uses(why=...)` explains it.

    `used` are permissions of any namespace; `granted` has the role of each, as `granted_to` returns it.
    """
    seen = {replace(each, namespace=None) for each in used}
    declared = declared_permissions(operator, own_namespace)
    sources = {
        each: sources_of(operator, each, own_namespace=own_namespace) if covers(declared, each) else ()
        for each in granted
    }
    needed = {
        each
        for each in granted
        if replace(each, namespace=None) in seen or any(source.reason for source in sources[each])
    }
    found = []
    for permission, role in sorted(granted.items(), key=lambda item: item[0].order()):
        if permission in needed:
            continue
        words = "; ".join(map(str, sources[permission]))
        remedy = _remedy(operator, permission, needed) if words else f"nothing declares it: {_GENERATE}"
        because = f" ({words})" if words else ""
        found.append(f"{permission} is granted by {role}{because}, but no test uses it; {remedy}")
    return found


def _remedy(operator: Operator, permission: Permission, needed: set[Permission]) -> str:
    """Returns the declaration that drops the verb, with the verbs that stay, and the one that explains it."""
    kind = _kind_name(operator, permission)
    below = f', "{permission.subresource}"' if permission.subresource else ""
    kept = _tuple(sorted(each.verb for each in needed if replace(each, verb=permission.verb) == permission))
    return (
        f"test it, or drop it: operator.uses += (Uses({kind}, {kept}{below}),), or explain it: "
        f'operator.uses += (Uses({kind}, {kept}{below}), Uses({kind}, {_tuple([permission.verb])}{below}, why="..."))'
    )


def _tuple(verbs: list[str]) -> str:
    inner = ", ".join(f'"{verb}"' for verb in verbs)
    return f"({inner},)" if len(verbs) == 1 else f"({inner})"


def _kind_name(operator: Operator, permission: Permission) -> str:
    """Returns the name of the class of a declared kind; the resource if no declaration has it."""
    kinds = [kind_of(each.what) for each in operator.uses]
    kinds += [kind for declared in operator.controllers for kind in declared.everything()]
    for kind in kinds:
        if (kind.group, kind.plural) == (permission.group, permission.resource):
            return kind.kind
    return permission.resource
